# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs the tests for hardware on a node that is made of files: what is refused, what a run does and
undoes, also if it is interrupted at any step, killed, hangs, or loses its terminal."""

import os
import pty
import re
import signal
import stat
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import List

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import journal  # noqa: E402
import page  # noqa: E402
import private  # noqa: E402
from node import STATE, Node  # noqa: E402
from steps import OF_A_PAIR, plan  # noqa: E402
from talk import Pair  # noqa: E402

PAIR = Pair(0, "0000:01:00.0", "mlx5_0", 1)
STEPS = [step.name for step in plan([PAIR], True, True)]
OF_PAIR = "persistent/gpu0-mlx5_0/"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "root")


# ---- looking --------------------------------------------------------------------------------


def test_only_looking_does_nothing(node: Node) -> None:
    assert node.run("--dry-run") == 0
    assert "nothing was done" in node.output
    assert "GPU 0 0000:01:00.0 with mlx5_0, port 1" in node.output
    assert "mlx5_1" not in node.output
    for name in STEPS:
        assert f"  {name} " in node.output
    for text in page.NEVER:
        assert text in node.output
    assert not (node.root / STATE).exists()
    assert (node.root / "calls").read_text().split("\n") == ["modinfo -F license nvidia", ""]


@pytest.mark.parametrize(
    "file, text, reason",
    [
        ("proc/self/status", "CapEff:\t000001fffffeffff", "may not load modules"),
        ("sys/module/module/parameters/sig_enforce", "Y", "only signed modules"),
        ("sys/kernel/security/lockdown", "none [integrity] confidentiality", "only signed"),
        ("sys/module/nvidia/version", "", "no NVIDIA driver"),
        ("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN", "no active|an active port"),
        ("sys/kernel/mm/memory_peers/nv_mem/num_alloc_mrs", "9", "2 registrations of GPU memory"),
        ("sys/kernel/mm/memory_peers/nv_mem/num_alloc_mrs", "8", "1 registration of GPU memory"),
        ("sys/module/nv_peer_mem/statistics/reachable_regions", "3", "3 registrations"),
    ],
)
def test_refuses(node: Node, file: str, text: str, reason: str) -> None:
    node.put(file, text)
    node.before = node.modules()
    assert node.run() == 2
    assert re.search("REFUSED: .*" + reason, node.output), node.output
    assert not (node.root / STATE).exists()
    assert node.is_as_before()


@pytest.mark.parametrize(
    "gone, reason",
    [
        ("lib/modules/6.0-test/build/Makefile", "headers of kernel 6.0-test"),
        ("usr/include/infiniband/verbs.h", "header of libibverbs"),
        ("proc/driver/nvidia/gpus/0000:01:00.0/information", "no GPU"),
    ],
)
def test_refuses_without(node: Node, gone: str, reason: str) -> None:
    (node.root / gone).unlink()
    (node.root / gone).parent.rmdir()
    assert node.run() == 2
    assert "REFUSED: " in node.output and reason in node.output


def test_a_driver_without_a_list(node: Node) -> None:
    subprocess.run(["rm", "-r", node.root / "proc/driver"], check=True)
    for name in ("0000:02:00.0", "0000:0a:00.0", "bind", "module"):
        node.put(f"sys/bus/pci/drivers/nvidia/{name}/x")
    assert node.run("--dry-run") == 0
    assert "gpu0-mlx5_0" in node.output and "0000:02:00.0" in node.output
    assert "gpu1-mlx5_0" in node.output and "0000:0a:00.0" in node.output
    assert "gpu2" not in node.output


def test_a_core_without_peer_memory(node: Node) -> None:
    subprocess.run(["rm", "-r", node.root / "sys/kernel/mm"], check=True)
    node.put("proc/kallsyms", "0000 T ib_alloc_pd\t[ib_core]")
    assert node.run() == 2
    assert "REFUSED: the loaded RDMA core has no peer memory" in node.output
    node.put("proc/kallsyms", "0000 T ib_register_peer_memory_client\t[ib_core]")
    assert node.run("--dry-run") == 0


def test_other_programs(node: Node) -> None:
    for pid, name, file in (
        (51, "nvidia-persiste", "/dev/nvidia0"),
        (52, "editor", "/dev/nvidiactl"),
        (53, "trainer", "/dev/nvidia0"),
    ):
        node.put(f"proc/{pid}/comm", name)
        (node.root / f"proc/{pid}/fd").mkdir()
        (node.root / f"proc/{pid}/fd/4").symlink_to(file)
    assert node.run("--dry-run") == 2
    assert "REFUSED: other programs use the GPUs: trainer (53)\n" in node.output
    assert node.run("--dry-run", "--anyway") == 0
    assert "In spite of: other programs" in node.output


def test_a_pair_that_does_not_exist(node: Node) -> None:
    assert node.run("--dry-run", "--pair", "0:mlx5_0") == 0
    assert node.run("--dry-run", "--pair", "1:mlx5_0") == 2
    assert "none of the wanted pairs exists" in node.output


# ---- a whole run ----------------------------------------------------------------------------


def test_a_whole_run(node: Node) -> None:
    node.put("sys/module/nvidia_peermem/parameters/peerdirect_support", "1")
    node.before = node.modules()
    assert node.run() == 0, node.output
    assert set(node.verdicts()) == set(STEPS)
    assert set(node.verdicts().values()) == {"held"}, node.output
    assert node.is_as_before()
    assert "modprobe nvidia-peermem peerdirect_support=1" in (node.root / "calls").read_text()
    assert f"{len(STEPS)} of {len(STEPS)} steps held\n" in node.page()
    assert re.search(r"registration, 64 KiB, 1 thread, us +30 +30 +30 +30 +1\.00\n", node.page())
    # Only root can enter, and nothing is written elsewhere.
    assert stat.S_IMODE(node.directory().stat().st_mode) == 0o700
    assert stat.S_IMODE(node.directory().parent.stat().st_mode) == 0o700
    assert not list(node.root.glob("etc/*.d")) and not list(node.root.glob("lib/modules/*/*/*.ko"))


def test_the_report_of_nvpm_is_kept(node: Node) -> None:
    assert node.run("--no-measure", "--only", "kinds") == 0
    assert "GPU 0: peer memory" in node.output
    assert (node.directory() / "nvpm.txt").read_text() == "said report --no-selftest\n"


def test_the_archive_has_no_names(node: Node) -> None:
    node.put("report", "NVRM: Xid of secretive, mallory at /home/mallory/x, 10.1.2.3, "
             "GPU-12345678-1234-1234-1234-123456789abc, 00:11:22:33:44:55:66:77")  # fmt: skip
    assert node.run("--only", "kinds") == 1
    with tarfile.open(node.directory() / page.ARCHIVE) as archive:
        names = archive.getnames()
        texts = [archive.extractfile(name).read().decode() for name in names]  # type: ignore[union-attr]
    assert "nv_peer_mem-hardware/page.txt" in names and "nv_peer_mem-hardware/journal" in names
    whole = "\n".join(texts)
    assert (
        "NVRM: Xid of (name), (name) at /home/(user)/x, (address), GPU-(uuid), (address)" in whole
    )
    for secret in ("secretive", "mallory", "10.1.2.3", "123456789abc", "00:11:22"):
        assert secret not in whole
    # PCI addresses and versions are no names.
    assert "0000:01:00.0" in whole and "590.1" in whole


# A mistake of the module that each step must notice: what the client would get.
PLANTED = {
    "sizes": "reg ENOMEM",
    "kinds": "regraw ok",
    "across": "regraw ok",
    "transfers": "compare differs at byte 0",
    "atomics": "do REM_ACCESS_ERR",
    "freed": "do REM_ACCESS_ERR",
    "freed-meanwhile": "halt RETRY_EXC_ERR 5",
    "killed": "reg EFAULT",
    "forked": "child ok",
    "many": "storm ENOMEM",
    "in-use": "do LOC_PROT_ERR",
    "dma-buf": "compare differs at byte 4096",
}


def test_there_is_a_mistake_for_each_step() -> None:
    assert set(PLANTED) == {name for name, *_ in OF_A_PAIR}


@pytest.mark.parametrize("step", PLANTED)
def test_a_step_notices_a_mistake(node: Node, step: str) -> None:
    node.put("wrong", PLANTED[step])
    assert node.run("--no-measure", "--only", step) == 1
    assert node.verdicts()[OF_PAIR + step] == "failed"
    assert f"Did not hold:\n  {OF_PAIR}{step} (failed)\n" in node.page()
    assert node.is_as_before()


def test_a_revocable_module_that_does_not_revoke(node: Node) -> None:
    node.put("wrong", "do ok")
    assert node.run("--no-measure", "--only", "freed") == 1
    assert node.verdicts()[OF_PAIR + "freed"] == "held"
    assert node.verdicts()["revocable/gpu0-mlx5_0/freed"] == "failed"
    assert "the device is refused (ok)" in node.page()


def test_what_is_left_behind(node: Node) -> None:
    node.put("leak", "5")
    process = node.start("--no-measure", "--only", "many")
    step = OF_PAIR + "many"
    node.until(lambda: list(node.root.glob(STATE + "/*")) and step in node.verdicts())
    os.kill(process.pid, signal.SIGTERM)
    assert node.end(process) == 1
    assert node.verdicts()[step] == "failed"
    assert "left behind: registrations: 5, before: 0" in node.page()
    assert "BAR1 of 0000:01:00.0: 6 MiB in use, before: 1" in node.page()
    assert node.is_as_before()


def test_the_kernels_log_is_read(node: Node) -> None:
    node.put("report", "BUG: unable to handle page fault")
    assert node.run("--no-measure", "--only", "kinds") == 1
    assert "the kernel's log: BUG: unable to handle page fault" in node.page()


def test_without_a_log_and_without_nvidia_smi(node: Node) -> None:
    (node.root / "dev/kmsg").unlink()
    (node.root / "dev/kmsg").mkdir()
    node.put("fail/nvidia-smi")
    assert node.run("--no-measure", "--only", "sizes") == 0, node.output
    assert "the kernel's log since this step cannot be read" in node.page()
    assert "more than 16 MiB: nvidia-smi does not say how large BAR1 is" in node.page()


def test_a_build_that_fails(node: Node) -> None:
    node.put("fail/make")
    assert node.run() == 1
    assert node.verdicts()["build"] == "failed"
    assert set(node.verdicts().values()) == {"failed", "not tried"}
    assert "the module cannot be built (build.log): make: planted failure" in node.page()
    assert "rmmod" not in (node.root / "calls").read_text()
    assert node.is_as_before()


@pytest.mark.parametrize("program", ["insmod", "rmmod"])
def test_a_module_that_cannot_be_loaded_or_unloaded(node: Node, program: str) -> None:
    node.put(f"fail/{program}")
    assert node.run("--no-measure", "--only", "kinds") == 1
    assert node.is_as_before()


def test_what_cannot_be_put_back_is_said(node: Node) -> None:
    node.put("fail/modprobe")
    assert node.run("--no-measure", "--only", "kinds") == 1
    assert "NOT EVERYTHING IS PUT BACK" in node.page()
    assert "load nvidia_peermem nvidia-peermem" in node.page()
    assert node.run("--dry-run") == 2
    (node.root / "fail/modprobe").unlink()
    assert node.run("--undo") == 0
    assert node.is_as_before()
    assert node.run("--dry-run") == 0


def test_a_peer(node: Node) -> None:
    before = set(Path("/tmp").glob("nv_peer_mem-hardware.*"))
    assert (
        node.run("--peer", "root@other", "--only", "peer-transfers", "--only", "peer-killed") == 0
    )
    for name in ("peer-transfers", "peer-killed"):
        assert node.verdicts()[OF_PAIR + name] == "held"
    assert node.verdicts()["peer"] == "held"
    assert set(Path("/tmp").glob("nv_peer_mem-hardware.*")) == before
    with tarfile.open(node.directory() / page.ARCHIVE) as archive:
        whole = archive.extractfile("nv_peer_mem-hardware/journal").read()  # type: ignore[union-attr]
    assert b"other" not in whole


def test_a_peer_that_is_not_reached(node: Node) -> None:
    assert node.run("--peer", "unreachable", "--only", "kinds", "--only", "peer-killed") == 0
    assert node.verdicts()["peer"] == "not tried"
    assert node.verdicts()[OF_PAIR + "peer-killed"] == "not tried"
    assert "No route to host" in node.page()
    assert node.run("--peer", "-oProxyCommand=x") == 2
    assert node.run("--peer=-oProxyCommand=x") == 2
    assert "not the name of a machine" in node.output


@pytest.mark.parametrize("step", ["", "take-out", "persistent/load"])
def test_the_service_comes_back(node: Node, step: str) -> None:
    subprocess.run(["rm", "-r", node.root / "sys/module/nvidia_peermem"], check=True)
    node.put("sys/module/nv_peer_mem/parameters/persistent_api_support", "0")
    node.put("active")
    node.before = node.modules()
    if step:
        process = node.started_until(step, "--no-measure", "--only", "kinds")
        assert not (node.root / "active").exists()
        os.kill(process.pid, signal.SIGTERM)
        assert node.end(process) == 1
    else:
        assert node.run("--no-measure", "--only", "kinds") == 0, node.output
    assert node.is_as_before()
    assert (node.root / "active").exists()
    assert "modprobe" not in (node.root / "calls").read_text()


def test_our_own_module_and_its_marker_come_back(node: Node) -> None:
    node.put("sys/module/nv_peer_mem/parameters/persistent_api_support", "0")
    node.put("sys/module/nv_peer_mem/holders/nvidia_peermem")
    node.before = node.modules()
    assert node.run("--no-measure", "--only", "kinds") == 0, node.output
    assert node.is_as_before()
    assert "modprobe nv_peer_mem_marker" in (node.root / "calls").read_text()


# ---- the GPU's half ---------------------------------------------------------------------------

GPU_STEPS = ["build", *(f"cuda/gpu0/{name}" for name in ("memory", "exports", "freed", "killed"))]


def in_a_container(node: Node) -> None:
    """Takes away what the GPU's half must not need."""
    node.put("proc/self/status", "CapEff:\t0000000000000000")
    for name in ("sys/class/infiniband", "sys/module/ib_core", "sys/kernel/mm", "lib", "usr"):
        subprocess.run(["rm", "-r", node.root / name], check=True)
    node.before = node.modules()


