// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Products that take no part in GPUDirect RDMA, although their drivers are loaded. They are GPUs whose memory no other
//! device reaches, and RDMA devices whose drivers ask for no peer memory. A product that is not in a table takes part.
//!
//! Each row names its source. For a new product, add a row, and a machine in nvpm/tests/machines.
use std::sync::LazyLock;

use regex::Regex;

use crate::text::pattern;

/// Whether something can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Can {
    Yes,
    May,
    No,
}

/// NVIDIA numbers its products by generation. The open driver serves GPUs since Turing. The proprietary driver serves
/// only GPUs before Blackwell.
pub const TURING: i64 = 0x1E00;
pub const BLACKWELL: i64 = 0x2900;

/// The GPUs whose names match a pattern, whether they take part, the reason, and advice.
pub struct Product {
    pattern: &'static str,
    pub can: Can,
    pub why: &'static str,
    pub advice: &'static str,
}

const HOST_MEMORY: &str = "Register memory of cudaHostAlloc, which the GPU reaches too: docs/choosing.md.";
const OTHER_GPU: &str = "Use host memory, as programs do without GPUDirect RDMA (NCCL_NET_GDR_LEVEL=LOC, \
                         UCX_IB_GPU_DIRECT_RDMA=n), or a data-center or RTX professional GPU: docs/choosing.md.";

const GPUS: [Product; 4] = [
    // NVIDIA, DGX Spark porting guide; CUDA 13, GPUDirect RDMA 2.1.1 (docs/choosing.md)
    Product {
        pattern: r"\b(GB10|Thor|Orin|Xavier|Tegra)\b",
        can: Can::No,
        why: "an integrated GPU, whose memory neither peer memory nor dma-buf reaches",
        advice: HOST_MEMORY,
    },
    // NVIDIA, GPUDirect RDMA: "available on both Tesla and Quadro GPUs". In the reports
    // tinygrad/open-gpu-kernel-modules#46 and aikitoria/open-gpu-kernel-modules#20, registrations fail with Bad
    // address, because libcuda marks no memory of a GeForce for other devices. The kernel's driver does not change
    // this.
    Product {
        pattern: r"\bGeForce\b",
        can: Can::No,
        why: "a GeForce, whose memory NVIDIA's driver gives to no other device",
        advice: OTHER_GPU,
    },
    // The same page names none of these products.
    Product {
        pattern: r"\b(TITAN|CMP|P10[246]-|MX\d{3})",
        can: Can::May,
        why: "not one of the data-center and professional GPUs that NVIDIA names for GPUDirect RDMA",
        advice: "nvpm selftest shows whether it works here.",
    },
    // NVIDIA AI Enterprise, GPUDirect RDMA with vGPU: "only on a subset of vGPUs and guest OS releases". A vGPU's name
    // ends in its size and its series.
    Product {
        pattern: r"-\d+(-\d+)?[ABCQ](ME)?\d?$",
        can: Can::May,
        why: "a vGPU, of which only some types can, and the hypervisor decides",
        advice: "NVIDIA's page on GPUDirect with vGPU lists types and releases. nvpm selftest shows whether it works here.",
    },
];

/// Returns the row of a GPU that may not take part; None for all others.
pub fn product_of(model: &str) -> Option<&'static Product> {
    static PATTERNS: LazyLock<[Regex; 4]> =
        LazyLock::new(|| GPUS.each_ref().map(|row| pattern(&format!("(?i){}", row.pattern))));
    GPUS.iter().zip(PATTERNS.iter()).find(|(_, pattern)| pattern.is_match(model)).map(|(row, _)| row)
}

/// The drivers of PCI devices that ask the RDMA core for peer memory. mlx5 asks wherever the core has peer memory.
/// Other drivers ask only in versions from their vendors, so they are not listed (see the contracts of the core in
/// docs/defects.md).
pub const ASK: [&str; 1] = ["mlx5_core"];
/// The drivers that have a peer memory of their own. They ask NVIDIA's driver directly, and not the RDMA core. The
/// source for EFA is `efa_p2p.c` in amzn-drivers.
pub const OWN_PEER_MEMORY: [&str; 1] = ["efa"];
