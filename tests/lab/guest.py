# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A guest from QEMU's start to its end, and what host and guest say to each other."""

import os
import re
import shutil
import socket
import subprocess
import threading
import time

from ktap import Ktap
from cache import CACHE, TOP, Wrong, killed_with_us, new_dir, say
from making import in_layers

# How the guest runs: emulated (tcg) or kvm. With a thread for each of its processors (multi)
# races are better; but where the machine has no more processors than threads, one spins for
# another that does not run, and everything takes twice as long.
ACCEL = os.environ.get("LAB_ACCEL", "tcg")
THREADS = os.environ.get("LAB_THREADS", "single")

# Seconds of silence after which a guest counts as hung.
TIMEOUT = int(os.environ.get("LAB_TIMEOUT", "240"))

# Megabytes of simulated GPU memory, and of the guest's own.
GPU_MB = 128
GUEST_MB = 2048

# Kernel messages that mean a crash.
CRASH = re.compile(rb"^\[ *[0-9.]+\] .*(BUG:|WARNING:|Oops|Call Trace|Kernel panic)", re.MULTILINE)


class Guest:
    """A guest that runs the scenarios NAMES in the layers FACTS, with files in a directory of its own."""

    def __init__(self, who, facts, names, words="", *, cpus=2, threads=THREADS, clock="host", timeout=TIMEOUT):
        self.who, self.facts, self.words, self.cpus, self.threads, self.clock = who, facts, words, cpus, threads, clock
        self.timeout = timeout * (2 if facts["machine_is"] == "debug" else 1)
        self.run, self.lock = new_dir("run", re.sub(r"\W", "-", who))
        self.console = self.run / "console"
        self.ktap = Ktap(names)
        self.heard, self.rebooting, self.killed, self.process = {}, False, False, None
        self.net, self.mac, self.cable = "user,restrict=on", "52:54:00:12:34:56", []
        with open(self.run / "bar", "wb") as bar:
            bar.truncate(GPU_MB << 20)
        self.answers = {"pattern": self.pattern}

    # ---- QEMU ----------------------------------------------------------------

    def qemu(self, words):
        facts, run, arm64 = self.facts, self.run, self.facts["kflavour"].startswith("arm64")
        if ACCEL not in ("tcg", "kvm") or arm64 and ACCEL != "tcg":
            raise Wrong(f"LAB_ACCEL={ACCEL}: known are tcg and, not for arm64, kvm.")
        stack = facts.get("guest_stack", facts["stack"])
        accel = f"tcg,thread={self.threads}" if ACCEL == "tcg" else ACCEL
        words = (f"loglevel=5 log_buf_len=4M panic=-1 mitigations=off cryptomgr.notests=1 nokaslr lab.machine={facts['machine_is']} "
                 f"lab.ground={facts['kground']} lab.driver={facts['kdriver']} lab.name={facts['machine']} lab.layers={stack} {words}")
        extra = []
        if arm64:
            smmu = ",iommu=smmuv3" if facts["machine_is"] == "smmu" else ""
            words = f"console=ttyAMA0 {words}" + (" iommu.passthrough=0 iommu.strict=1" if smmu else "")
            # One of servers; of those that QEMU has it knows pages of 4, 16 and 64 KiB.
            machine = ["qemu-system-aarch64", "-machine", f"virt,gic-version=3{smmu}", "-cpu", "neoverse-n1"]
        else:
            # A busy host's emulated timer may come too late for the kernel's patience at boot.
            words = f"console=ttyS0 no_timer_check {words}"
            machine = ["qemu-system-x86_64", "-machine", "q35", "-cpu", "max,la57=off" if ACCEL == "tcg" else "host"]
            if self.clock == "instructions":
                # A nanosecond for each instruction, and no time while all processors wait.
                extra = ["-icount", "shift=0,sleep=off"]
                words += " tsc=reliable clocksource=tsc"
            else:
                words += " tsc=unstable clocksource=hpet"
            if facts["machine_is"] == "iommu":
                # Before the devices that it translates for; interrupts as on other machines.
                extra += ["-device", "intel-iommu,intremap=off,caching-mode=on"]
                words += " intel_iommu=on iommu=nopt iommu.strict=1"
            if facts["machine_is"] == "debug":
                # Not the kernel's own suites, which run at each boot.
                words += " kunit.filter_glob=nv_peer_mem*"
        if (run / "disk").exists():
            # Nobody wants it after a crash.
            extra += ["-drive", f"if=none,id=disk,format=raw,cache=unsafe,file={run}/disk", "-device", "virtio-blk-pci,drive=disk"]
        return [
            *machine, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-accel", accel, "-smp", str(self.cpus), "-m", str(GUEST_MB),
            "-kernel", facts["vmlinux"], "-initrd", facts["initramfs"], "-append", words, *extra,
            "-fsdev", f"local,id=layers,path={CACHE}/layers,security_model=none,readonly=on,multidevs=remap",
            "-device", "virtio-9p-pci,fsdev=layers,mount_tag=layers",
            "-fsdev", f"local,id=guest,path={TOP}/tests/guest,security_model=none,readonly=on",
            "-device", "virtio-9p-pci,fsdev=guest,mount_tag=guest",
            "-object", f"memory-backend-file,id=bar,mem-path={run}/bar,size={GPU_MB}M,share=on",
            "-device", "ivshmem-plain,memdev=bar",
            # Behind a bridge, and so on another bus than the first.
            "-device", "pcie-root-port,id=bridge,chassis=1",
            "-netdev", f"{self.net},id=net", "-device", f"e1000e,bus=bridge,netdev=net,mac={self.mac}",
            "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=lab,name=lab",
        ]

    def shell(self):
        """A guest at this terminal."""
        subprocess.run([*self.qemu("lab.scenario=shell"), "-chardev", "null,id=lab",
                        "-chardev", "stdio,id=tty,signal=off", "-serial", "chardev:tty"], check=False)
        self.forget()

    def boot(self, words):
        """One boot, to the end of what the guest says. Returns what is wrong, if it came too early."""
        ours, theirs = socket.socketpair()
        self.rebooting = False
        with open(self.run / "qemu.log", "ab") as log, ours:
            with theirs:
                self.process = subprocess.Popen(
                    killed_with_us(*self.qemu(words), "-chardev", f"socket,id=lab,fd={theirs.fileno()}",
                                   "-serial", "chardev:console", "-chardev", f"file,id=console,path={self.console},append=on"),
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[theirs.fileno(), *self.cable])
            for end in self.cable:
                os.close(end)
            self.cable = []
            ours.settimeout(self.timeout)
            try:
                return self.converse(ours.makefile("r", encoding="utf-8", errors="replace"), ours)
            except TimeoutError:
                return f"the guest said nothing for {self.timeout} s"
            finally:
                self.process.kill()
                self.process.wait()

    # ---- what is said ----------------------------------------------------------

    def converse(self, lines, port):
        for line in lines:
            comment = self.hear(line)
            word, _, rest = (comment or "").partition(": ")
            if word == "ask":
                port.sendall((self.answer(rest) + "\n").encode())
            elif word == "reboot":
                self.rebooting = True
            elif word == "say":
                say(self.who, rest)
            elif word:
                self.heard.setdefault(word, []).append(rest)
            if self.ktap.complete:
                return None
        return "the guest went off before its scenario had ended"

    def hear(self, line):
        failed, ended = len(self.ktap.failures), len(self.ktap.results)
        comment = self.ktap.hear(line.rstrip("\r\n"))
        for text in self.ktap.failures[failed:] if len(self.ktap.results) == ended else ():
            say(self.who, f"not ok: {text}")
        if os.environ.get("LAB_VERBOSE") and line.lstrip().startswith("ok "):
            say(self.who, line.strip())
        for result in self.ktap.results[ended:]:
            self.ended(result)
        return comment

    def ended(self, result):
        """A scenario has its result: overridden by who wants to know it at once."""

    def answer(self, question):
        word, *words = question.split()
        if word not in self.answers:
            return f"no: the host does not know what '{word}' is"
        return self.answers[word](*words)

    def pattern(self, offset, length, seed):
        """Whether the bytes in the file behind the GPU's BAR are the pattern that SEED makes."""
        made = in_layers(self.facts["stack"], "gpuverbs", "pattern", "--seed", seed, "--length", length, stdout=subprocess.PIPE)
        with open(self.run / "bar", "rb") as bar:
            bar.seek(int(offset))
            return "yes" if made.stdout and made.returncode == 0 and bar.read(int(length)) == made.stdout else "no"

    # ---- ways to run -------------------------------------------------------------

    def scenarios(self):
        """Its scenarios, one after another."""
        wrong = self.boot(f"lab.scenario={','.join(self.ktap.names)} {self.words}")
        if not self.killed:
            self.all_over(wrong)
        return self.ktap.results

    def all_over(self, why):
        for result in self.ktap.over(why):
            self.ended(result)

    def system(self):
        """A whole system, with a disk, through all of its boots."""
        with open(self.run / "disk", "wb") as disk:
            disk.truncate(2 << 30)
        subprocess.run(["mkfs.ext4", "-q", "-E", "lazy_itable_init,lazy_journal_init", str(self.run / "disk")], check=True)
        boot = 1
        while wrong := self.boot(f"lab.scenario={self.ktap.names[0]} lab.disk=vda lab.boot={boot} systemd.show_status=error {self.words}"):
            console = self.console.read_bytes()
            if not self.rebooting or CRASH.search(console) or b"reboot: Restarting system" not in b"".join(console.splitlines()[-3:]):
                break
            boot += 1
            if newer := self.facts.get("newer_vmlinux"):
                self.facts.update(vmlinux=newer, initramfs=self.facts["newer_initramfs"])
        self.all_over(wrong)
        return self.ktap.results

    def forget(self):
        if self.console.exists():
            shutil.copy(self.console, CACHE / "log" / f"{self.who}.console")
        shutil.rmtree(self.run, ignore_errors=True)
        os.close(self.lock)


