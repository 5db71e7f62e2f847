// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! GPUDirect RDMA for NVIDIA GPUs: lets the RDMA core register GPU memory like any other.
//!
//! The crate's root: the module, its parameters, what it registers and when it withdraws it. A
//! file knows only those below it: `main`, `peer`, `client`, then `p2p`, `region`, `extents`,
//! `scatter` and `notify`, then `rt`, `abi` and `errno`.

use kernel::prelude::*;

mod abi;
mod client;
mod errno;
mod extents;
mod notify;
mod p2p;
mod peer;
mod region;
mod rt;
mod scatter;

use client::{
    Persistent,
    Revocable, //
};
use peer::{
    Core,
    Registration, //
};

module! {
    type: NvPeerMem,
    name: "nv_peer_mem",
    license: "Dual BSD/GPL",
}

/// The module while it is loaded: its clients, in the order in which the core asks them.
struct NvPeerMem {
    _clients: Clients,
}

/// The two clients. Fields drop, and so unregister, in their order here.
enum Clients {
    /// Pins last until deregistration where the driver can do that, and else are revocable.
    PersistentFirst {
        _persistent: Registration<Persistent>,
        _revocable: Registration<Revocable>,
    },
    /// Pins are revocable, for those objects of the device that can be revoked.
    RevocableFirst {
        _revocable: Registration<Revocable>,
        _persistent: Option<Registration<Persistent>>,
    },
}

impl kernel::Module for NvPeerMem {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let parameters = rt::parameters();
        let core = match parameters.peerdirect_support {
            0 => Core::Current,
            1 => Core::Legacy,
            other => return Err(refuse("peerdirect_support", other)),
        };
        let persistent_first = match parameters.persistent_api_support {
            0 => false,
            1 => p2p::has_persistent(),
            other => return Err(refuse("persistent_api_support", other)),
        };
        let clients = if persistent_first {
            Clients::PersistentFirst {
                _persistent: register("nv_mem", core)?,
                _revocable: register("nv_mem_revocable", core)?,
            }
        } else {
            Clients::RevocableFirst {
                _revocable: register("nv_mem", core)?,
                _persistent: match p2p::has_persistent() {
                    true => Some(register("nv_mem_nc", core)?),
                    false => None,
                },
            }
        };
        pr_info!(
            "version {} loaded: GPU memory is {}\n",
            env!("NVPM_VERSION"),
            match persistent_first {
                true => "pinned until deregistration (persistent_api_support=1)",
                false => "revoked when it is freed (persistent_api_support=0)",
            }
        );
        Ok(Self { _clients: clients })
    }
}

/// Says which values a parameter takes.
fn refuse(name: &str, value: u32) -> Error {
    pr_err!("{}={} is not a value that this module knows: use 0 or 1 (modinfo nv_peer_mem explains them)\n", name, value);
    EINVAL
}

/// Registers a client, and says what is in the way if the core refuses.
fn register<C: client::Client>(name: &str, core: Core) -> Result<Registration<C>> {
    Registration::new(name, core).map_err(|errno| {
        pr_err!(
            "the RDMA core refuses the client '{}' (error {}): is nvidia_peermem loaded? Then unload it: modprobe -r nvidia_peermem\n",
            name,
            errno.number()
        );
        Error::from_errno(errno.to_c())
    })
}
