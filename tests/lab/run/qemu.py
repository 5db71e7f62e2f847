# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes QEMU's command line for a guest, which includes the guest's kernel command line."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from layers.cache import CACHE, TOP, Wrong
from layers.stack import Bootable, Layers, root_of

# The guest is emulated (tcg) or virtual (kvm). With "multi", QEMU has a thread for each of the
# guest's processors, and races are more likely. If this machine has too few processors for these
# threads, a thread spins while it waits for a thread that does not run, and everything takes twice
# as long.
ACCEL = os.environ.get("LAB_ACCEL", "tcg")
THREADS = os.environ.get("LAB_THREADS", "single")

# Seconds of silence after which a guest counts as hung.
TIMEOUT = int(os.environ.get("LAB_TIMEOUT", "240"))

# Megabytes of simulated GPU memory, and of the guest's own.
GPU_MB = 128
GUEST_MB = 2048

# Options of every kernel.
QUIET = "loglevel=5 log_buf_len=4M panic=-1 mitigations=off cryptomgr.notests=1 nokaslr"


@dataclass(frozen=True)
class Options:
    """Options of a guest. Its clock is that of the host, or counts `instructions`. `cards` is the
    number of additional network cards, which are connected to nothing."""

    cpus: int = 2
    threads: str = THREADS
    clock: str = "host"
    timeout: int = TIMEOUT
    cards: int = 0
    # The number of emulated ConnectX cards.
    nics: int = 0
    # Megabytes of simulated GPU memory.
    gpu: int = GPU_MB


USUAL = Options()


@dataclass
class Network:
    """The guest's only network device, and its connection."""

    backend: str = "user,restrict=on"
    mac: str = "52:54:00:12:34:56"


@dataclass
class Platform:
    """The emulated computer, and the first and the last words of the kernel's command line."""

    machine: list[str]
    first: str
    last: str = ""
    devices: list[str] = field(default_factory=list)


def arm64(layers: Layers) -> Platform:
    smmu = layers.machine.kind == "smmu"
    virt = "virt,gic-version=3" + (",iommu=smmuv3" if smmu else "")
    return Platform(
        # A server CPU: the QEMU model that supports pages of 4, 16 and 64 KiB.
        machine=["qemu-system-aarch64", "-machine", virt, "-cpu", "neoverse-n1"],
        first="console=ttyAMA0 ",
        last=" iommu.passthrough=0 iommu.strict=1" if smmu else "",
    )


def qemu_for_nics(layers: Layers) -> list[str]:
    """Returns the command of the QEMU that knows devices in other processes. This machine may have
    older libraries, so the program is started by the lab's own loader."""
    libraries = "usr/lib/x86_64-linux-gnu"
    roots = [root_of(layers.qemu), root_of(layers.lab_base)]
    loader = roots[1] / "usr/lib64/ld-linux-x86-64.so.2"
    path = ":".join(str(root / libraries) for root in roots)
    program = roots[0] / "usr/bin/qemu-system-x86_64"
    shares = [str(roots[0] / f"usr/share/{name}") for name in ("qemu", "seabios")]
    return [str(loader), "--library-path", path, str(program), "-L", shares[0], "-L", shares[1]]


def x86_64(layers: Layers, options: Options) -> Platform:
    # Without erms and fsrm, the kernel does not use rep movsb and rep stosb, which an emulator
    # executes byte by byte.
    cpu = "max,la57=off,erms=off,fsrm=off" if ACCEL == "tcg" else "host"
    qemu, memory = ["qemu-system-x86_64"], ""
    if options.nics:
        qemu, memory = qemu_for_nics(layers), ",memory-backend=ram"
    computer = Platform(
        machine=[*qemu, "-machine", f"q35{memory}", "-cpu", cpu],
        # On a busy host, an emulated timer may come so late that the kernel would give up at boot.
        first="console=ttyS0 no_timer_check ",
    )
    if options.clock == "instructions":
        # The clock advances by a nanosecond for each instruction, and at once if all processors
        # wait.
        computer.devices += ["-icount", "shift=0,sleep=off"]
        computer.last += " tsc=reliable clocksource=tsc"
    else:
        computer.last += " tsc=unstable clocksource=hpet"
    if options.nics:
        computer.last += f" lab.nics={options.nics}"
    if layers.machine.kind == "iommu":
        # The IOMMU comes before the devices whose addresses it translates. It does not translate
        # interrupts, so these are as on other machines.
        computer.devices += ["-device", "intel-iommu,intremap=off,caching-mode=on"]
        computer.last += " intel_iommu=on iommu=nopt iommu.strict=1"
    if layers.machine.kind == "debug":
        # The filter leaves out the kernel's own suites, which would run at each boot.
        computer.last += " kunit.filter_glob=nv_peer_mem*"
    return computer