def test_only_gpus(node: Node) -> None:
    in_a_container(node)
    assert node.run() == 2
    assert "--gpus loads none" in node.output
    assert node.run("--gpus") == 0, node.output
    assert node.verdicts() == dict.fromkeys([*GPU_STEPS, "cuda/gpu0/measure"], "held")
    assert re.search(r"export, 64 KiB, 1 thread, us +40\n", node.page())
    assert "  GPU: gpu0 0000:01:00.0 H200\n" in node.page()
    assert page.WITHOUT_RDMA in node.page() and page.WITHOUT_PEER not in node.page()
    assert node.is_as_before()
    calls = (node.root / "calls").read_text()
    assert "insmod" not in calls and "rmmod" not in calls and "modprobe" not in calls
    assert node.run("--gpus", "--pair", "0:mlx5_0") == 2


@pytest.mark.parametrize(
    "step, command, answer",
    [
        ("memory", "compare", "differs at byte 0"),
        # A byte before the copied ones, and one behind them.
        ("memory", "compare+0+4094+1", "differs at byte 0"),
        ("memory", "compare+0+300008+1", "differs at byte 0"),
        ("exports", "export", "ok 4096"),
        ("exports", "export", "CUDA_ERROR_OPERATING_SYSTEM"),
        ("freed", "room", "ok 1000000 2000000"),
        ("killed", "room", "ok 1000000 2000000"),
        ("killed", "export", "CUDA_ERROR_OPERATING_SYSTEM"),
    ],
)
def test_a_gpu_that_answers_wrongly(node: Node, step: str, command: str, answer: str) -> None:
    in_a_container(node)
    node.put("wrong", f"{command} {answer}")
    assert node.run("--gpus", "--no-measure") == 1
    assert node.verdicts()[f"cuda/gpu0/{step}"] == "failed"


