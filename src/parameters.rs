// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The module's parameters, as they were when the module was loaded.

use crate::abi::{nvpm_peerdirect_support, nvpm_persistent_api_support};

/// Returns true if the administrator has set the parameter for the RDMA cores of MLNX_OFED 4.1 to
/// 5.0.
pub(crate) fn peerdirect_support() -> bool {
    // SAFETY: The parameter does not change after loading, because its file is not writable.
    unsafe { nvpm_peerdirect_support != 0 }
}

/// Returns true if the module pins memory persistently wherever the driver supports persistent
/// pins.
pub(crate) fn persistent_api_support() -> bool {
    // SAFETY: The parameter does not change after loading, because its file is not writable.
    unsafe { nvpm_persistent_api_support != 0 }
}

/// Returns the last part of a message about memory that cannot be revoked. The text names the
/// parameter with which the memory can be registered. The text is empty if that parameter is set
/// already.
pub(crate) fn persistent_instead() -> &'static str {
    if persistent_api_support() {
        ""
    } else {
        "; load the module with persistent_api_support=1"
    }
}
