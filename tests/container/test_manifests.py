# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The manifests agree with Kubernetes' schemas, with and without each patch, and with the image."""

import re
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from keeper import source

TOP = Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests/doubles/operators/containers"))

import bundle  # noqa: E402

CONTAINER = TOP / "container"
DAEMON_SET = str(CONTAINER / "daemonset.yaml")
PATCHES = [str(CONTAINER / f"{name}.yaml") for name in ("label", "owners")]


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((CONTAINER / name).read_text(encoding="utf-8")))


def valid(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, "1.37", strict=True)


@pytest.mark.parametrize("patches", [[], PATCHES[:1], PATCHES[1:], PATCHES])
def test_valid(patches: list[str]) -> None:
    found = bundle.daemon_set(DAEMON_SET, patches)
    valid(found)
    (container,) = found["spec"]["template"]["spec"]["containers"]
    name = next(one["value"] for one in container["env"] if one["name"] == "NVPM_NAME")
    label = PATCHES[0] in patches
    assert name == ("nv_peer_mem" if label else "nvidia_peermem")
    assert (
        "nvidia.com/gpu.deploy.client" in found["spec"]["template"]["spec"]["nodeSelector"]
    ) == (label)
    mounts = {
        mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]
    }
    # Under its own name, the pod writes a hook for the OFED container.
    assert mounts.pop("/run/mellanox") != label
    # The cache, and the state that the node reads.
    written = [mounts.pop(path) for path in ("/var/lib/nv_peer_mem", "/run/nv-peer-mem")]
    assert not any(written) and all(mounts.values())


def test_a_mistake_is_noticed() -> None:
    found = bundle.daemon_set(DAEMON_SET, [])
    found["spec"]["template"]["spec"]["containers"][0]["capabilities"] = ["SYS_MODULE"]
    with pytest.raises(kubernetes_validate.ValidationError):
        valid(found)


def test_least_privileges() -> None:
    spec = bundle.daemon_set(DAEMON_SET, [])["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    secure = container["securityContext"]
    assert secure["capabilities"] == {"drop": ["ALL"], "add": ["SYS_MODULE"]}
    assert not secure["allowPrivilegeEscalation"] and "privileged" not in secure
    assert not {"hostPID", "hostNetwork", "hostIPC"} & spec.keys()
    assert not spec["automountServiceAccountToken"]
    # The driver's manager waits 300 s for pods of its clients.
    assert spec["terminationGracePeriodSeconds"] < 300


def test_namespace() -> None:
    namespace, quota, daemon_set = documents("daemonset.yaml")
    valid(namespace)
    valid(quota)
    for one in (quota, daemon_set):
        assert one["metadata"]["namespace"] == namespace["metadata"]["name"]
    (scope,) = quota["spec"]["scopeSelector"]["matchExpressions"]
    assert scope["values"] == [daemon_set["spec"]["template"]["spec"]["priorityClassName"]]


def test_the_image_has_what_is_called() -> None:
    (container,) = bundle.daemon_set(DAEMON_SET, [])["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["exec"]["command"] == ["nv-peer-mem", "probe"]
    port = re.search(r"const PORT: u16 = (\d+);", source("settings"))
    assert port and container["ports"][0]["containerPort"] == int(port[1])
    version = re.search(r'PACKAGE_VERSION="(.*)"', (TOP / "dkms.conf").read_text(encoding="utf-8"))
    assert version and container["image"].endswith(f":{version[1]}")


def test_pod_monitor() -> None:
    """The schema of the Prometheus Operator is not among Kubernetes' own. Its selector and its port
    are those of the pods, and the labels that change with each pod go."""
    (monitor,) = documents("podmonitor.yaml")
    assert (monitor["apiVersion"], monitor["kind"]) == ("monitoring.coreos.com/v1", "PodMonitor")
    pods = bundle.daemon_set(DAEMON_SET, [])
    assert monitor["metadata"]["namespace"] == pods["metadata"]["namespace"]
    labels = pods["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"] == labels
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    (container,) = pods["spec"]["template"]["spec"]["containers"]
    assert endpoint["port"] in {port["name"] for port in container["ports"]}
    node, instance, dropped = endpoint["relabelings"]
    assert node["targetLabel"] == "node" and instance["targetLabel"] == "instance"
    # The label `pod` of nv_peer_mem_pod_registrations is that of the program.
    assert dropped["action"] == "labeldrop" and "pod" in dropped["regex"].split("|")


def test_a_share_of_the_nodes_is_updated_at_a_time() -> None:
    update = bundle.daemon_set(DAEMON_SET, [])["spec"]["updateStrategy"]
    assert update["rollingUpdate"]["maxUnavailable"] == "5%"


def test_kmm() -> None:
    """KMM's schema is not among Kubernetes' own. The names of the fields are those of its API."""
    (module,) = documents("kmm.yaml")
    assert (module["apiVersion"], module["kind"]) == ("kmm.sigs.x-k8s.io/v1beta1", "Module")
    container = module["spec"]["moduleLoader"]["container"]
    assert container["modprobe"] == {"moduleName": "nvidia_peermem", "dirName": "/opt"}
    assert set(container["kernelMappings"][0]) == {"regexp", "containerImage"}
    assert module["spec"]["selector"]


def test_values() -> None:
    (values,) = documents("values-gpu-operator.yaml")
    assert values == {"driver": {"rdma": {"enabled": False}}}
    (policy,) = documents("values-network-operator.yaml")
    (variable,) = policy["spec"]["ofedDriver"]["env"]
    assert variable["name"] == "OPENIBD_PRE_STOP"
    assert variable["value"] == "/run/mellanox/drivers/nv_peer_mem/pre-stop"