def test_a_gpu_that_keeps_memory(node: Node) -> None:
    in_a_container(node)
    node.put("keep")
    assert node.run("--gpus", "--no-measure", "--only", "freed", "--only", "killed") == 1
    assert node.verdicts()["cuda/gpu0/freed"] == node.verdicts()["cuda/gpu0/killed"] == "failed"
    for text in ("given back at the end of the dma-buf", "all memory is given back"):
        assert f"{text}: expected 8" in node.page()


def test_a_client_of_others_is_not_run(node: Node) -> None:
    built = node.root / "mine"
    built.mkdir()
    (built / "hardware-client").write_text(f"#!/bin/sh\ntouch {node.root}/was-run\n")
    (built / "hardware-client").chmod(0o755)
    os.chown(built, 1234, 1234)
    assert node.run("--gpus", "--dry-run", "--built", str(built)) == 2
    assert "REFUSED: root must not run this" in node.output
    assert not (node.root / "was-run").exists()


def test_a_gpu_that_cuda_does_not_list(node: Node) -> None:
    hidden = "not CUDA does not list 0000:01:00.0"
    node.put("wrong", f"cuda {hidden}\nalloc {hidden}\natomics {hidden}")
    assert node.run("--no-measure") == 0, node.output
    of_the_pair = [v for step, v in node.verdicts().items() if "gpu0" in step]
    assert set(of_the_pair) == {"not tried"}
    assert "CUDA does not list 0000:01:00.0" in node.page()