def platform(layers: Layers, options: Options) -> Platform:
    is_arm64 = layers.machine.flavour.startswith("arm64")
    if ACCEL not in ("tcg", "kvm") or (is_arm64 and ACCEL != "tcg"):
        raise Wrong(f"LAB_ACCEL={ACCEL}: known are tcg and, not for arm64, kvm.")
    return arm64(layers) if is_arm64 else x86_64(layers, options)


def kernel_words(layers: Layers) -> str:
    """Returns the kernel's command line, which also tells the guest its machine."""
    machine = layers.machine
    quiet = QUIET
    # An emulator translates code again for each address, so a program with random addresses takes
    # twice as long to start. The debug kernel keeps random addresses for its long random tests.
    if ACCEL == "tcg" and machine.kind != "debug":
        quiet += " norandmaps"
    return (
        f"{quiet} lab.machine={machine.kind} lab.rust={machine.rust} "
        f"lab.driver={machine.driver} lab.name={machine.name} "
        f"lab.layers={layers.guest_stack or layers.stack}"
    )


def disk(run: Path) -> list[str]:
    """Returns the options for the disk of a whole system, which is not used again after a crash."""
    if not (run / "disk").exists():
        return []
    drive = f"if=none,id=disk,format=raw,cache=unsafe,file={run}/disk"
    return ["-drive", drive, "-device", "virtio-blk-pci,drive=disk"]


def shared(name: str, path: Path, *more: str) -> list[str]:
    """Returns the options for a directory that the guest can mount read-only."""
    options = ["security_model=none", "readonly=on", *more]
    return [
        "-fsdev",
        ",".join([f"local,id={name},path={path}", *options]),
        "-device",
        f"virtio-9p-pci,fsdev={name},mount_tag={name}",
    ]


def devices(run: Path, network: Network, gpu: int) -> list[str]:
    bar = f"memory-backend-file,id=bar,mem-path={run}/bar,size={gpu}M,share=on"
    return [
        *shared("layers", CACHE / "layers", "multidevs=remap"),
        *shared("guest", TOP / "tests/guest"),
        *("-object", bar, "-device", "ivshmem-plain,memdev=bar"),
        # The second device is behind a bridge, so that it is on another bus than the first.
        *("-device", "pcie-root-port,id=bridge,chassis=1"),
        *("-netdev", f"{network.backend},id=net"),
        *("-device", f"e1000e,bus=bridge,netdev=net,mac={network.mac}"),
        *("-device", "virtio-serial-pci", "-device", "virtserialport,chardev=lab,name=lab"),
    ]


def more_cards(number: int) -> Iterator[str]:
    """Yields options for NUMBER network cards. Eight cards share each of the last slots of the bus,
    because the firmware has no room for a bridge for each card."""
    for card in range(number):
        place = f"{0x10 + card // 8:x}.{card % 8}"
        yield from ("-device", f"e1000e,addr={place},multifunction=on")


def nics(run: Path, number: int) -> Iterator[str]:
    """Yields options for NUMBER emulated ConnectX cards, each of which listens on a socket. The
    devices' process reads and writes the guest's memory, so the memory is a shared file."""
    if not number:
        return
    yield from ("-object", f"memory-backend-memfd,id=ram,size={GUEST_MB}M,share=on")
    for card in range(1, number + 1):
        device = {
            "driver": "vfio-user-pci",
            "socket": {"path": f"{run}/nic{card}", "type": "unix"},
            # The guest waits until the device has handled a doorbell. NIXL rings doorbells all the
            # time, and a device that falls behind would answer QEMU's reads too late.
            "x-no-posted-writes": True,
        }
        yield from ("-device", json.dumps(device))


def command(
    layers: Layers, kernel: Bootable, run: Path, network: Network, options: Options, words: str
) -> list[str]:
    """Returns QEMU's command for a guest with files in the directory RUN. The caller adds the
    serial ports: the console, and the character device `lab`."""
    accel = f"tcg,thread={options.threads}" if ACCEL == "tcg" else ACCEL
    computer = platform(layers, options)
    told = f"{computer.first}{kernel_words(layers)} {words}{computer.last}"
    return [
        *computer.machine,
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-accel", accel, "-smp", str(options.cpus), "-m", str(GUEST_MB)),
        *("-kernel", kernel.vmlinux, "-initrd", kernel.initramfs, "-append", told),
        *computer.devices,
        *disk(run),
        *devices(run, network, options.gpu),
        *more_cards(options.cards),
        *nics(run, options.nics),
    ]
