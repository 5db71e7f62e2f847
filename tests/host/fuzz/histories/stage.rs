// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The state of a history. It contains the module, the registrations and devices with which the
//! acts work, and the results that the tests can expect.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use super::{
    act::{Act, DeviceWish, What, Who, Wish, World, DEVICES, PLACES},
    expect::{pages, Expected, Question, Verdict, Verdicts},
    overlap::Overlap,
    settings, verify,
};
use crate::{
    abi::device,
    c::{known_pairs, listed},
    cast::{deregister, page, Module},
    driver::FIRST_GPU,
    extents::GPU_PAGE,
    orphans::Users,
    peer_client::Kind,
    rdma::{self, Registration, Request},
    registry::REGISTRY,
    world::{task, world},
};

/// The limits of a user. ORPHANS limits the number of orphans, and PAGES the number of their pages.
const ORPHANS: u32 = 1 << 14;
const PAGES: u32 = 1 << 26;

/// The state of the module.
pub(super) enum Loaded {
    No,
    /// An act is loading or unloading the module at this moment.
    Changes,
    /// The module is loaded with this `persistent_api_support`.
    Yes(Module, bool),
}

/// A registration.
pub(super) struct Held {
    pub(super) registration: Rc<Registration>,
    pub(super) wish: Wish,
    pub(super) who: Who,
    /// The client that has claimed the memory, and the driver's allocation. They are [`None`] if
    /// they are not known because other acts ran during the registration.
    pub(super) kind: Option<Kind>,
    pub(super) allocation: Option<usize>,
}

impl Held {
    /// Tells whether the registration was revoked. Returns [`None`] if that is not known because
    /// other acts ran during the registration.
    pub(super) fn is_revoked(&self) -> Option<bool> {
        match self.kind? {
            Kind::Revocable => self.allocation.map(|at| world().driver.is_freed(at)),
            Kind::Persistent | Kind::CatchAll => Some(false),
        }
    }
}

/// A pin that stays after its registration has ended.
pub(super) struct Orphan {
    pub(super) uid: u32,
    pages: u32,
    pub(super) allocation: usize,
}

/// The state of a history. See the description of this file.
pub(super) struct Stage {
    pub(super) world: World,
    pub(super) loaded: RefCell<Loaded>,
    pub(super) held: RefCell<Vec<Rc<Held>>>,
    /// Counts the registrations that have succeeded.
    registered: Cell<u64>,
    devices: RefCell<[Option<*mut device>; DEVICES]>,
    /// Devices that were removed.
    pub(super) gone: RefCell<Vec<*mut device>>,
    pub(super) verdicts: RefCell<Verdicts>,
    pub(super) orphans: RefCell<Vec<Orphan>>,
    /// Whether the number of orphans is known. The number is not known if, since the module was
    /// loaded, a registration could become an orphan while another act ran.
    pub(super) knows_orphans: Cell<bool>,
    /// The orphans that [`Self::leave`] has added to a user's count. The numbers are the user, the
    /// number of orphans, and the number of their pages.
    left: Cell<Option<(u32, u32, u32)>>,
}

/// The work of an act.
pub(super) type Work = Box<dyn FnOnce()>;

impl Stage {
    pub(super) fn new(world: World) -> Rc<Self> {
        Rc::new(Self {
            world,
            loaded: RefCell::new(Loaded::No),
            held: RefCell::default(),
            registered: Cell::new(0),
            devices: RefCell::default(),
            gone: RefCell::default(),
            verdicts: RefCell::default(),
            orphans: RefCell::default(),
            knows_orphans: Cell::new(true),
            left: Cell::new(None),
        })
    }

