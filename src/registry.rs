// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The table of registrations. Each registration has one record, which holds its whole state.
//!
//! No two registrations ever have the same number, even if the module is unloaded and loaded again,
//! because `callback/callback.c` counts the numbers and stays loaded. The core receives the number
//! as the registration's context, and the driver passes the number to the free callback. A call
//! that comes too late therefore finds no record, and does not follow a pointer to freed memory. A
//! reader of `/proc/driver/nv_peer_mem/regions` continues after the last key that it has read. The
//! reader therefore sees each registration that exists during all of the reading.

use core::mem;

use kernel::{
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
};

use crate::{
    abi,
    device::Device,
    extents::Range,
    global::{Global, Installed},
    module_ref::ModuleRef,
    orphans::{UserNode, Users},
    phase::{CoreContext, Filled, Phase, Place},
    pin::PinnedMemory,
    process::{current_comm, Process},
    sg_table::SgTable,
    stats,
};

/// All registrations, and the number of orphans of each user.
pub(crate) struct Registry {
    records: RBTree<u64, Record>,
    pub(crate) users: Users,
}

pub(crate) static REGISTRY: Global<Registry> = Global::new(abi::NVPM_LOCK_REGISTRY);

/// The clients, in the order in which the core asks them. C has the same numbers in
/// `enum nvpm_client_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Keeps memory pinned until the registration ends, if the driver supports persistent pins.
    Persistent = abi::NVPM_PERSISTENT as u8,
    /// Keeps memory pinned only until the program frees the memory.
    Revocable = abi::NVPM_REVOCABLE as u8,
    /// Keeps memory pinned as `Persistent` does. The core asks this client last, so this client
    /// claims GPU memory that no other client has claimed.
    CatchAll = abi::NVPM_CATCH_ALL as u8,
}

/// Who keeps the record of a registration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeper {
    /// The core, until it releases the registration.
    Core,
    /// The driver, which keeps the memory of an orphan pinned until it calls the free callback.
    Driver,
}

/// The record of a registration. A record exists until the core has released the registration, and
/// the record of an orphan exists until the memory is freed.
pub(crate) struct Record {
    /// Only this type's functions change the phase.
    phase: Phase,
    range: Range,
    process: Process,
    /// The time at which the registration began, from `nvpm_seconds`.
    since: u32,
    /// The address on PCI of the device that can reach the memory, or that could reach it before.
    /// `domain` is the domain, and `devfn` contains the bus and the devfn.
    domain: u32,
    devfn: u16,
    client: Kind,
    /// Whether a thread waits for a change of the phase.
    awaited: bool,
    /// Whether the registration counts for its user.
    counted: bool,
    comm: [u8; 16],
}

// The kernel's allocator has objects of 192 bytes. A record of at most 160 bytes fits into such an
// object, together with the node of the tree and the registration's number.
const _: () = assert!(mem::size_of::<Record>() <= 160);

impl Record {
    /// Returns the range that the user asked for.
    pub(crate) fn range(&self) -> Range {
        self.range
    }

    pub(crate) fn process(&self) -> Process {
        self.process
    }

    pub(crate) fn phase(&self) -> &Phase {
        &self.phase
    }

    fn keeper(&self) -> Keeper {
        if matches!(self.phase, Phase::Orphan) {
            Keeper::Driver
        } else {
            Keeper::Core
        }
    }

    /// Changes the phase, as [`Phase::change`] does.
    pub(crate) fn change<R>(
        &mut self,
        event: impl for<'a> FnOnce(Phase, Place<'a>) -> (Filled<'a>, R),
    ) -> R {
        self.phase.change(event)
    }

    /// Stores the core's number, as [`Phase::bind`] does.
    pub(crate) fn bind(&mut self, number: CoreContext) -> Result {
        self.phase.bind(number)
    }

    /// Takes the memory out of the phase, as [`Phase::begin_mapping`] does.
    pub(crate) fn begin_mapping(&mut self) -> Result<PinnedMemory> {
        self.phase.begin_mapping()
    }

    /// Stores the list of a mapping that is undone, as [`Phase::end_unmapping`] does.
    pub(crate) fn end_unmapping(&mut self, undone: Option<SgTable>) {
        self.phase.end_unmapping(undone);
    }

    /// Stores the phase that follows a phase without contents, as [`Phase::follow_empty`] does.
    pub(crate) fn follow_empty(&mut self, next: Phase) {
        self.phase.follow_empty(next);
    }

    /// Records that `device` can reach the memory.
    pub(crate) fn set_device(&mut self, device: Device<'_>) {
        (self.domain, self.devfn) = device.pci_address();
    }

