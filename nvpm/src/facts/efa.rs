// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says what EFA lacks on this node to reach GPU memory. EFA's driver asks no client of the RDMA core. It asks NVIDIA's
//! driver itself, by the module `efa_nv_peermem`, or takes a dma-buf.
use crate::facts::driver::is_proprietary;
use crate::read::dma_buf::version_numbers;
use crate::read::machine::{Machine, modinfo};
use crate::read::pci::gpus;
use crate::read::place::without_gpudirect;
use crate::read::products::TURING;

/// Linux since commit 9011e49d54dc (6.6) and these stable versions resolves no symbols of proprietary modules for
/// modules that use GPL-only symbols, as EFA's driver does. The source is awslabs/amazon-eks-ami#1494. Other series
/// older than 6.6 count as not changed.
const CHANGED: &[((u64, u64), u64)] = &[((4, 14), 326), ((5, 4), 257), ((5, 10), 195), ((5, 15), 131), ((6, 1), 52)];
const CHANGED_SINCE: (u64, u64) = (6, 6);

pub const OTHER_INSTANCE: &str = "Use an instance type with GPUDirect RDMA (p4d, p5, p6 and their relatives), or host \
                              memory: NCCL and libfabric go on so by themselves.";
const NOTHING_SERVES: &str = "efa finds no NVIDIA driver that serves it";
const OPEN_DRIVER: &str = "Install NVIDIA's open kernel modules (nvidia-open), and AWS's newest EFA installer, whose \
                           efa takes dma-bufs or brings efa_nv_peermem. nv_peer_mem is not needed.";
const TOO_OLD_GPU: &str = "NVIDIA's open driver, which this kernel needs, does not serve this GPU: boot a kernel \
                           before that change, or use host memory.";
const LOAD_BEFORE: &str = "Load NVIDIA's driver before efa: modprobe -r efa && modprobe efa stops the programs that \
                           use it. If the file p2p stays empty, run AWS's newest EFA installer. nv_peer_mem is not \
                           needed.";
const LOAD_PEERMEM: &str = "modprobe efa_nv_peermem, which EFA's driver asks beside NVIDIA's open driver. nv_peer_mem \
                            is not needed.";
const INSTALL: &str = "Run AWS's newest EFA installer: its efa takes dma-bufs (kernel 5.12 or later), and its \
                       efa_nv_peermem serves older kernels. nv_peer_mem is not needed.";

/// Returns why EFA does not reach GPU memory by itself, and advice.
pub fn lacks(machine: &Machine) -> (String, &'static str) {
    let why = without_gpudirect(machine);
    if !why.is_empty() {
        return (why.to_string(), OTHER_INSTANCE);
    }
    if is_proprietary(machine) {
        if !is_changed(&machine.kernel) {
            return (NOTHING_SERVES.to_owned(), LOAD_BEFORE);
        }
        let is_old = gpus(machine).iter().any(|gpu| 0 < gpu.product && gpu.product < TURING);
        let refused = format!(
            "efa finds no NVIDIA driver that serves it: kernel {} does not let efa link to the proprietary one",
            machine.kernel
        );
        return (refused, if is_old { TOO_OLD_GPU } else { OPEN_DRIVER });
    }
    if !modinfo(machine, "efa_nv_peermem").is_empty() && !machine.loaded("efa_nv_peermem") {
        return (NOTHING_SERVES.to_owned(), LOAD_PEERMEM);
    }
    (NOTHING_SERVES.to_owned(), INSTALL)
}

/// Returns whether this kernel keeps EFA's driver from NVIDIA's proprietary one.
fn is_changed(kernel: &str) -> bool {
    let mut numbers = version_numbers(kernel, 3).into_iter().chain(std::iter::repeat(0));
    let mut next = || numbers.next().unwrap_or_default();
    let (series, patch) = ((next(), next()), next());
    let since = CHANGED.iter().find(|(changed, _)| *changed == series);
    series >= CHANGED_SINCE || since.is_some_and(|(_, first)| patch >= *first)
}