    /// Returns the work of `act` in the present state, or [`None`] if the act is not possible now.
    /// While the work runs, `overlap` shows it which other acts run at the same time.
    pub(super) fn work(self: &Rc<Self>, act: &Act, overlap: &Rc<Overlap>) -> Option<Work> {
        let (who, this, overlap) = (act.who, self.clone(), overlap.clone());
        Some(match act.what {
            What::Allocate { place, gpu } => {
                // The driver may have two objects with memory at one address. More than two objects
                // behave like two, so no more are made.
                let room = world().driver.objects(PLACES[place]) < 2;
                room.then_some(())?;
                Box::new(move || world().driver.allocate_on(gpu, who.process, PLACES[place]))
            }
            What::Free { place } => {
                self.may_end(place, &overlap).then_some(())?;
                Box::new(move || world().driver.free(PLACES[place]))
            }
            What::Delist { place } => {
                self.may_end(place, &overlap).then_some(())?;
                Box::new(move || world().driver.delist(PLACES[place]))
            }
            What::Register(wish) => Box::new(move || this.register(wish, who, &overlap)),
            What::Deregister { which } => {
                let held = self.take(which)?;
                Box::new(move || this.end(&held, who, &overlap, deregister))
            }
            What::Abandon { which } => {
                overlap.is_alone().then_some(())?;
                let held = self.take(which)?;
                if held.is_revoked() != Some(false) {
                    // The oldest core (G2) may have released the registration already.
                    self.held.borrow_mut().push(held);
                    return None;
                }
                overlap.do_not_stop();
                let abandon = |one: &Registration| world().rdma.release_mapped(one);
                Box::new(move || this.end(&held, who, &overlap, abandon))
            }
            What::RemoveDevice { which } => {
                let at = which % DEVICES;
                (!overlap.registers() && !self.uses(at)).then_some(())?;
                Box::new(move || this.remove_device(at))
            }
            What::Fail { step, successes } => Box::new(move || settings::fail(step, successes)),
            What::Answer { setting, value } => Box::new(move || settings::answer(setting, value)),
            What::Read => {
                self.persistent_first()?;
                Box::new(move || this.read())
            }
            What::Unload => {
                let Loaded::Yes(module, _) = self.loaded.replace(Loaded::Changes) else {
                    return None;
                };
                Box::new(move || this.unload(module))
            }
            What::Load {
                persistent,
                beside_peermem,
            } => {
                matches!(*self.loaded.borrow(), Loaded::No).then_some(())?;
                self.loaded.replace(Loaded::Changes);
                Box::new(move || this.load(persistent, beside_peermem, &overlap))
            }
            What::Leave { pages } => {
                (overlap.is_alone() && self.left.get().is_none()).then_some(())?;
                self.persistent_first()?;
                overlap.do_not_stop();
                Box::new(move || this.leave(who.uid, pages))
            }
        })
    }

    /// Returns the value of persistent_api_support, or [`None`] if the module is not loaded.
    fn persistent_first(&self) -> Option<bool> {
        match *self.loaded.borrow() {
            Loaded::Yes(_, persistent) => Some(persistent),
            _ => None,
        }
    }

    /// Tells whether a place has memory that no other act is ending.
    fn may_end(&self, place: usize, overlap: &Overlap) -> bool {
        world().driver.objects(PLACES[place]) > 0 && !overlap.ends_memory()
    }

    /// Tells whether there is no such device, or whether the device has a registration.
    fn uses(&self, at: usize) -> bool {
        let Some(device) = self.devices.borrow()[at] else {
            return true;
        };
        let held = self.held.borrow();
        held.iter().any(|one| one.registration.device() == device)
    }

    /// Takes a registration out of the list.
    fn take(&self, which: usize) -> Option<Rc<Held>> {
        let mut held = self.held.borrow_mut();
        let at = which.checked_rem(held.len())?;
        Some(held.remove(at))
    }

    fn request(&self, wish: &Wish) -> Request {
        let mut request = Request {
            address: wish.address,
            len: wish.len,
            cannot_be_revoked: wish.cannot_be_revoked,
            device_fails: wish.device_fails,
            no_pci: wish.device == DeviceWish::NoPci,
            never_complete: wish.device == DeviceWish::NeverComplete,
            direct: self.world.direct,
            ..page(wish.address)
        };
        let device = match wish.device {
            DeviceWish::Shared(at) => match self.devices.borrow()[at] {
                Some(device) => device,
                None => self.new_device(request),
            },
            _ => self.new_device(request),
        };
        if let DeviceWish::Shared(at) = wish.device {
            self.devices.borrow_mut()[at] = Some(device);
        }
        request.device = Some(device);
        request
    }

