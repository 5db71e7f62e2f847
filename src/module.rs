// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Loads and unloads the module. Loading registers the clients and creates the files, and unloading
//! removes them in the right order.

use core::{ffi::CStr, ptr::null};

use kernel::prelude::*;

use crate::{
    abi,
    errno::{number, to_result},
    global::Installed,
    map_type, parameters,
    peer_client::{self, Client, RegisteredClient},
    persistent, registry, revocable,
};

/// Returns the clients' names, in the order of [`registry::Kind`]. A client without a name is
/// not registered. One client is always called `nv_mem`, because programs and scripts look for that
/// name. Without `persistent_first`, the persistent client has the name that it has in
/// nvidia-peermem, `nv_mem_nc`.
fn client_names(persistent_first: bool) -> [Option<&'static CStr>; 3] {
    if persistent_first {
        [
            Some(c"nv_mem"),
            Some(c"nv_mem_revocable"),
            Some(c"nv_mem_fixed"),
        ]
    } else {
        [None, Some(c"nv_mem"), Some(c"nv_mem_nc")]
    }
}

/// The state of the loaded module. Rust drops the fields in this order, and each field uses only
/// fields below it. The module can be unloaded only when the core has no registration any more, so
/// callbacks that come during unloading have nothing to do.
pub(crate) struct NvPeerMem {
    _lists: Lists,
    _statistics: Statistics,
    _callbacks: Callbacks,
    _clients: [Option<RegisteredClient>; 3],
    _pairs: Installed<map_type::Pairs>,
    _registry: Installed<registry::Registry>,
}

impl kernel::Module for NvPeerMem {
    fn init(_: &'static ThisModule) -> Result<Self> {
        // SAFETY: The module's initialisation calls this function, and may sleep.
        if unsafe { abi::nvpm_other_serves() } {
            return Err(EBUSY);
        }
        let persistent_first = parameters::persistent_api_support();
        let registry = registry::Registry::install()?;
        let pairs = map_type::Pairs::install()?;
        let callbacks = Callbacks::new()?;
        let names = client_names(persistent_first);
        let [persistent, revocable, catch_all] = names;
        let clients = [
            register_client::<persistent::Persistent>(persistent)?,
            register_client::<revocable::Revocable>(revocable)?,
            register_client::<persistent::CatchAll>(catch_all)?,
        ];
        let statistics = Statistics::new(names)?;
        let lists = Lists::new()?;
        // No step of loading after this call can fail. If a step before this call fails, no client
        // has claimed memory yet, so no registration is left.
        peer_client::open();
        pr_info!(
            "version {} loaded: GPU memory is {}\n",
            env!("NVPM_VERSION"),
            if persistent_first {
                "pinned until deregistration (persistent_api_support=1)"
            } else {
                "revoked when it is freed (persistent_api_support=0)"
            }
        );
        Ok(Self {
            _lists: lists,
            _statistics: statistics,
            _callbacks: callbacks,
            _clients: clients,
            _pairs: pairs,
            _registry: registry,
        })
    }
}

fn register_client<C: Client>(name: Option<&'static CStr>) -> Result<Option<RegisteredClient>> {
    let Some(name) = name else {
        return Ok(None);
    };
    let name = name.to_str().map_err(|_| EINVAL)?;
    RegisteredClient::new::<C>(name).map(Some)
}

/// The files in sysfs. They exist as long as this object.
struct Statistics;

impl Statistics {
    fn new(names: [Option<&'static CStr>; 3]) -> Result<Self> {
        let names = names.map(|name| name.map_or(null(), |name| name.as_ptr().cast()));
        // SAFETY: C copies the pointers, and the names are `'static`. Only loading the module calls
        // `new`, once.
        to_result(unsafe { abi::nvpm_statistics_create(names.as_ptr()) })?;
        Ok(Self)
    }
}

impl Drop for Statistics {
    fn drop(&mut self) {
        // SAFETY: `new` has created the files, and only this call removes them.
        unsafe { abi::nvpm_statistics_remove() };
    }
}

/// The files in proc. They exist as long as this object. The files show the clients' names, which C
/// stores for [`Statistics`].
struct Lists;

impl Lists {
    fn new() -> Result<Self> {
        // SAFETY: Only loading the module calls `new`, once, after `Statistics::new` has stored the
        // names.
        to_result(unsafe { abi::nvpm_lists_create() })?;
        Ok(Self)
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        // SAFETY: `new` has created the files, and only this call removes them.
        unsafe { abi::nvpm_lists_remove() };
    }
}

/// While this object exists, `nv_peer_mem_callback` passes the driver's callbacks on to
/// [`revocable::nvpm_revoke`].
struct Callbacks;

impl Callbacks {
    fn new() -> Result<Self> {
        // SAFETY: Only loading the module calls `new`, once, and loading may sleep.
        to_result(unsafe { abi::nvpm_callbacks_begin() }).inspect_err(|error| {
            pr_err!("the module nv_peer_mem_callback that is loaded is of another version, and cannot be exchanged before the next boot: reboot, or load the version of nv_peer_mem that was loaded before (error {})\n", number(error));
        })?;
        Ok(Self)
    }
}

impl Drop for Callbacks {
    fn drop(&mut self) {
        // SAFETY: `new` has called `nvpm_callbacks_begin`, and unloading may sleep. After this
        // call, no callback runs code of this module any more.
        unsafe { abi::nvpm_callbacks_end() };
    }
}
