// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The module's parameters, as they were when the module was loaded.

use crate::abi::{nvpm_peerdirect_support, nvpm_persistent_api_support};

/// Whether the RDMA core is one of MLNX_OFED 4.1 to 5.0.
pub(crate) fn peerdirect_support() -> bool {
    // SAFETY: The parameter has no write permission: it does not change after loading.
    unsafe { nvpm_peerdirect_support != 0 }
}

/// Whether memory is pinned until deregistration, if the driver can do that.
pub(crate) fn persistent_api_support() -> bool {
    // SAFETY: The parameter has no write permission: it does not change after loading.
    unsafe { nvpm_persistent_api_support != 0 }
}

/// Returns the end of a message about memory that cannot be revoked: the remedy, unless it is
/// applied already.
pub(crate) fn persistent_instead() -> &'static str {
    match persistent_api_support() {
        true => "",
        false => "; load the module with persistent_api_support=1",
    }
}