    /// Makes a device. In some worlds the module already knows the pair of the first GPU and the
    /// device.
    fn new_device(&self, request: Request) -> *mut device {
        let device = world().rdma.new_device(request);
        let known = !self.world.unasked && !request.no_pci;
        if known {
            let verdict = match self.persistent_first() {
                Some(_) => Some(Verdict::Ours),
                None if matches!(*self.loaded.borrow(), Loaded::No) => None,
                None => Some(Verdict::Uncertain),
            };
            if let Some(verdict) = verdict {
                let pair = (FIRST_GPU, device as usize);
                self.verdicts.borrow_mut().insert(pair, verdict);
                verify::nothing_refers_to(&self.gone.borrow());
            }
        }
        device
    }

    /// Returns the expected result of a registration that no other act disturbs.
    pub(super) fn expected(&self, wish: &Wish, who: &Who, device: *mut device) -> Option<Expected> {
        let loaded = self.persistent_first();
        if loaded.is_none() && matches!(*self.loaded.borrow(), Loaded::Changes) {
            return None;
        }
        let verdicts = self.verdicts.borrow();
        let has_too_many = self.has_too_many(who.uid)?;
        let question = Question {
            world: &self.world,
            wish,
            who,
            loaded,
            verdict: &|gpu| verdicts.get(&(gpu, device as usize)).copied(),
            has_too_many,
        };
        question.answer()
    }

    /// Tells whether the user has too many orphans. Returns [`None`] if that is not known.
    fn has_too_many(&self, uid: u32) -> Option<bool> {
        let Some((user, orphans, pages)) = self.left.get() else {
            return Some(false);
        };
        if user != uid || uid == 0 {
            return Some(false);
        }
        self.knows_orphans.get().then_some(())?;
        let orphaned = self.orphans.borrow();
        let own = orphaned
            .iter()
            .filter(|one| one.uid == uid && one.is_left());
        let (mut count, mut all_pages) = (orphans, pages);
        for one in own {
            count += 1;
            all_pages += one.pages;
        }
        Some(count >= ORPHANS || all_pages >= PAGES)
    }

    fn register(&self, wish: Wish, who: Who, overlap: &Overlap) {
        let request = self.request(&wish);
        let device = request.device.expect("each request has a device");
        let allocation = self.allocation(&wish, &who);
        let before = verify::Before::new(self.expected(&wish, &who, device));
        let asked = self.is_asked_about(device);
        let registered = world().rdma.register(request);
        // If no result was expected, the module may have learnt about a pair.
        if overlap.is_alone() && before.knows_the_result() {
            self.verdicts.replace(asked);
        }
        let after = self.expected(&wish, &who, device);
        let result = registered.as_ref().map(|_| ()).map_err(|&errno| errno);
        let kind = before.check(result, after, &wish, &who, overlap);
        let certain = overlap.is_alone() && allocation == self.allocation(&wish, &who);
        if let (Some(at), Some(verdict), true) = (allocation, before.learns(), certain) {
            let verdict = match overlap.something_fails() {
                true => Verdict::Uncertain,
                false => verdict,
            };
            let pair = (world().driver.gpu(at), device as usize);
            self.verdicts.borrow_mut().insert(pair, verdict);
        }
        if overlap.something_fails() {
            // If the module could not use a pin, and then could not end the pin either, the pin is
            // an orphan.
            self.knows_orphans.set(false);
        }
        if let Ok(registration) = registered {
            self.registered.set(self.registered.get() + 1);
            let held = Held {
                registration,
                wish,
                who,
                kind: kind.filter(|_| certain),
                allocation: allocation.filter(|_| certain),
            };
            self.held.borrow_mut().push(Rc::new(held));
        }
    }

    /// Returns the driver's allocation that a process can register at this range.
    fn allocation(&self, wish: &Wish, who: &Who) -> Option<usize> {
        let (start, len) = pages(wish.address, wish.len)?;
        start.checked_add(len)?;
        world().driver.find(who.process, start, len).ok()
    }

    /// Records that the module may learn about the pairs of a device, because an act is in
    /// progress. Returns the verdicts from before the act.
    fn is_asked_about(&self, device: *mut device) -> Verdicts {
        let mut verdicts = self.verdicts.borrow_mut();
        let known = verdicts.clone();
        for gpu in [7, 8] {
            let pair = (gpu, device as usize);
            verdicts.entry(pair).or_insert(Verdict::Uncertain);
        }
        known
    }

