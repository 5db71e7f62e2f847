// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The files that one lock of the kernel protects. If one file of such an area has not answered, the others are not
//! read.
use std::sync::LazyLock;

use regex::Regex;

use crate::text::pattern;

pub const NVIDIA_DRIVER: &str = "NVIDIA driver";

/// A PCI address, and the attributes for which the kernel asks or wakes the device.
const ASKED: &str =
    r"([0-9a-f]{4,5}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/(?:config|vpd|(?:current|max)_link_\w+|resource\d_resize)$";

/// The beginnings of paths with the names of their areas. In /sys, a file also has a longer path, which has all devices
/// above it.
static AREAS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let pci = format!("^/sys/(?:bus/pci/devices|devices/.*)/{ASKED}");
    [
        ("^/proc/driver/nvidia/gpus/", NVIDIA_DRIVER),
        ("^/proc/driver/nvidia/", "suspend lock of the NVIDIA driver"),
        ("^/proc/driver/nv_peer_mem/", "nv_peer_mem"),
        ("^/sys/(?:class|devices/.*)/infiniband/([^/]+)/", "RDMA device {}"),
        ("^/sys/(?:class|devices/.*)/net/([^/]+)/", "network interface {}"),
        ("^/sys/(?:class|devices/.*)/nvme/([^/]+)/", "NVMe controller {}"),
        (pci.as_str(), "PCI device {}"),
        ("^/sys/firmware/", "firmware"),
        ("^/proc/[0-9]+/maps$", "process that maps memory"),
        ("^/rdma-netlink/", "RDMA core"),
        ("^/nvml/", "NVML"),
    ]
    .into_iter()
    .map(|(text, name)| (pattern(text), name))
    .collect()
});

/// Returns the name of the part of the kernel that answers this file. Returns the path itself for a file that shares no
/// lock with others.
pub fn area_of(path: &str) -> String {
    for (pattern, name) in AREAS.iter() {
        if let Some(found) = pattern.captures(path) {
            return name.replace("{}", found.get(1).map_or("", |device| device.as_str()));
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_lock_have_one_area() {
        for (path, area) in [
            ("/proc/driver/nvidia/gpus/0000:3b:00.0/information", NVIDIA_DRIVER),
            ("/proc/driver/nvidia/params", "suspend lock of the NVIDIA driver"),
            ("/sys/class/infiniband/mlx5_0/ports/1/state", "RDMA device mlx5_0"),
            ("/sys/devices/pci0000:00/0000:00:01.0/infiniband/mlx5_1/node_guid", "RDMA device mlx5_1"),
            ("/sys/bus/pci/devices/0000:3b:00.0/config", "PCI device 0000:3b:00.0"),
            ("/sys/bus/pci/devices/0000:3b:00.0/max_link_speed", "PCI device 0000:3b:00.0"),
            ("/sys/bus/pci/devices/0000:3b:00.0/resource1_resize", "PCI device 0000:3b:00.0"),
            ("/sys/bus/pci/devices/0000:3b:00.0/vendor", "/sys/bus/pci/devices/0000:3b:00.0/vendor"),
            ("/proc/17/maps", "process that maps memory"),
            ("/proc/17/smaps", "/proc/17/smaps"),
            ("/rdma-netlink/mr/0", "RDMA core"),
        ] {
            assert_eq!(area_of(path), area);
        }
    }
}
