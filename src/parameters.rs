// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The module's parameters, as they were when it was loaded.

use crate::abi;

/// Whether the RDMA core is one of MLNX_OFED 4.1 to 5.0.
pub(crate) fn peerdirect_support() -> bool {
    // SAFETY: The parameter has no write permission: it does not change after loading.
    unsafe { abi::nvpm_peerdirect_support != 0 }
}

/// Whether memory is pinned until deregistration, where the driver can do that.
pub(crate) fn persistent_api_support() -> bool {
    // SAFETY: The parameter has no write permission: it does not change after loading.
    unsafe { abi::nvpm_persistent_api_support != 0 }
}

/// The end of a message about memory that cannot be revoked: what to do, if that is not done.
pub(crate) fn persistent_instead() -> &'static str {
    match persistent_api_support() {
        true => "",
        false => "; load the module with persistent_api_support=1",
    }
}