    /// Ends a registration by calling `end`. If the registration becomes an orphan, records the
    /// orphan.
    fn end(&self, held: &Held, who: Who, overlap: &Overlap, end: impl FnOnce(&Registration)) {
        let revoked = held.is_revoked();
        let knew = self.knows_orphans.replace(false);
        end(&held.registration);
        let (Some(revoked), true) = (revoked, overlap.is_alone() && !overlap.something_fails())
        else {
            return;
        };
        self.knows_orphans.set(knew);
        let same = (who.process, who.born) == (held.who.process, held.who.born);
        let (Some(Kind::Revocable), Some(allocation)) = (held.kind, held.allocation) else {
            return;
        };
        if !revoked && (!same || who.exiting) {
            let pages = pages(held.wish.address, held.wish.len);
            self.orphans.borrow_mut().push(Orphan {
                uid: held.who.uid,
                pages: pages.map_or(0, |(_, len)| (len / GPU_PAGE) as u32),
                allocation,
            });
        }
    }

    fn remove_device(&self, at: usize) {
        if let Some(device) = self.devices.borrow_mut()[at].take() {
            rdma::remove_device(device);
            self.gone.borrow_mut().push(device);
        }
    }

    fn read(&self) {
        // The two lists are not compared, because they may show the state at different moments.
        listed();
        known_pairs();
        verify::nothing_refers_to(&self.gone.borrow());
    }

    fn unload(&self, module: Module) {
        module.unload();
        self.forget();
        self.loaded.replace(Loaded::No);
    }

    /// Forgets the state of an unloaded module.
    fn forget(&self) {
        self.verdicts.borrow_mut().clear();
        self.orphans.borrow_mut().clear();
        self.knows_orphans.set(true);
        self.left.set(None);
    }

    fn load(&self, persistent: bool, beside_peermem: bool, overlap: &Overlap) {
        self.forget();
        let registered = self.registered.get();
        world().faults.peermem.set(beside_peermem);
        let result = Module::try_load(persistent);
        world().faults.peermem.set(false);
        let error = result.as_ref().err().copied();
        assert!(
            error.is_none() || registered == self.registered.get(),
            "a registration succeeded with a module whose loading failed"
        );
        verify::loading(error, persistent, beside_peermem, overlap);
        self.loaded.replace(match result {
            Ok(module) => Loaded::Yes(module, persistent),
            Err(_) => Loaded::No,
        });
    }

    /// Adds orphans to the user's count. If `pages` is false, their number is two below the limit.
    /// If `pages` is true, the number of their pages is two below the limit.
    fn leave(&self, uid: u32, pages: bool) {
        let (orphans, pages) = if pages {
            (1, PAGES - 2)
        } else {
            (ORPHANS - 2, 0)
        };
        let node = Users::new_node(uid);
        let Ok(node) = node else { return };
        let mut node = Some(node);
        REGISTRY.with(|registry| {
            for at in 0..orphans {
                registry.users.add(uid, &mut node);
                registry.users.orphan(uid, if at == 0 { pages } else { 0 });
            }
        });
        drop(node);
        self.left.set(Some((uid, orphans, pages)));
    }

    /// Returns the acts that end a history.
    pub(super) fn last_acts(&self) -> Vec<What> {
        let mut acts: Vec<_> = self
            .held
            .borrow()
            .iter()
            .map(|_| What::Deregister { which: 0 })
            .collect();
        for (place, &address) in PLACES.iter().enumerate() {
            let objects = world().driver.objects(address);
            acts.extend((0..objects).map(|_| What::Free { place }));
        }
        acts.push(What::Unload);
        acts
    }
}

impl Orphan {
    /// Tells whether the orphan's memory still exists.
    pub(super) fn is_left(&self) -> bool {
        !world().driver.is_freed(self.allocation)
    }
}

/// Makes the current task a thread of the process that `who` describes.
pub(super) fn become_one_of(who: Who) {
    let task = task();
    task.uid.set(who.uid);
    task.born.set(who.born);
    task.exiting.set(who.exiting);
}
