// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! GPUDirect RDMA for NVIDIA GPUs: lets the RDMA core register GPU memory like any other.
//!
//! The crate's root: the module, what it registers and when it withdraws it. `kernel` is the kernel's
//! own crate, or `kernel/` here where the kernel has none.

use core::{ffi::CStr, ptr::null};

use kernel::prelude::*;

mod abi;
mod atomic;
mod compat;
mod dma;
mod extents;
#[cfg(nvpm_kunit)]
mod kunit;
mod map_type;
mod p2p;
mod peer_client;
mod persistent;
mod registry;
mod revocable;
mod sg_table;
mod stats;

use compat::Installed;
use peer_client::{Client, Kind, Registration};

module! {
    type: NvPeerMem,
    name: "nv_peer_mem",
    license: "Dual BSD/GPL",
}

/// A client: its name where pins last until deregistration, and where they are revocable; none where it
/// is not registered. Registered in the order of [`CLIENTS`], which is that of [`Kind`].
struct ClientNames {
    kind: Kind,
    persistent_first: Option<&'static CStr>,
    revocable_first: Option<&'static CStr>,
}

const CLIENTS: [ClientNames; 3] = [
    ClientNames {
        kind: Kind::Persistent,
        persistent_first: Some(c"nv_mem"),
        revocable_first: None,
    },
    ClientNames {
        kind: Kind::Revocable,
        persistent_first: Some(c"nv_mem_revocable"),
        revocable_first: Some(c"nv_mem"),
    },
    ClientNames {
        kind: Kind::CatchAll,
        persistent_first: Some(c"nv_mem_fixed"),
        revocable_first: Some(c"nv_mem_nc"),
    },
];

/// The module while it is loaded. Fields drop in their order here: each uses only those below it.
struct NvPeerMem {
    _files: Files,
    _clients: [Option<Registration>; 3],
    _drain: Drain,
    _pairs: Installed<map_type::Pairs>,
    _registry: Installed<registry::Registry>,
}

impl kernel::Module for NvPeerMem {
    fn init(_: &'static ThisModule) -> Result<Self> {
        // SAFETY: Called from the module's initialisation, which may sleep.
        if unsafe { abi::nvpm_peermem_loaded() } {
            pr_err!("nvidia_peermem is loaded, which serves the same memory: unload it (modprobe -r nvidia_peermem) and keep it from being loaded again (echo 'blacklist nvidia_peermem' >/etc/modprobe.d/nv_peer_mem-nvidia_peermem.conf)\n");
            return Err(EBUSY);
        }
        let persistent_first = abi::persistent_api_support() && p2p::has_persistent();
        // SAFETY: Once; the clients and the drain, after which no region is left, drop before.
        let registry = unsafe { registry::Registry::install() }?;
        // SAFETY: As for the registry; the files drop before, too.
        let pairs = unsafe { map_type::Pairs::install() }?;
        let drain = Drain;
        let names = CLIENTS.map(|client| match persistent_first {
            true => client.persistent_first,
            // Without persistent pins there is nothing for the catch-all client to do.
            false if client.kind == Kind::CatchAll && !p2p::has_persistent() => None,
            false => client.revocable_first,
        });
        let [persistent, revocable, catch_all] = names;
        let clients = [
            register::<persistent::Persistent>(persistent)?,
            register::<revocable::Revocable>(revocable)?,
            register::<persistent::CatchAll>(catch_all)?,
        ];
        let files = Files::new(names)?;
        // Nothing can fail any more, so no region can be left by a module that is not loaded.
        peer_client::open();
        pr_info!(
            "version {} loaded: GPU memory is {}\n",
            env!("NVPM_VERSION"),
            match persistent_first {
                true => "pinned until deregistration (persistent_api_support=1)",
                false => "revoked when it is freed (persistent_api_support=0)",
            }
        );
        Ok(Self {
            _files: files,
            _clients: clients,
            _drain: drain,
            _pairs: pairs,
            _registry: registry,
        })
    }
}

fn register<C: Client>(name: Option<&'static CStr>) -> Result<Option<Registration>> {
    let Some(name) = name else {
        return Ok(None);
    };
    let name = name.to_str().map_err(|_| EINVAL)?;
    Registration::new::<C>(name).map(Some)
}

/// What an administrator reads in sysfs and proc, while this lives.
struct Files;

impl Files {
    fn new(names: [Option<&'static CStr>; 3]) -> Result<Self> {
        let names = names.map(|name| name.map_or(null(), |name| name.as_ptr().cast()));
        // SAFETY: C copies the pointers; the names and the counters are `'static`. Called once.
        abi::check(unsafe {
            abi::nvpm_files_create(
                names.as_ptr(),
                stats::COUNTERS.as_ptr().cast(),
                stats::COUNTERS.len() as u32,
            )
        })?;
        Ok(Self)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // SAFETY: `new` has created the files, which are removed once.
        unsafe { abi::nvpm_files_remove() };
    }
}

/// Keeps the code in memory until no callback of the driver runs in it any more.
struct Drain;

impl Drop for Drain {
    fn drop(&mut self) {
        // SAFETY: The clients are unregistered, so no pin is made any more. Each region whose callback is
        // armed keeps the module loaded, which is being unloaded: there is none.
        unsafe { p2p::drain() };
    }
}
