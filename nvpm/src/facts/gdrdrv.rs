// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Whether gdrcopy's module was linked to a module with empty functions. Packages that are built without NVIDIA's
//! driver contain `nv_p2p_dummy`, which lets gdrdrv load, and then no pin works (NVIDIA/gdrcopy#334).
use crate::facts::fact::{Facts, warn};
use crate::read::machine::Machine;

const DUMMY: &str = "nv_p2p_dummy";
const REBUILD: &str = "Build gdrdrv for the installed driver (the package gdrdrv-dkms), then modprobe -r gdrdrv \
                       nv_p2p_dummy, and modprobe gdrdrv.";

pub fn facts(machine: &Machine, facts: &mut Facts) {
    if machine.exists(&format!("/sys/module/{DUMMY}/holders/gdrdrv")) {
        let value = format!("it uses {DUMMY}, whose functions are empty: gdrcopy pins no GPU memory");
        facts.add(warn("driver", "gdrdrv", value).advised(REBUILD));
    }
}