    /// Returns the line for `/proc/driver/nv_peer_mem/regions`.
    fn line(&self) -> abi::nvpm_region {
        abi::nvpm_region {
            address: self.range.address(),
            len: self.range.len(),
            process: self.process.to_c(),
            since: self.since,
            domain: self.domain,
            devfn: self.devfn,
            client: self.client as u8,
            state: self.phase.state() as u8,
            comm: self.comm,
        }
    }
}

impl Registry {
    /// Installs the registry. Dropping the result removes the registry.
    pub(crate) fn install() -> Result<Installed<Self>> {
        REGISTRY.install(Self {
            records: RBTree::new(),
            users: Users::new(),
        })
    }

    /// Removes the record, and returns it. Does nothing if there is no record, or if something else
    /// than `keeper` keeps the record. The caller must drop the result after it has released the
    /// lock.
    fn remove(&mut self, number: RegistrationNumber, keeper: Keeper) -> Option<Removed> {
        let entry = self.records.find_mut(&number.0)?;
        let record = entry.get();
        if record.keeper() != keeper {
            return None;
        }
        let uid = record.process.uid();
        if keeper == Keeper::Driver {
            self.users.freed(uid, record.range.pages());
            stats::sub(abi::NVPM_COUNT_ORPHANS, 1);
        }
        let _user = if record.counted {
            self.users.remove(uid)
        } else {
            None
        };
        Some(Removed {
            awaited: record.awaited,
            _record: entry.remove_node(),
            _user,
        })
    }
}

/// A removed record, and the entry of its user if the user has no other registration. Both must be
/// dropped after the registry's lock is released.
struct Removed {
    awaited: bool,
    _record: RBTreeNode<u64, Record>,
    _user: Option<UserNode>,
}

impl Drop for Removed {
    fn drop(&mut self) {
        if self.awaited {
            wake();
        }
    }
}

/// The number of a registration, which is also the key of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegistrationNumber(u64);

impl RegistrationNumber {
    /// Returns a new number, which is never 0, and is not negative as a signed integer. Consecutive
    /// numbers are far apart, so that new records are spread over the tree. If each number were one
    /// more than the number before, the newest record, which is looked up most often, would be at
    /// the end of the tree. Among 1,000 records it would be 17 levels deep instead of 10, and among
    /// 100,000 records 31 instead of 17.
    fn new() -> Self {
        // SAFETY: The function is callable from any context.
        let count = unsafe { abi::nvpm_callback_number() };
        Self(count.reverse_bits() >> 1)
    }

