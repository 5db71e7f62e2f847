// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The table of registrations: for the driver's free callback, for `/proc/driver/nv_peer_mem/regions`,
//! and for orphans.
//!
//! The key is a number that is never used again. The driver passes it to the free callback: a late callback
//! finds no entry, where a pointer would lead to freed memory. A reader of the file continues after the
//! last number that it has seen.
//!
//! The driver unpins memory only for the process that pinned it. A registration that ends in another
//! process, or together with its own, therefore stays pinned until the memory is freed: it is an *orphan*.
//! The limit on locked memory does not count orphans, so this table counts them, and bounds them for each
//! process and for each user.

use kernel::{
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
};

use crate::{
    abi::{self, ffi::c_void, wait_for_memory},
    atomic::{AtomicU64, Ordering},
    compat::{edquot, pr_warn_ratelimited, Global, Installed},
    dma::Device,
    extents::Range,
    revocable::Region,
    stats,
};

pub(crate) use crate::abi::nvpm_region_state as State;

/// Orphans that a process may have.
const REGISTRATIONS: u32 = 1024;
/// GPU pages of them, together: 64 GiB.
const PAGES: u64 = 1 << 20;
/// A user may have this many times as much.
const PROCESSES: u32 = 16;

/// All registrations, and the owners of orphans.
pub(crate) struct Registry {
    registrations: RBTree<u64, Record>,
    orphans: RBTree<Owner, Orphans>,
}

pub(crate) static REGISTRY: Global<Registry> = Global::new();
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

/// A registration.
struct Record {
    /// The region that the driver's callback revokes, while a callback can come.
    target: Option<Region>,
    /// What `/proc/driver/nv_peer_mem/regions` shows.
    told: abi::nvpm_region,
    /// The owners for whom it counts as an orphan.
    charged: Charged,
}

// With the tree's node and the number: one object of 128 bytes of the allocator.
const _: () = assert!(core::mem::size_of::<Record>() <= 96);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Charged {
    Nobody,
    User,
    ProcessAndUser,
}

/// An owner of orphans.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Process { born: u64, tgid: i32 },
    User(u32),
}

/// The orphans of an owner.
pub(crate) struct Orphans {
    registrations: u32,
    pages: u64,
}

/// A process, by its number and its start time, since numbers are used again.
#[derive(Clone, Copy)]
pub(crate) struct Process(abi::nvpm_process);

impl Process {
    /// The calling process.
    pub(crate) fn current() -> Self {
        let mut process = abi::nvpm_process::default();
        // SAFETY: `process` is valid for writing.
        unsafe { abi::nvpm_current_process(&mut process) };
        Self(process)
    }

    /// Whether it is the calling one.
    pub(crate) fn is_current(&self) -> bool {
        self.owner() == Self::current().owner()
    }

    fn owner(&self) -> Owner {
        Owner::Process {
            born: self.0.born,
            tgid: self.0.tgid,
        }
    }

    fn user(&self) -> Owner {
        Owner::User(self.0.uid)
    }
}

impl Registry {
    /// Installs the registry, until the result is dropped.
    ///
    /// # Safety
    ///
    /// The requirements of [`Global::install`].
    pub(crate) unsafe fn install() -> Result<Installed<Self>> {
        let registry = Self {
            registrations: RBTree::new(),
            orphans: RBTree::new(),
        };
        // SAFETY: By this function's requirement.
        unsafe { REGISTRY.install(registry) }
    }

    /// Whether the owner has this many orphans, or this many GPU pages in them.
    fn is_full(&self, owner: Owner, registrations: u32, pages: u64) -> bool {
        self.orphans
            .get(&owner)
            .is_some_and(|orphans| orphans.registrations >= registrations || orphans.pages >= pages)
    }

    /// Counts an orphan of the owner. If it is the owner's first, `first` becomes its entry.
    pub(crate) fn charge(&mut self, owner: Owner, pages: u64, first: &mut Option<OrphansNode>) {
        match self.orphans.get_mut(&owner) {
            Some(orphans) => {
                orphans.registrations = orphans.registrations.wrapping_add(1);
                orphans.pages = orphans.pages.wrapping_add(pages);
            }
            None => {
                if let Some(first) = first.take() {
                    self.orphans.insert(first);
                }
            }
        }
    }

