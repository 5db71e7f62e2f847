# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints results: for people as they come, for machines at the end."""

import json

SCHEMA = 1
FREED = {
    "revoked": "freed: the device was refused (revocable)",
    "pinned": "freed: pinned until deregistered (persistent)",
}


def amount(size):
    for unit, name in (20, "MiB"), (10, "KiB"):
        if size % (1 << unit) == 0:
            return "%d %s" % (size >> unit, name)
    return "%d bytes" % size


def speed(size, seconds):
    megabytes = size / max(seconds, 1e-9) / 1e6
    return "%.1f GB/s" % (megabytes / 1000) if megabytes >= 1000 else f"{megabytes:.1f} MB/s"


def plural(count, what):
    return "%d %s%s" % (count, what, "" if count == 1 else "s")


class Text:
    def begin(self, options, gpus, devices):
        print(
            "nvpm selftest: %s, %s; %s each way, seed %d"
            % (
                plural(gpus, "GPU"),
                plural(devices, "RDMA device"),
                amount(options.size),
                options.seed,
            ),
            flush=True,
        )

    def not_tested(self, device, reason):
        print(f"      {device}: not tested: {reason}", flush=True)

    def pair(self, trial, facts):
        pair = "GPU %d %s, %s/%d" % (
            trial.gpu.index,
            trial.gpu.pci,
            trial.port.device,
            trial.port.number,
        )
        if trial.failure is None:
            print(
                f"  ok  {pair}: to GPU {amount(trial.size)}, {speed(trial.size, trial.to_gpu)}; from GPU {amount(trial.size)}, {speed(trial.size, trial.from_gpu)}; {FREED[trial.freed]}"
            )
        else:
            print(f" !!   {pair}: {trial.failure}")
        for fact in facts:
            print(f"        status: {fact.section}: {fact.name}: {fact.value}")
            if fact.advice:
                print("          -> " + fact.advice)
        print(end="", flush=True)

    def absent(self, missing):
        for one in missing:
            print(f"nvpm selftest: nothing was tested: {one.what}\n  -> {one.advice}")

    def end(self, _code, passed, failed):
        if failed:
            print("nvpm selftest: %d of %s FAILED" % (failed, plural(passed + failed, "pair")))
        elif passed:
            print("nvpm selftest: passed, {}".format(plural(passed, "pair")))


class Json:
    """One object. Speeds are bytes in a second."""

    def __init__(self):
        self.said = {"schema": SCHEMA, "pairs": [], "not_tested": [], "absent": []}

    def begin(self, options, _gpus, _devices):
        self.said.update(size=options.size, seed=options.seed)

    def not_tested(self, device, reason):
        self.said["not_tested"].append({"device": device, "reason": reason})

    def pair(self, trial, facts):
        to_gpu, from_gpu = (
            seconds and int(trial.size / max(seconds, 1e-9))
            for seconds in (trial.to_gpu, trial.from_gpu)
        )
        self.said["pairs"].append(
            {
                "gpu": trial.gpu.index,
                "pci": trial.gpu.pci,
                "device": trial.port.device,
                "port": trial.port.number,
                "passed": trial.failure is None,
                "failure": trial.failure,
                "to_gpu": to_gpu,
                "from_gpu": from_gpu,
                "freed": trial.freed,
                "status": [
                    {
                        key: getattr(fact, key)
                        for key in ("section", "name", "verdict", "value", "advice")
                    }
                    for fact in facts
                ],
            }
        )

    def absent(self, missing):
        self.said["absent"] = [{"what": one.what, "advice": one.advice} for one in missing]

    def end(self, code, passed, failed):
        self.said.update(exit_code=code, passed=passed, failed=failed)
        print(json.dumps(self.said, indent=2, sort_keys=True))