def test_an_empty_list_of_the_driver(node: Node) -> None:
    subprocess.run(["rm", "-r", node.root / "proc/driver/nvidia/gpus/0000:01:00.0"], check=True)
    node.put("sys/bus/pci/drivers/nvidia/0000:02:00.0/x")
    assert node.run("--dry-run") == 2
    assert "REFUSED: no GPU was found" in node.output


def test_a_driver_without_dma_buf(node: Node) -> None:
    in_a_container(node)
    node.put("wrong", "export CUDA_ERROR_NOT_SUPPORTED")
    assert node.run("--gpus") == 0
    assert node.verdicts()["cuda/gpu0/memory"] == "held"
    assert node.verdicts()["cuda/gpu0/exports"] == "not tried"
    assert "CUDA exports no dma-buf: the driver is the proprietary one" in node.page()


# ---- ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_interrupted_at_each_step(node: Node, step: str) -> None:
    last = step.rsplit("/", 1)[-1]
    process = node.started_until(step, "--only", last)
    assert not node.is_as_before() or step == "build"
    os.kill(process.pid, signal.SIGINT)
    assert node.end(process) == 1
    assert node.verdicts()[step] == "interrupted"
    assert node.is_as_before()
    assert "ended early: interrupted" in node.page()
    assert node.run("--dry-run") == 0