    /// Converts a number from the core or the driver.
    pub(crate) fn from_raw(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number for the core and the driver.
    pub(crate) fn to_raw(self) -> u64 {
        self.0
    }
}

/// Calls `access` with the record, and returns the result, or [`None`] if the registration does
/// not exist. A thread may wait for a change of the phase, and only [`update`] wakes such
/// a thread. `access` must therefore not make a change for which a thread may wait.
pub(crate) fn with<R>(
    number: RegistrationNumber,
    access: impl FnOnce(&mut Record) -> R,
) -> Option<R> {
    REGISTRY.with_part(|registry| registry.records.get_mut(&number.0), access)
}

/// Calls `change`, which may change the record's phase, and wakes the threads that wait for a
/// change. Returns the result of `change`, or [`None`] if the registration does not exist.
pub(crate) fn update<R>(
    number: RegistrationNumber,
    change: impl FnOnce(&mut Record) -> R,
) -> Option<R> {
    let (result, awaited) = with(number, |record| {
        (change(record), mem::take(&mut record.awaited))
    })?;
    if awaited {
        wake();
    }
    Some(result)
}

/// Calls `change` at once and again after each change of the phase, until `change` returns a
/// result. Returns this result, or [`None`] if the registration does not exist or ends during
/// the wait. May sleep.
pub(crate) fn update_when<R>(
    number: RegistrationNumber,
    mut change: impl FnMut(&mut Record) -> Option<R>,
) -> Option<R> {
    loop {
        let mut count = 0;
        let mut awaited = false;
        let result = with(number, |record| {
            let result = change(record);
            match &result {
                Some(_) => awaited = mem::take(&mut record.awaited),
                None => {
                    record.awaited = true;
                    // SAFETY: The function only reads a counter. A thread that changes the
                    // phase can raise the counter only after this thread has released the lock.
                    count = unsafe { abi::nvpm_phase_count() };
                }
            }
            result
        })?;
        if awaited {
            wake();
        }
        if result.is_some() {
            return result;
        }
        // SAFETY: This thread holds no lock, and may sleep.
        unsafe { abi::nvpm_phase_wait(count) };
    }
}

/// Counts the registration for its user, `uid`. Returns true if the user may register, and false if
/// the user has too many orphans. Registrations of root are not counted, because root may have
/// any number of orphans.
pub(crate) fn count_for_user(number: RegistrationNumber, uid: u32) -> Result<bool> {
    if uid == 0 {
        return Ok(true);
    }
    let mut node = None;
    loop {
        let counted = REGISTRY.with(|registry| {
            let Some(record) = registry.records.get_mut(&number.0) else {
                return Some(false);
            };
            let added = registry.users.add(uid, &mut node)?;
            record.counted = added;
            Some(added)
        });
        match counted.unwrap_or(Some(false)) {
            Some(counted) => return Ok(counted),
            None => node = Some(Users::new_node(uid)?),
        }
    }
}

/// Makes the registration an orphan, unless the free callback has come already. The pages of an
/// orphan stay pinned until the callback comes.
pub(crate) fn orphan(number: RegistrationNumber) {
    REGISTRY.with(|registry| {
        let record = registry.records.get_mut(&number.0)?;
        let is_unpinned = record.change(|phase, place| match phase {
            Phase::Unpinning => (place.fill(Phase::Orphan), true),
            other => (place.fill(other), false),
        });
        if is_unpinned {
            registry
                .users
                .orphan(record.process.uid(), record.range.pages());
            stats::add(abi::NVPM_COUNT_ORPHANS, 1);
        }
        Some(())
    });
}

/// Removes the record of an orphan whose memory has been freed.
pub(crate) fn forget_orphan(number: RegistrationNumber) {
    let removed = REGISTRY.with(|registry| registry.remove(number, Keeper::Driver));
    drop(removed);
}

/// Wakes the threads that wait for a change of a registration's phase.
fn wake() {
    // SAFETY: The function is callable from any context.
    unsafe { abi::nvpm_phase_wake() };
}

/// Keeps the record of a registration, and keeps the module loaded, as long as this object exists.
/// The record of an orphan exists even longer, but does not keep the module loaded.
pub(crate) struct Registration {
    number: RegistrationNumber,
    _module: ModuleRef,
}

impl Registration {
    /// Makes the record of a new registration of `range`, which is memory of `process`, the calling
    /// one.
    pub(crate) fn new(
        range: &Range,
        process: Process,
        client: Kind,
        module: ModuleRef,
    ) -> Result<Self> {
        let record = Record {
            phase: Phase::Pinning,
            range: *range,
            process,
            // SAFETY: The function is callable from any context.
            since: unsafe { abi::nvpm_seconds() },
            domain: abi::NVPM_NO_DEVICE,
            devfn: 0,
            client,
            awaited: false,
            counted: false,
            comm: current_comm(),
        };
        let number = RegistrationNumber::new();
        let node = RBTreeNode::new(number.0, record, GFP_KERNEL)?;
        REGISTRY.with(|registry| registry.records.insert(node));
        Ok(Self {
            number,
            _module: module,
        })
    }

    pub(crate) fn number(&self) -> RegistrationNumber {
        self.number
    }

    /// Turns the registration into a number for the core, without ending the registration.
    /// [`Self::from_core`] turns the number back.
    pub(crate) fn into_core(self) -> RegistrationNumber {
        let number = self.number;
        mem::forget(self);
        number
    }

    /// Turns the core's number back into a registration.
    ///
    /// # Safety
    ///
    /// `number` must be from [`Self::into_core`], and each number may be turned back only once.
    pub(crate) unsafe fn from_core(number: RegistrationNumber) -> Self {
        // SAFETY: By this function's requirement `into_core` has forgotten a reference for this
        // number, and no other call takes the same reference back.
        let _module = unsafe { ModuleRef::recover() };
        Self { number, _module }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let removed = REGISTRY.with(|registry| registry.remove(self.number, Keeper::Core));
        drop(removed);
    }
}

/// Copies the registration with the lowest key that is not below `key` to `line`. Returns the key
/// of this registration, or 0 if there is no such registration.
///
/// # Safety
///
/// `line` must be valid for writing.
#[no_mangle]
pub(crate) unsafe extern "C" fn nvpm_region_from(key: u64, line: *mut abi::nvpm_region) -> u64 {
    let found = REGISTRY.with(|registry| {
        let cursor = registry.records.cursor_lower_bound(&key)?;
        let (&key, record) = cursor.current();
        Some((key, record.line()))
    });
    let Some((key, found)) = found.flatten() else {
        return 0;
    };
    // SAFETY: By this function's requirement `line` is valid for writing.
    unsafe { *line = found };
    key
}