    /// Counts an orphan of the owner less. The caller drops the result after it has released the lock.
    pub(crate) fn discharge(&mut self, owner: Owner, pages: u64) -> Option<OrphansNode> {
        let orphans = self.orphans.get_mut(&owner)?;
        orphans.registrations = orphans.registrations.wrapping_sub(1);
        orphans.pages = orphans.pages.wrapping_sub(pages);
        match orphans.registrations {
            0 => self.orphans.remove_node(&owner),
            _ => None,
        }
    }
}

pub(crate) type OrphansNode = RBTreeNode<Owner, Orphans>;

/// An entry for the first orphan of an owner. An orphan must be counted, so this waits until there is
/// memory.
pub(crate) fn first_orphan(owner: Owner, pages: u64) -> OrphansNode {
    loop {
        let orphans = Orphans {
            registrations: 1,
            pages,
        };
        if let Ok(node) = RBTreeNode::new(owner, orphans, GFP_KERNEL) {
            return node;
        }
        wait_for_memory();
    }
}

/// Whether the calling process may pin more revocably: an error if it, or its user, has too many
/// orphans.
pub(crate) fn may_pin() -> Result {
    let Some(registry) = REGISTRY.get() else {
        return Ok(());
    };
    let process = Process::current();
    let registry = registry.lock();
    let process_full = registry.is_full(process.owner(), REGISTRATIONS, PAGES);
    let user_full = registry.is_full(
        process.user(),
        PROCESSES * REGISTRATIONS,
        u64::from(PROCESSES) * PAGES,
    );
    drop(registry);
    if process_full {
        pr_warn_ratelimited!("a process has {REGISTRATIONS} orphaned registrations of GPU memory, or 64 GiB of them (nvpm regions lists them as \"left\"): they stay pinned until the memory is freed, and the process cannot register more until then\n");
    } else if user_full {
        pr_warn_ratelimited!(
            "the processes of user {} have {} orphaned registrations of GPU memory, or 1 TiB of them (nvpm regions lists them as \"left\"): they stay pinned until the memory is freed, and the user cannot register more until then\n",
            process.0.uid,
            PROCESSES * REGISTRATIONS
        );
    } else {
        return Ok(());
    }
    Err(edquot())
}

/// The number of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number(u64);

impl Number {
    /// The number as the driver passes it to the callback. No registration has the number 0.
    pub(crate) fn to_data(self) -> *mut c_void {
        self.0 as usize as *mut c_void
    }

    /// The number that the driver has passed.
    pub(crate) fn from_data(data: *mut c_void) -> Self {
        Self(data as usize as u64)
    }

    /// Changes the record, if the registration exists.
    fn change<R>(self, change: impl FnOnce(&mut Record) -> R) -> Option<R> {
        let mut registry = REGISTRY.get()?.lock();
        registry.registrations.get_mut(&self.0).map(change)
    }

    /// From now on the driver's callback may come; it revokes `target`.
    pub(crate) fn arm(self, target: Region) {
        let unused = self.change(|record| record.target.replace(target));
        drop(unused);
    }

    /// Whether the callback can still come.
    pub(crate) fn is_armed(self) -> bool {
        self.change(|record| record.target.is_some()) == Some(true)
    }

    /// Takes the region out that the callback would revoke. Exactly one caller gets it; later callbacks
    /// find nothing.
    pub(crate) fn disarm(self) -> Option<Region> {
        self.change(|record| record.target.take()).flatten()
    }

    /// Records the state of the registration.
    pub(crate) fn set_state(self, state: State) {
        self.change(|record| record.told.state = state as u8);
    }

    /// Records that `device` can reach the memory.
    pub(crate) fn set_mapped(self, device: Device) {
        self.change(|record| {
            (record.told.domain, record.told.devfn) = device.pci_address();
            record.told.state = abi::NVPM_REGION_MAPPED as u8;
        });
    }

    /// Whether the calling process has made the registration.
    pub(crate) fn is_of_current(self) -> bool {
        self.change(|record| Process(record.told.process))
            .is_some_and(|process| process.is_current())
    }

