// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The engine of the container in which nvpm runs, and the options by which it gives a container devices and rights.
use crate::read::machine::Machine;
use crate::read::place::container;

const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Docker,
    Podman,
    Kubernetes,
    Apptainer,
    Nspawn,
    Lxc,
    /// A container of which nothing shows the engine.
    Unknown,
}

/// Returns the engine; None outside of containers. A pod's container may have the file of another engine, which its
/// node uses.
pub fn engine(machine: &Machine) -> Option<Engine> {
    let kind = container(machine);
    if kind.is_empty() {
        return None;
    }
    if machine.exists(SERVICE_ACCOUNT) {
        return Some(Engine::Kubernetes);
    }
    Some(match kind.as_str() {
        "docker" => Engine::Docker,
        "podman" => Engine::Podman,
        "apptainer" => Engine::Apptainer,
        "systemd-nspawn" => Engine::Nspawn,
        "lxc" | "lxc-libvirt" => Engine::Lxc,
        _ => Engine::Unknown,
    })
}

impl Engine {
    /// Returns how the container gets the files of RDMA devices.
    pub fn to_give_devices(self) -> &'static str {
        match self {
            Self::Docker => "docker run --device /dev/infiniband",
            Self::Podman => "podman run --device /dev/infiniband",
            Self::Kubernetes => "RDMA resource of a device plugin in the pod's resources.limits",
            Self::Apptainer => "apptainer run --bind /dev/infiniband",
            Self::Nspawn => "systemd-nspawn --bind=/dev/infiniband --property=DeviceAllow=char-infiniband_verbs",
            Self::Lxc => "lxc config device add NAME uverbs0 unix-char source=/dev/infiniband/uverbs0",
            Self::Unknown => "--device /dev/infiniband with docker or podman, an RDMA device plugin in Kubernetes",
        }
    }

    /// Returns how the container gets the right to lock memory.
    pub fn to_lock_memory(self) -> &'static str {
        match self {
            Self::Docker => "docker run --ulimit memlock=-1",
            Self::Podman => "podman run --ulimit memlock=-1, without root at most the user's own limit",
            Self::Kubernetes => {
                "LimitMEMLOCK=infinity for containerd or crio on the node, and IPC_LOCK in the pod's \
                 securityContext.capabilities.add"
            }
            Self::Apptainer => "ulimit -l unlimited in the shell or the job that starts apptainer",
            Self::Nspawn => "systemd-nspawn --rlimit=RLIMIT_MEMLOCK=infinity",
            Self::Lxc => "lxc config set NAME limits.kernel.memlock unlimited",
            Self::Unknown => {
                "--ulimit memlock=-1 with docker or podman; LimitMEMLOCK=infinity for the engine's service"
            }
        }
    }

    /// Returns how the container gets GPUs.
    pub fn to_give_gpus(self) -> &'static str {
        match self {
            Self::Docker => "docker run --gpus all",
            Self::Podman => "podman run --device nvidia.com/gpu=all",
            Self::Kubernetes => "nvidia.com/gpu in the pod's resources.limits",
            Self::Apptainer => "apptainer run --nv",
            Self::Nspawn | Self::Lxc | Self::Unknown => "--gpus, or the device plugin",
        }
    }
}
