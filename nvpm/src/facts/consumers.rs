// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The programs that register GPU memory: the ways that each tries, in the program's own order, and the conditions of
//! each way. The build makes the rows of data/programs.table. outcomes.rs applies them to this machine.
use crate::facts::outcomes::Device;

pub const EFA: &str = "efa";
/// The end of a program that finds no way.
pub const FAILS: &str = "fails";
/// The name that the marker provides, as a file and in the list of modules.
pub const OTHER_NAME: &str = "/sys/module/nvidia_peermem/version";
const LOADED: &str = "nvidia_peermem in /proc/modules";

/// A way that a program tries, and its conditions.
pub struct Try {
    /// The way is dma-buf. Otherwise it is a pointer, for `ibv_reg_mr()`, which `nv_peer_mem`, `nvidia_peermem` or the
    /// device's own driver serves.
    pub dma_buf: bool,
    /// The program takes the way only if one of these signs is there. A program without signs tries the way without
    /// looking.
    pub looks_for: &'static [&'static str],
    /// The setting that makes the program take the way. Without the setting, it passes the way over.
    pub setting: &'static str,
    /// Parts of the names of devices with which the program takes the way. Empty for any name.
    pub names: &'static [&'static str],
    /// The drivers of the devices with which the program takes the way. Empty for any driver.
    drivers: &'static [&'static str],
    /// The drivers and the PCI device numbers with which the program passes the way over.
    not_with: &'static [&'static str],
    not_on: &'static [&'static str],
    /// The program asks only the GPU's driver for dma-buf. The program then chooses dma-buf even if the RDMA device
    /// cannot register a dma-buf.
    pub gpu_alone: bool,
    /// The program tries its next way after a refused registration. Otherwise it gives up.
    pub goes_on: bool,
}

impl Try {
    /// Returns whether the program tries this way with the RDMA device.
    pub fn takes(&self, device: &Device) -> bool {
        let (driver, number) = (device.driver.as_str(), device.number.as_str());
        (self.drivers.is_empty() || self.drivers.contains(&driver))
            && !self.not_with.contains(&driver)
            && !self.not_on.contains(&number)
            && (self.names.is_empty() || self.names.iter().any(|name| device.name.contains(name)))
    }
}

pub struct Program {
    pub name: &'static str,
    pub tries: &'static [Try],
    pub without: &'static str,
    /// The setting that makes the program skip dma-buf.
    pub skip: &'static str,
    /// The drivers of the only devices that the program can use. Empty if it can use others.
    pub only: &'static [&'static str],
    /// The reason for which the program cannot use EFA. Empty if it can use EFA.
    pub no_efa: &'static str,
    /// The program reaches EFA in another way, which has a row of its own.
    pub has_efa_row: bool,
    /// The way out for EFA: a setting, or another build.
    pub instead: &'static str,
    /// An option of the NVIDIA driver without which the program refuses to start.
    pub option: &'static str,
    pub advice: &'static str,
    /// The first screen names the program. The screen has no room for all.
    pub common: bool,
}

impl Program {
    /// Returns whether the program was made for EFA alone.
    pub fn is_for_efa(&self) -> bool {
        self.only == [EFA]
    }

    /// Returns all signs of peer memory for which the program looks.
    pub fn signs(&self) -> Vec<&'static str> {
        self.tries.iter().flat_map(|attempt| attempt.looks_for).copied().collect()
    }

    pub fn looks_for_marker(&self) -> bool {
        self.signs().iter().any(|sign| [OTHER_NAME, LOADED].contains(sign))
    }
}

const NO_TRY: Try = Try {
    dma_buf: false,
    looks_for: &[],
    setting: "",
    names: &[],
    drivers: &[],
    not_with: &[],
    not_on: &[],
    gpu_alone: false,
    goes_on: false,
};

const NO_PROGRAM: Program = Program {
    name: "",
    tries: &[],
    without: FAILS,
    skip: "",
    only: &[],
    no_efa: "",
    has_efa_row: false,
    instead: "",
    option: "",
    advice: "",
    common: false,
};

include!(concat!(env!("OUT_DIR"), "/programs.rs"));
