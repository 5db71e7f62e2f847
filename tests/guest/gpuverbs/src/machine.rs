// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The machine that a command runs on: its GPU and its RDMA device.

use std::sync::Arc;

use crate::args::{Args, Opt};
use crate::failure::Failure;
use crate::gpu::{self, Gpu};
use crate::output;
use crate::verbs::{self, Device, Port};

pub const OPTIONS: &[Opt] = &[verbs::DEVICE_OPTION, gpu::OPTION];

pub struct Machine {
    pub gpu: Gpu,
    pub device: Arc<Device>,
}

impl Machine {
    pub fn open(args: &Args) -> Result<Self, Failure> {
        let machine = Self {
            gpu: Gpu::open(args)?,
            device: Device::open(args)?,
        };
        output::value("device", machine.device.name());
        Ok(machine)
    }

    /// For commands that transfer: these take [`verbs::PORT_OPTIONS`] too.
    pub fn port(&self, args: &Args) -> Result<Port, Failure> {
        Port::query(&self.device, args)
    }
}
