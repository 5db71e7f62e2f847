// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Advice for a node whose RDMA core has no peer memory. The advice depends on the cause. It first says what it would
//! stop, because a restart of the RDMA stack stops the networks of the stack's cards.
use std::rc::Rc;

use crate::facts::driver::is_proprietary;
use crate::facts::efa;
use crate::read::kernel_symbols::dma_buf_in;
use crate::read::machine::{Machine, modinfo};
use crate::read::network::{holders, stopped};
use crate::read::pci::{gpus, nics};
use crate::read::peers::{Asks, asks};
use crate::read::place::{container, driver_in_container, image_based};
use crate::read::products::{Can, OWN_PEER_MEMORY, TURING};

const RESTART: &str = "/etc/init.d/openibd restart";

/// The directories of modules that an OFED has installed, below the directory of the kernel's modules.
const OF_OFED: &[&str] = &["/updates/", "/extra/", "/weak-updates/", "/mlnx-ofa_kernel/"];

const IN_CONTAINER: &str = "Do it on the node: the RDMA core belongs to the node, not to this container.";
const OPEN_DRIVER: &str = " Or install NVIDIA's open kernel modules: this RDMA core takes dma-buf, which serves NCCL, \
                           UCX and others without peer memory.";
const OPERATOR: &str = " The Network Operator's OFED container restarts the stack by itself: give the node another \
                        network first, or install OFED before the node joins.";

/// Returns how to load another RDMA stack on this machine, and what such a restart would stop.
pub fn restart(machine: &Machine) -> Rc<String> {
    machine.once(compute_restart)
}

fn compute_restart(machine: &Machine) -> String {
    let stopped = stopped(machine);
    if !stopped.is_empty() {
        return format!(
            "reboot. Do not run {RESTART} on this node from afar: it takes away {stopped} until the new drivers are up"
        );
    }
    let holders = holders(machine).join(", ");
    if holders.is_empty() {
        return format!("restart it ({RESTART})");
    }
    format!("reboot: {RESTART} cannot unload the stack while {holders} use it")
}

/// Returns the version of the installed OFED, as `ofed_info` prints it.
pub fn ofed(machine: &Machine) -> Rc<String> {
    machine.once(compute_ofed)
}

fn compute_ofed(machine: &Machine) -> String {
    machine.run(&["ofed_info", "-s"]).1.trim_end_matches(':').trim().to_owned()
}

/// Returns how this node can get an RDMA core with peer memory.
pub fn get_core(machine: &Machine) -> String {
    if !container(machine).is_empty() {
        return IN_CONTAINER.to_owned();
    }
    let nics = nics(machine);
    let asking: Vec<Asks> = nics.iter().map(|nic| asks(machine, nic)).collect();
    if let (Some(nic), Some(first)) = (nics.first(), asking.first()) {
        if asking.iter().all(|one| one.can == Can::No) {
            if OWN_PEER_MEMORY.contains(&nic.driver(machine).as_str()) {
                return efa::lacks(machine).1.to_owned();
            }
            return format!(
                "No OFED helps: {}. Only dma-buf serves this RDMA device: a kernel with dma-buf for its driver and \
                 NVIDIA's open driver (docs/choosing.md).",
                first.why
            );
        }
    }
    if !ofed(machine).is_empty() {
        return other_core(machine);
    }
    let image = image_based(machine);
    if !image.is_empty() {
        return format!(
            "{image} is one image: put OFED into the image (docs/kubernetes.md: the Network Operator's container, or a \
             layered image), or use programs with dma-buf."
        );
    }
    format!(
        "Install MLNX_OFED or DOCA-OFED, then {}; or boot a kernel whose own RDMA core has peer memory (Ubuntu's \
         linux-nvidia); the kernel's own RDMA core is not enough.{}",
        restart(machine),
        others(machine)
    )
}

/// Returns advice for a node with an OFED, whose RDMA core is not the one that is loaded.
fn other_core(machine: &Machine) -> String {
    let (ofed, restart) = (ofed(machine), restart(machine));
    let fields = modinfo(machine, "ib_core");
    let file = fields.get("filename").map(String::as_str).unwrap_or_default();
    if file.is_empty() || OF_OFED.iter().any(|directory| file.contains(directory)) {
        return format!(
            "{ofed} is installed, but another RDMA core is loaded, from the kernel's own files: {restart}. If the same \
             one is loaded again: make the initramfs anew (update-initramfs -u, or dracut -f), and keep udev from \
             loading the kernel's own modules first (echo 'blacklist mlx5_core' and 'blacklist mlx5_ib' \
             >/etc/modprobe.d/inbox-rdma.conf; openibd loads OFED's)."
        );
    }
    // OFED's packages for dkms are mlnx-ofed-kernel and others with this beginning.
    let by_dkms = !machine.glob(&["/var/lib/dkms/mlnx-*", "/var/lib/dkms/doca-*"]).is_empty();
    let kernel = &machine.kernel;
    let build = if by_dkms {
        format!("Build it for this kernel (dkms autoinstall -k {kernel}), or install it again")
    } else {
        "Install it again".to_owned()
    };
    format!(
        "{ofed} is installed, but not for kernel {kernel}: modinfo finds {file}. {build} with --add-kernel-support; then \
         {restart}."
    )
}

/// Returns advice to use the open driver if that helps on this node. Adds a warning if a restart would stop networks or
/// storage, and the GPU Operator runs here.
fn others(machine: &Machine) -> String {
    let proprietary = is_proprietary(machine);
    let new = gpus(machine).iter().all(|gpu| gpu.product >= TURING);
    let driver = if proprietary && new && !dma_buf_in(machine).is_empty() { OPEN_DRIVER } else { "" };
    let operator = if !stopped(machine).is_empty() && driver_in_container(machine) { OPERATOR } else { "" };
    format!("{driver}{operator}")
}