    /// The registration ends, and its `pages` stay pinned until the callback comes. Sleeps.
    pub(crate) fn orphan(self, pages: u32) {
        let Some(process) = self.change(|record| Process(record.told.process)) else {
            return;
        };
        let pages = u64::from(pages);
        let mut of_user = Some(first_orphan(process.user(), pages));
        let mut of_process = Some(first_orphan(process.owner(), pages));
        // A kernel thread deregisters the registrations of a device that is reset or removed. The process
        // did not choose that, and may register more: only the wider bound of its user counts.
        // SAFETY: Reads a flag of the calling thread, from any context.
        let charged = match unsafe { abi::nvpm_current_kthread() } {
            true => Charged::User,
            false => Charged::ProcessAndUser,
        };
        let Some(registry) = REGISTRY.get() else {
            return;
        };
        let mut registry = registry.lock();
        let Some(record) = registry.registrations.get_mut(&self.0) else {
            return;
        };
        // The callback has come in the meantime.
        if record.target.is_none() {
            return;
        }
        record.charged = charged;
        record.told.state = abi::NVPM_REGION_LEFT as u8;
        registry.charge(process.user(), pages, &mut of_user);
        if charged == Charged::ProcessAndUser {
            registry.charge(process.owner(), pages, &mut of_process);
        }
        drop(registry);
        stats::LEFT_BEHIND.add(1);
    }
}

/// A reference to this module: while one exists, the module is not unloaded.
pub(crate) struct ModuleRef(());

impl ModuleRef {
    /// A reference, unless the module is about to be unloaded.
    pub(crate) fn get() -> Option<Self> {
        // SAFETY: The module is loaded, since it runs this code.
        let live = unsafe { abi::nvpm_try_module_get() };
        // (`then_some` would create the object even without a reference, and drop it.)
        live.then(|| Self(()))
    }
}

impl Drop for ModuleRef {
    fn drop(&mut self) {
        // SAFETY: Gives back the one reference that `get` took for this object.
        unsafe { abi::nvpm_module_put() };
    }
}

/// A registration's entry in the table. While this lives, the entry exists and the module stays loaded.
pub(crate) struct Registered {
    number: Number,
    _module: ModuleRef,
}

impl Registered {
    /// Registers `range` of the calling process for a client.
    pub(crate) fn new(range: &Range, client: u8, module: ModuleRef) -> Result<Self> {
        let mut told = abi::nvpm_region {
            address: range.address(),
            len: range.len(),
            process: Process::current().0,
            domain: abi::NVPM_NO_DEVICE,
            client,
            state: abi::NVPM_REGION_PINNING as u8,
            ..Default::default()
        };
        // SAFETY: `comm` has room for 15 bytes.
        unsafe { abi::nvpm_current_comm(told.comm.as_mut_ptr()) };
        // SAFETY: Callable from any context.
        told.since = unsafe { abi::nvpm_seconds() };
        let number = LAST_NUMBER.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let record = Record {
            target: None,
            told,
            charged: Charged::Nobody,
        };
        let node = RBTreeNode::new(number, record, GFP_KERNEL)?;
        if let Some(registry) = REGISTRY.get() {
            registry.lock().registrations.insert(node);
        }
        Ok(Self {
            number: Number(number),
            _module: module,
        })
    }

    /// Its number.
    pub(crate) fn number(&self) -> Number {
        self.number
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let Some(registry) = REGISTRY.get() else {
            return;
        };
        let node = registry.lock().registrations.remove_node(&self.number.0);
        let Some((_, record)) = node.map(RBTreeNode::to_key_value) else {
            return;
        };
        if record.charged == Charged::Nobody {
            return;
        }
        let process = Process(record.told.process);
        let pages = Range::new(record.told.address, record.told.len)
            .map_or(0, |range| u64::from(range.pages()));
        let mut registry = registry.lock();
        let of_user = registry.discharge(process.user(), pages);
        let of_process = match record.charged {
            Charged::ProcessAndUser => registry.discharge(process.owner(), pages),
            _ => None,
        };
        drop(registry);
        drop((of_user, of_process));
        stats::LEFT_BEHIND.sub(1);
    }
}

/// Copies what the file shows of the first registration whose number is not below `number`, and returns
/// that registration's number; 0 if there is none.
///
/// # Safety
///
/// `told` must be valid for writing.
#[no_mangle]
pub(crate) unsafe extern "C" fn nvpm_region_from(number: u64, told: *mut abi::nvpm_region) -> u64 {
    let Some(registry) = REGISTRY.get() else {
        return 0;
    };
    let registry = &mut *registry.lock();
    let Some(cursor) = registry.registrations.cursor_lower_bound(&number) else {
        return 0;
    };
    let (&number, record) = cursor.current();
    // SAFETY: By this function's requirement.
    unsafe { *told = record.told };
    number
}