@pytest.mark.parametrize("step", ["build", "take-out", *(OF_PAIR + name for name in PLANTED)])
def test_killed_at_a_step_and_undone(node: Node, step: str) -> None:
    process = node.started_until(step, "--no-measure", "--only", step.rsplit("/", 1)[-1])
    os.kill(node.supervisor(), signal.SIGKILL)
    node.end(process)
    assert node.run("--dry-run") == 2
    assert "has not ended" in node.output
    assert node.run("--undo") == 0, node.output
    assert node.is_as_before()
    assert f"{step} (crashed)" in node.page()
    assert node.run("--undo") == 0
    assert "no run that has left something" in node.output
    assert node.run("--dry-run") == 0


def test_a_journal_that_somebody_removes(node: Node) -> None:
    process = node.started_until(OF_PAIR + "kinds", "--no-measure", "--only", "kinds")
    supervisor = node.supervisor()
    subprocess.run(["rm", "-r", node.root / STATE], check=True)
    os.kill(supervisor, signal.SIGTERM)
    assert node.end(process) == 1
    assert node.is_as_before()


def test_undo_leaves_a_run_alone_that_goes_on(node: Node) -> None:
    process = node.started_until(OF_PAIR + "kinds", "--no-measure", "--only", "kinds")
    assert node.run("--undo") == 2
    assert "is still going on" in node.output
    os.kill(process.pid, signal.SIGTERM)
    node.end(process)
    assert node.is_as_before()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
def test_a_lost_connection(node: Node, number: signal.Signals) -> None:
    process = node.started_until(OF_PAIR + "kinds", "--no-measure", "--only", "kinds")
    supervisor = node.supervisor()
    os.kill(process.pid, number)
    node.end(process)
    (node.root / "pause").unlink()
    # The step waits in dmesg, which is ended here as if it had finished.
    os.killpg(_children(_children(supervisor)[0])[-1], signal.SIGKILL)
    node.until(lambda: (node.directory() / page.ARCHIVE).exists())
    node.until(lambda: not os.path.exists(f"/proc/{supervisor}"))
    assert node.is_as_before()
    assert len(node.verdicts()) == len(plan([PAIR], False, True)) - len(OF_A_PAIR) * 2 + 2


