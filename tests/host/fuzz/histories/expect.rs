// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Computes the result that a program must receive for a registration during which no other act
//! runs. The rules are from README.md and docs/architecture.md.

use std::collections::BTreeMap;

use super::act::{DeviceWish, Who, Wish, World};
use crate::{
    abi,
    extents::GPU_PAGE,
    peer_client::Kind,
    world::{world, Faults},
};

pub(super) const ENOMEM: i32 = -12;
pub(super) const EIO: i32 = -5;
pub(super) const EFAULT: i32 = -14;
pub(super) const EINVAL: i32 = -22;
pub(super) const EOPNOTSUPP: i32 = -95;
pub(super) const EDQUOT: i32 = -122;

/// The module asks the driver for a range of up to LARGE bytes at once. The module refuses a range
/// of more than LARGEST bytes without asking.
const LARGE: u64 = 64 << 30;
const LARGEST: u64 = 1 << 40;

/// The answer that the module should know about a pair of GPU and device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Ours,
    Driver,
    Refused,
    /// The module may know any answer or none, because another act ran while the module asked the
    /// driver.
    Uncertain,
}

/// The verdicts on pairs. The key is the GPU and the device's address.
pub(super) type Verdicts = BTreeMap<(u8, usize), Verdict>;

/// Returns the GPU's pages that cover a range, or [`None`] if the range is not valid. The first
/// number of the result is the first byte, and the second one is the number of bytes.
pub(super) fn pages(address: u64, len: u64) -> Option<(u64, u64)> {
    let page = u128::from(GPU_PAGE);
    let start = u128::from(address) / page * page;
    let end = (u128::from(address) + u128::from(len)).div_ceil(page) * page;
    let fits = len > 0 && end < 1 << 64 && (end - start) / page < 1 << 32;
    fits.then_some((start as u64, (end - start) as u64))
}

/// Converts the driver's errors to errors that users see.
fn for_users(errno: i32) -> i32 {
    match errno {
        -524 => EOPNOTSUPP,
        other => other,
    }
}

/// The expected result of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    /// The client that claims the memory, or the error that the program receives.
    pub(super) result: Result<Kind, i32>,
    /// Whether the error is about GPU memory and increases a counter.
    pub(super) counts: bool,
    /// The verdict that the module learns about the pair, if it learns one.
    pub(super) learns: Option<Verdict>,
    /// The number of requests to map that the driver receives.
    pub(super) maps: u32,
}

/// A request to register, and the state that decides its result.
pub(super) struct Question<'a> {
    pub(super) world: &'a World,
    pub(super) wish: &'a Wish,
    pub(super) who: &'a Who,
    /// The value of `persistent_api_support`, or [`None`] if the module is not loaded.
    pub(super) loaded: Option<bool>,
    /// Returns the verdict on the pair of a GPU and the device, if there is one.
    pub(super) verdict: &'a dyn Fn(u8) -> Option<Verdict>,
    /// Whether the user has too many orphans.
    pub(super) has_too_many: bool,
}

