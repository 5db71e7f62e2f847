// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! GPUDirect RDMA for NVIDIA GPUs: lets the RDMA core register GPU memory like any other.
//!
//! The crate's root: the module, its parameters, what it registers and when it withdraws it. A
//! file knows only those below it: `main`, `peer`, `client`, then `p2p`, `region`, `extents`,
//! `scatter`, `notify`, `stats` and `listed`, then `rt`, then `abi` and `errno`, then `ffi`.

#![cfg_attr(nvpm_free, no_std)]

use core::ffi::CStr;

mod abi;
mod client;
mod errno;
mod extents;
mod ffi;
#[cfg(nvpm_kunit)]
mod kunit;
mod listed;
mod module_ref;
mod notify;
mod p2p;
mod peer;
mod region;
mod rt;
mod scatter;
mod stats;

use client::{
    Last,
    Persistent,
    Region,
    Revocable, //
};
use errno::Errno;
use peer::{
    Core,
    Registration, //
};
use rt::{
    pr_err,
    pr_info, //
};

rt::module!(NvPeerMem);

// With reference count, lock and queue a region is one object of 256 bytes of the allocator.
const _: () =
    assert!(core::mem::size_of::<listed::Listed>() + core::mem::size_of::<client::State>() <= 208);

/// The module while it is loaded: its clients, in the order in which the core asks them.
///
/// Fields drop in their order here.
struct NvPeerMem {
    _directory: Directory,
    _list: List,
    _clients: Clients,
    _drain: Drain,
}

/// What an administrator reads in sysfs, while this lives.
struct Directory;

impl Directory {
    /// `clients` says what was registered: a line for each, its name and how it pins.
    fn new(clients: &'static CStr) -> Result<Self, Errno> {
        // SAFETY: The text is there for ever; this is called once.
        Errno::check(unsafe { abi::nvpm_sysfs_add(clients.as_ptr().cast()) })?;
        Ok(Self)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // SAFETY: `new` has added what is removed here, once.
        unsafe { abi::nvpm_sysfs_remove() };
    }
}

/// The list of registrations in proc, while this lives.
struct List;

impl List {
    /// With the names of the clients: persistent, revocable, and the last one.
    fn new([persistent, revocable, last]: [&'static CStr; 3]) -> Result<Self, Errno> {
        // SAFETY: The names are there for ever; this is called once.
        Errno::check(unsafe {
            abi::nvpm_regions_add(
                persistent.as_ptr().cast(),
                revocable.as_ptr().cast(),
                last.as_ptr().cast(),
            )
        })?;
        Ok(Self)
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: `new` has added what is removed here, once.
        unsafe { abi::nvpm_regions_remove() };
    }
}

/// Dropped last: keeps the code in memory until no callback of the driver runs in it any more.
struct Drain;

impl Drop for Drain {
    fn drop(&mut self) {
        // SAFETY: The clients are gone, so that none comes; each region has kept the module, which
        // is about to go, and nothing else knows a GPU.
        unsafe { p2p::end::<Region>() };
    }
}

/// The clients. Fields drop, and so unregister, in their order here.
enum Clients {
    /// Pins last until deregistration where the driver can do that, and else are revocable.
    PersistentFirst {
        _persistent: Registration<Persistent>,
        _revocable: Registration<Revocable>,
        _last: Registration<Last>,
    },
    /// Pins are revocable, for those objects of the device that can be revoked.
    RevocableFirst {
        _revocable: Registration<Revocable>,
        _last: Option<Registration<Last>>,
    },
}

impl rt::Module for NvPeerMem {
    fn load() -> Result<Self, Errno> {
        if rt::peermem_loaded() {
            pr_err!("nvidia_peermem is loaded, which serves the same memory: unload it (modprobe -r nvidia_peermem) and keep it from being loaded again (echo 'blacklist nvidia_peermem' >/etc/modprobe.d/nv_peer_mem-nvidia_peermem.conf)\n");
            return Err(Errno::BUSY);
        }
        let parameters = rt::parameters();
        let core = match parameters.peerdirect_support {
            false => Core::Current,
            true => Core::Legacy,
        };
        let persistent_first = parameters.persistent_api_support && p2p::has_persistent();
        let (clients, said) = if persistent_first {
            let clients = Clients::PersistentFirst {
                _persistent: register("nv_mem", core)?,
                _revocable: register("nv_mem_revocable", core)?,
                _last: register("nv_mem_fixed", core)?,
            };
            (
                clients,
                c"nv_mem persistent\nnv_mem_revocable revocable\nnv_mem_fixed persistent",
            )
        } else if p2p::has_persistent() {
            let clients = Clients::RevocableFirst {
                _revocable: register("nv_mem", core)?,
                _last: Some(register("nv_mem_nc", core)?),
            };
            (clients, c"nv_mem revocable\nnv_mem_nc persistent")
        } else {
            let clients = Clients::RevocableFirst {
                _revocable: register("nv_mem", core)?,
                _last: None,
            };
            (clients, c"nv_mem revocable")
        };
        let list = List::new(match persistent_first {
            true => [c"nv_mem", c"nv_mem_revocable", c"nv_mem_fixed"],
            false => [c"", c"nv_mem", c"nv_mem_nc"],
        })?;
        let directory = Directory::new(said)?;
        // Nothing can fail any more, so there is no region to be left behind by a module that goes.
        peer::open();
        pr_info!(
            "version {} loaded: GPU memory is {}\n",
            env!("NVPM_VERSION"),
            match persistent_first {
                true => "pinned until deregistration (persistent_api_support=1)",
                false => "revoked when it is freed (persistent_api_support=0)",
            }
        );
        Ok(Self {
            _directory: directory,
            _list: list,
            _clients: clients,
            _drain: Drain,
        })
    }
}

/// Registers a client, and says what is in the way if the core refuses.
fn register<C: client::Client>(name: &str, core: Core) -> Result<Registration<C>, Errno> {
    Registration::new(name, core).inspect_err(|errno| {
        pr_err!(
            "the RDMA core refuses the client '{}' (error {}): another module may have registered that name (ls /sys/kernel/mm/memory_peers): unload it\n",
            name,
            errno.number()
        );
    })
}