def _children(parent: int) -> List[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rsplit(")", 1)[-1].split()
        except OSError:
            continue
        if words[1] == str(parent):
            found.append(int(path.parent.name))
    return sorted(found)


def test_a_lost_terminal(node: Node) -> None:
    variables = dict(os.environ, NVPM_SYSROOT=str(node.root))
    variables["PATH"] = f"{node.root}/bin:{os.environ['PATH']}"
    child, terminal = pty.fork()
    if not child:
        command = [sys.executable, "-B", str(HERE / "main.py"), "--no-measure", "--only", "killed"]
        os.execve(sys.executable, command, variables)
    node.until(lambda: list(node.root.glob(STATE + "/*/journal")) and node.verdicts())
    os.close(terminal)
    os.waitpid(child, 0)
    node.until(lambda: (node.directory() / page.ARCHIVE).exists())
    assert set(node.verdicts().values()) == {"held"}
    assert node.is_as_before()


def test_a_step_that_hangs(node: Node) -> None:
    node.put("wrong", "reg hang")
    assert node.run("--no-measure", "--only", "sizes", "--limit", "2") == 1
    step = OF_PAIR + "sizes"
    assert node.verdicts()[step] == "hung"
    assert f"{step} (hung)\n      the step hangs: " in node.page()
    assert "    still going on, after 1 s\n" in node.output
    # No step follows one that hangs, because a driver may be locked.
    assert "Not reached: 4 steps, the first is persistent/unload" in node.page()
    assert node.is_as_before()


def test_after_a_panic(node: Node) -> None:
    step = OF_PAIR + "freed"
    process = node.started_until(step, "--no-measure", "--only", "freed")
    os.kill(node.supervisor(), signal.SIGKILL)
    node.end(process)
    # The machine boots: its modules are those of a boot, and the journal's last line is cut off.
    node.put("proc/sys/kernel/random/boot_id", "second")
    subprocess.run(["rm", "-r", node.root / "sys/module/nv_peer_mem"], check=True)
    with open(node.directory() / "journal", "a") as file:
        file.write('{"is": "line", "st')
    node.put("calls")
    assert node.run("--page") == 1
    assert f"NOT FINISHED, in the step {step}\n" in node.output
    assert "The machine was started again during the run." in node.output
    assert "/sys/fs/pstore" in node.output
    assert node.run("--undo") == 0
    # The boot has undone everything, so nothing is loaded or unloaded.
    assert (node.root / "calls").read_text() == ""
    assert f"{step} (crashed)" in node.page()


def test_nothing_starts_at_a_boot(node: Node) -> None:
    before = {path for path in node.root.rglob("*") if path.is_file()}
    assert node.run("--no-measure", "--only", "kinds") == 0
    after = {path for path in node.root.rglob("*") if path.is_file()} - before
    state = node.root / STATE
    allowed = (node.root / "sys", node.root / "use", node.root / "busy", node.root / "pause", state)
    assert [path for path in after if not any(a in path.parents for a in allowed)] == []


# ---- the journal and the owners ---------------------------------------------------------------


def test_a_name_is_on_the_disk_before_its_step(node: Node) -> None:
    process = node.started_until(OF_PAIR + "many", "--no-measure", "--only", "many")
    assert journal.unfinished_step(node.journal()) == OF_PAIR + "many"
    kinds = [line["is"] for line in node.journal()]
    assert kinds.index("undo") < len(kinds)
    os.kill(process.pid, signal.SIGTERM)
    node.end(process)


def test_acts_are_undone_in_reverse_and_once(tmp_path: Path) -> None:
    book = journal.Journal(tmp_path)
    book.undo("load", "a", "a")
    book.undo("unload", "b")
    book.write("undone", number=1)
    book.undo("unload", "c")
    whats = [act["what"][1] for act in journal.to_undo(journal.read(tmp_path))]
    assert whats == ["c", "a"]


@pytest.mark.parametrize("mode", [0o757, 0o775])
def test_files_that_others_may_write(tmp_path: Path, mode: int) -> None:
    (tmp_path / "in").mkdir()
    file = tmp_path / "in/file"
    file.write_text("")
    private.check_all(tmp_path / "in")
    os.chown(file, 0, 12)
    file.chmod(mode)
    with pytest.raises(private.Unsafe, match="may write to"):
        private.check_all(tmp_path / "in")


def test_files_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("")
    os.chown(file, 1234, 1234)
    with pytest.raises(private.Unsafe, match="belongs to another user"):
        private.check_all(tmp_path)
    # The user who calls sudo can do everything anyway.
    monkeypatch.setenv("SUDO_UID", "1234")
    file.chmod(0o664)
    private.check_all(tmp_path)


def test_built_files_of_others_are_refused(node: Node) -> None:
    built = node.root / "mine"
    built.mkdir()
    os.chown(built, 1234, 1234)
    assert node.run("--built", str(built), "--dry-run") == 2
    assert "REFUSED: root must not run this" in node.output


def test_a_state_directory_of_others_is_refused(node: Node) -> None:
    (node.root / STATE).mkdir(parents=True, mode=0o755)
    assert node.run("--no-measure") == 2
    assert "is not a directory that only root can enter" in node.output