impl Question<'_> {
    /// Returns the expected result, or [`None`] if the known state does not determine it.
    pub(super) fn answer(&self) -> Option<Expected> {
        let mut expected = Expected {
            result: Err(EFAULT),
            counts: false,
            learns: None,
            maps: 0,
        };
        let Some((client, gpu)) = self.claimed().unwrap_or_else(|errno| {
            expected.result = Err(errno);
            expected.counts = true;
            None
        }) else {
            return Some(expected);
        };
        expected.counts = true;
        let mapped = self.map(client, gpu, &mut expected)?;
        let device = || match self.wish.device_fails {
            true => Err(EINVAL),
            false => Ok(client),
        };
        expected.counts = mapped.is_err();
        expected.result = mapped.and_then(|()| device());
        Some(expected)
    }

    /// Returns the client that claims the memory, and the memory's GPU. Returns [`None`] if no
    /// client claims the memory. Returns an error if a client claims the memory but cannot pin it.
    fn claimed(&self) -> Result<Option<(Kind, u8)>, i32> {
        let Some(persistent_first) = self.loaded else {
            return Ok(None);
        };
        let Some((start, len)) = pages(self.wish.address, self.wish.len) else {
            return Ok(None);
        };
        if !may_be_asked_for(len, self.who.process, self.wish) {
            return Ok(None);
        }
        let driver = &world().driver;
        let found = driver.find(self.who.process, start, len);
        let persistent = found.and_then(|at| match world().faults.no_persistent.get() {
            0 => Ok(at),
            errno => Err(errno),
        });
        let persistent = persistent.map_err(for_users);
        let taken = |kind, at| Ok(Some((kind, driver.gpu(at))));
        if persistent_first {
            match persistent {
                Ok(at) => return taken(Kind::Persistent, at),
                Err(EINVAL | EOPNOTSUPP | EIO) => {}
                Err(errno) => return Err(errno),
            }
        }
        if !self.wish.cannot_be_revoked {
            if self.has_too_many && driver.find(self.who.process, start, GPU_PAGE) != Err(EINVAL) {
                return Err(EDQUOT);
            }
            match found.map_err(for_users) {
                Ok(at) => {
                    table(&world().faults)?;
                    if self.world.coherent {
                        return Err(EOPNOTSUPP);
                    }
                    return taken(Kind::Revocable, at);
                }
                Err(EINVAL) => {}
                Err(errno) => return Err(errno),
            }
        }
        match persistent {
            Ok(at) => taken(Kind::CatchAll, at),
            Err(EINVAL) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Returns the result of mapping the memory.
    fn map(&self, client: Kind, gpu: u8, expected: &mut Expected) -> Option<Result<(), i32>> {
        let revocable = client == Kind::Revocable;
        match self.wish.device {
            DeviceWish::NoPci => return Some(Err(EOPNOTSUPP)),
            DeviceWish::NeverComplete if revocable => return Some(Err(EOPNOTSUPP)),
            _ => {}
        }
        let faults = &world().faults;
        let verdict = match (self.verdict)(gpu) {
            Some(Verdict::Uncertain) => return None,
            Some(known) => known,
            None => match self.ask(gpu, expected) {
                Ok(Some(learnt)) => {
                    expected.learns = Some(learnt);
                    learnt
                }
                // The module cannot ask the driver.
                Ok(None) if revocable => Verdict::Ours,
                Ok(None) => return Some(Err(EIO)),
                Err(errno) => return Some(Err(errno)),
            },
        };
        Some(match verdict {
            Verdict::Refused => Err(EOPNOTSUPP),
            Verdict::Driver if revocable => Err(EOPNOTSUPP),
            Verdict::Driver => match refused_to_map(gpu) {
                Some(errno) => Err(errno),
                None => {
                    expected.maps += 1;
                    mapping(faults)
                }
            },
            _ => table(faults).and_then(|()| match self.world.ranges && faults.sync.get() {
                true => Err(ENOMEM),
                false => Ok(()),
            }),
        })
    }

    /// Returns the verdict that the module learns if it asks the driver with one page. Returns
    /// [`None`] if the page cannot be pinned persistently. Returns an error if the registration
    /// fails.
    fn ask(&self, gpu: u8, expected: &mut Expected) -> Result<Option<Verdict>, i32> {
        let faults = &world().faults;
        match for_users(faults.no_persistent.get()) {
            0 => {}
            EOPNOTSUPP | EIO => return Ok(None),
            errno => return Err(errno),
        }
        table(faults)?;
        match refused_to_map(gpu) {
            // For coherent memory, the driver's answer may change later, so the module does not
            // remember it.
            Some(EOPNOTSUPP) if !self.world.coherent => return Ok(Some(Verdict::Refused)),
            Some(errno) => return Err(errno),
            None => {}
        }
        expected.maps += 1;
        mapping(faults)?;
        if self.world.coherent {
            return Ok(Some(Verdict::Driver));
        }
        // The module compares the driver's DMA address with its own. It maps the memory itself if
        // both DMA addresses are physical addresses, or if an IOMMU translates both DMA addresses.
        let same = match self.world.bus_offset {
            None => true,
            Some(offset) => (offset == 0) == self.world.direct,
        };
        Ok(Some(if same { Verdict::Ours } else { Verdict::Driver }))
    }
}

/// Returns the error with which the driver refuses to map memory of this GPU, or [`None`] if the
/// driver maps it.
fn refused_to_map(gpu: u8) -> Option<i32> {
    let faults = &world().faults;
    let refused = faults.refused_gpu.get().is_none_or(|one| one == gpu);
    let errno = faults.refuses_to_map.get();
    (refused && errno != 0).then(|| for_users(errno))
}

/// Returns an error if the module cannot use the driver's mappings.
fn mapping(faults: &Faults) -> Result<(), i32> {
    match faults.unknown_mapping.get() {
        true => Err(EOPNOTSUPP),
        false => page_size(faults),
    }
}

/// Returns an error if the module cannot use the driver's page tables.
fn table(faults: &Faults) -> Result<(), i32> {
    if faults.unknown_table.get() {
        return Err(EOPNOTSUPP);
    }
    page_size(faults)?;
    match faults.offline.get() {
        true => Err(EOPNOTSUPP),
        false => Ok(()),
    }
}

/// Returns an error if the driver reports a wrong page size or number of pages.
fn page_size(faults: &Faults) -> Result<(), i32> {
    match faults.page_size.get() {
        abi::NVIDIA_P2P_PAGE_SIZE_64KB if faults.hidden_pages.get() == 0 => Ok(()),
        abi::NVIDIA_P2P_PAGE_SIZE_64KB
        | abi::NVIDIA_P2P_PAGE_SIZE_4KB
        | abi::NVIDIA_P2P_PAGE_SIZE_128KB => Err(EIO),
        _ => Err(EOPNOTSUPP),
    }
}

/// Tells whether the module may ask the driver for this number of bytes at once.
pub(super) fn may_be_asked_for(bytes: u64, process: i32, wish: &Wish) -> bool {
    let Some((start, len)) = pages(wish.address, wish.len) else {
        return false;
    };
    let is_gpu_memory = |page| world().driver.find(process, page, GPU_PAGE) != Err(EINVAL);
    bytes <= LARGE
        || bytes <= LARGEST && is_gpu_memory(start) && is_gpu_memory(start + len - GPU_PAGE)
}

/// Returns the counter that counts failures with this error.
pub(super) fn cause(errno: i32) -> abi::nvpm_counter {
    match errno {
        ENOMEM => abi::NVPM_COUNT_FAILED_NO_MEMORY,
        EOPNOTSUPP => abi::NVPM_COUNT_FAILED_NOT_SUPPORTED,
        EFAULT => abi::NVPM_COUNT_FAILED_FREED,
        EDQUOT => abi::NVPM_COUNT_FAILED_ORPHANS,
        _ => abi::NVPM_COUNT_FAILED_DRIVER,
    }
}
