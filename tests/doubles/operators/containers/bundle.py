# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""bundle.py ROOT DAEMONSET [PATCH...]: prints the settings with which crun runs the pod of a
DaemonSet. ROOT is the file system of the image.

A kubelet gives a container the same settings: the capabilities, the mounts with their propagation,
the environment, and the defaults of container runtimes for a pod without privileges."""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

# The defaults of containerd for a pod that is not privileged.
MASKED = ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"]
READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
PROPAGATION = {"HostToContainer": "rslave", "Bidirectional": "rshared"}
# Where the node has the files of Secrets, in a directory for each.
SECRETS = "/run/secrets"
# A patch finds an element of a list by the value of one of these keys.
KEYS = ("mountPath", "name")


def merged(old: Any, new: Any) -> Any:
    """Returns OLD with the changes of NEW, as `kubectl patch` merges them."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: merged(old.get(key), value) for key, value in new.items()}}
    if isinstance(old, list) and isinstance(new, list) and new and isinstance(new[0], dict):
        key = next(key for key in KEYS if key in new[0])
        found = {one[key]: one for one in old}
        for one in new:
            found[one[key]] = merged(found.get(one[key]), one)
        return list(found.values())
    return new


def daemon_set(file: str, patches: list[str]) -> dict[str, Any]:
    documents = yaml.safe_load_all(Path(file).read_text(encoding="utf-8"))
    found: dict[str, Any] = next(one for one in documents if one["kind"] == "DaemonSet")
    for patch in patches:
        found = merged(found, yaml.safe_load(Path(patch).read_text(encoding="utf-8")))
    return found


def path_of(volume: dict[str, Any]) -> str:
    """Returns the node's directory of a volume. A Secret that is optional and does not exist is an
    empty directory."""
    if "secret" in volume:
        return f"{SECRETS}/{volume['secret']['secretName']}"
    path: str = volume["hostPath"]["path"]
    return path


def mounts(pod: dict[str, Any], container: dict[str, Any]) -> list[dict[str, Any]]:
    paths = {volume["name"]: path_of(volume) for volume in pod["volumes"]}
    return [
        {
            "destination": mount["mountPath"],
            "type": "bind",
            "source": paths[mount["name"]],
            "options": [
                "rbind",
                PROPAGATION.get(mount.get("mountPropagation", ""), "rprivate"),
                "ro" if mount.get("readOnly") else "rw",
            ],
        }
        for mount in container["volumeMounts"]
    ]


def settings(root: str, found: dict[str, Any]) -> dict[str, Any]:
    pod = found["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    secure = container["securityContext"]
    assert secure["capabilities"]["drop"] == ["ALL"] and not pod.get("hostNetwork")
    allowed = [f"CAP_{name}" for name in secure["capabilities"]["add"]]
    variables = {one["name"]: one["value"] for one in container["env"]}
    variables["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    namespaces = ["mount", "uts", "ipc"] + ([] if pod.get("hostPID") else ["pid"])
    return {
        "ociVersion": "1.0.2",
        "process": {
            "args": ["/usr/bin/tini", "--", "/usr/bin/nv-peer-mem", *container["args"]],
            "cwd": "/",
            "env": [f"{name}={value}" for name, value in variables.items()],
            "user": {"uid": secure["runAsUser"], "gid": 0},
            "noNewPrivileges": not secure["allowPrivilegeEscalation"],
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), allowed),
        },
        "root": {"path": root, "readonly": False},
        "hostname": "nv-peer-mem-x7k2p",
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
            {
                "destination": "/sys",
                "type": "sysfs",
                "source": "sysfs",
                "options": ["nosuid", "noexec", "nodev", "ro"],
            },
            {"destination": "/run", "type": "tmpfs", "source": "tmpfs"},
            *mounts(pod, container),
        ],
        "linux": {
            "namespaces": [{"type": name} for name in namespaces],
            # Mounts that appear on the node later also appear in the container.
            "rootfsPropagation": "rslave",
            "maskedPaths": MASKED,
            "readonlyPaths": READ_ONLY,
        },
    }


if __name__ == "__main__":
    json.dump(settings(sys.argv[1], daemon_set(sys.argv[2], sys.argv[3:])), sys.stdout, indent=1)