class Host(Guest):
    """One of two guests with a cable between them, called left and right; what one must know of
    the other goes through here (tests/guest/hosts.sh)."""

    def __init__(self, name, told, *rest, **options):
        super().__init__(*rest, **options)
        self.name, self.told, self.other, self.over = name, told, None, False
        self.words += f" lab.host={name}"
        if name == "right":
            self.mac = "52:54:00:12:34:57"
        self.answers |= {"tell": self.tell, "hear": self.hear_of, "kill": self.kill}

    def tell(self, key, *value):
        with self.told["changed"]:
            self.told[key] = " ".join(value)
            self.told["changed"].notify_all()
        return "told"

    def hear_of(self, key):
        """Waits until it was told; `gone` if that will never be."""
        with self.told["changed"]:
            self.told["changed"].wait_for(lambda: key in self.told or self.other.over, self.timeout)
            return f"said {self.told[key]}" if key in self.told else "gone"

    def kill(self, _):
        """The other guest loses its power. That is its end, and no failure."""
        self.other.killed = True
        self.other.process.kill()
        return "killed"

    def scenarios(self):
        try:
            super().scenarios()
            if self.killed:
                self.ktap.planned = self.ktap.checks
                self.ktap.end("ok", 1, self.ktap.names[0])
            return self.ktap.results
        finally:
            with self.told["changed"]:
                self.over = True
                self.told["changed"].notify_all()


def pair(who, facts, name, words):
    """NAME on two guests at a time. Returns both, with their results."""
    cable = socket.socketpair()
    told = {"changed": threading.Condition()}
    left, right = (Host(host, told, f"{who}-{host}", facts, [name], words) for host in ("left", "right"))
    left.other, right.other = right, left
    for guest, end in zip((left, right), cable, strict=True):
        guest.cable = [end.detach()]
        guest.net = f"socket,fd={guest.cable[0]}"
    threads = [threading.Thread(target=guest.scenarios, daemon=True) for guest in (left, right)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return left, right


def seconds_since(began):
    return round(time.monotonic() - began)
