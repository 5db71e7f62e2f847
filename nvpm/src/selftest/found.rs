// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The GPUs and ports to test.
use nvpm_foreign::cuda::Gpu;
use nvpm_foreign::{cuda, environment, verbs};

use crate::read::machine::Machine;
use crate::selftest::failure::Absent;
use crate::selftest::port::{Port, usable_port};

const INSTALL_CUDA: &str = "Install the part of NVIDIA's driver that runs programs: libcuda1 (Debian), \
                            libnvidia-compute-NNN (Ubuntu), nvidia-driver-cuda-libs (RHEL), nvidia-compute-GNN (SLES). In \
                            a container: give it the GPUs.";
const BROKEN: &str = "See nvidia-smi, and the kernel's log: dmesg | grep NVRM. After an update of the driver: reboot.";
const NO_GPU: &str = "See lspci -d 10de: and nvidia-smi: is the driver loaded, CUDA_VISIBLE_DEVICES not empty, the GPU \
                      given to this container?";
const INSTALL_VERBS: &str =
    "Install the package libibverbs1 (Debian, Ubuntu), libibverbs (RHEL, SLES), or that of MLNX_OFED.";
const NO_DEVICE: &str = "See /sys/class/infiniband; load the device's driver and ib_uverbs. In a container: give it \
                         /dev/infiniband.";

/// Loads libcuda.
pub fn open_cuda() -> Result<cuda::Library, Absent> {
    // The GPUs are numbered in the same order as in nvidia-smi. Without /proc nobody knows whether this process has
    // further threads, and CUDA may number the GPUs in another order; the address of each is printed.
    environment::set_alone("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    let library =
        cuda::Library::open().map_err(|why| Absent::new(format!("no {} ({why})", cuda::LIBRARY), INSTALL_CUDA))?;
    match library.init() {
        Err(error) if error.code != cuda::NO_DEVICE => Err(broken(&error)),
        _ => Ok(library),
    }
}

fn broken(error: &cuda::Error) -> Absent {
    Absent::new(format!("no GPU that CUDA can use: {error}"), BROKEN)
}

pub struct Gpus<'l> {
    pub chosen: Vec<Gpu<'l>>,
    /// The PCI addresses of all GPUs.
    pub all: Vec<String>,
}

/// Returns the GPUs. WANTED chooses a single GPU by its number or its PCI address.
pub fn find_gpus<'l>(library: &'l cuda::Library, wanted: Option<&str>) -> Result<Gpus<'l>, Absent> {
    let gpus = library.gpus().map_err(|error| broken(&error))?;
    if gpus.is_empty() {
        return Err(Absent::new("no GPU", NO_GPU));
    }
    let all: Vec<String> = gpus.iter().map(|gpu| gpu.pci.clone()).collect();
    let Some(wanted) = wanted else { return Ok(Gpus { chosen: gpus, all }) };
    let there: Vec<String> = gpus.iter().map(|gpu| format!("{} ({})", gpu.index, gpu.pci)).collect();
    let address = wanted.to_lowercase();
    let is_chosen = |gpu: &Gpu| address.is_empty() || address == gpu.index.to_string() || address == gpu.pci;
    let chosen: Vec<Gpu> = gpus.into_iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        return Err(Absent::new(format!("no GPU {wanted}"), format!("These are there: {}", there.join(", "))));
    }
    Ok(Gpus { chosen, all })
}

pub struct Ports {
    pub library: verbs::Library,
    pub usable: Vec<Port>,
    /// The names of all devices.
    pub devices: Vec<String>,
    /// The devices that are not tested, with the reasons.
    pub not_tested: Vec<(String, String)>,
}

/// Returns a port of each device. WANTED chooses a single device.
pub fn find_ports(machine: &Machine, wanted: Option<&str>) -> Result<Ports, Absent> {
    let library =
        verbs::Library::open().map_err(|why| Absent::new(format!("no {} ({why})", verbs::LIBRARY), INSTALL_VERBS))?;
    // Without a list, the kernel has no verbs.
    let devices = library.device_names().unwrap_or_default();
    if devices.is_empty() {
        return Err(Absent::new("no RDMA device", NO_DEVICE));
    }
    let chosen: Vec<&String> = devices.iter().filter(|name| wanted.is_none_or(|wanted| *name == wanted)).collect();
    if let Some(wanted) = wanted.filter(|_| chosen.is_empty()) {
        let there = format!("These are there: {}", devices.join(", "));
        return Err(Absent::new(format!("no RDMA device {wanted}"), there));
    }
    let (mut usable, mut not_tested) = (Vec::new(), Vec::new());
    for name in chosen {
        match usable_port(machine, name) {
            Ok(port) => usable.push(port),
            Err(reason) => not_tested.push((name.clone(), reason)),
        }
    }
    Ok(Ports { library, usable, devices, not_tested })
}
