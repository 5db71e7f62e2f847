// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A model of the two neighbours that keep their contracts, around one region.
//!
//! Two threads act: the user's, which registers and deregisters through the RDMA core, and the
//! one in which the driver takes the memory back. A step is one method of the region's life, or
//! one thing that happens outside of it between two such methods: pages unpinned, a mapping
//! undone, the device switched off. Steps of the two threads come in every order that the
//! neighbours' own locks allow:
//!
//! - the driver's API lock, held over its whole callback; unpinning needs it, and a pin call has
//!   let go of it by the time it returns;
//! - the core's lock of one registration, as each kind of core holds it.
//!
//! What each method must answer follows from what the model knows about pin and mapping, without
//! a look at the phases inside.

use std::{cell::Cell, fmt};

use super::{
    tokens::{Book, Mapping, Pin, TestLife},
    walk::World,
};
use crate::{
    errno::Errno,
    region::{Revocation, Thread, Ticket},
};

const USER: Thread = 1;

/// How the RDMA core behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Core {
    /// Holds its lock over registration, not over deregistration. After an invalidation it only
    /// releases.
    Current,
    /// Holds its lock over both. An invalidation unmaps and puts before it returns.
    Locked,
    /// Holds no lock over registration. An invalidation does all of the deregistration before it
    /// returns, if the registration is complete; else the registration fails.
    Reentrant,
}

/// In which world a walk takes place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) core: Core,
    /// The core's name for the registration.
    pub(crate) ticket: Ticket,
    /// The memory is freed by the thread that registered it, between two calls of the core.
    pub(crate) one_thread: bool,
    /// Deregistration comes from another process: unpinning does nothing there, and the callback
    /// comes after all.
    pub(crate) other_process: bool,
    /// Also check that no mapping is still to be undone when `release` has returned.
    pub(crate) undone_by_release: bool,
}

/// How often what happened, over a whole walk: a walk that never came across something proves
/// nothing about it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) sequences: Counter,
    pub(crate) steps: Counter,
    pub(crate) waits: Counter,
    pub(crate) forgets: Counter,
    pub(crate) tells: Counter,
    pub(crate) nothings: Counter,
    pub(crate) revoked_before_bind: Counter,
    pub(crate) revoked_before_mapped: Counter,
    pub(crate) release_waits: Counter,
    /// The core had been told already, but the rest was not undone yet.
    pub(crate) release_waits_for_rest: Counter,
    pub(crate) release_inside: Counter,
    pub(crate) unmap_lost: Counter,
    pub(crate) put_lost: Counter,
    pub(crate) rests: Counter,
    /// The driver had the pages back before a mapping of them, unused by then, was undone.
    pub(crate) mapping_last: Counter,
}

/// A number that only grows.
#[derive(Default)]
pub(crate) struct Counter(Cell<u64>);

impl Counter {
    pub(crate) fn get(&self) -> u64 {
        self.0.get()
    }

    pub(crate) fn add(&self, more: u64) {
        self.0.set(self.0.get() + more);
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.get().fmt(f)
    }
}

/// A step of either thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    User(UserStep),
    Callback(CallbackStep),
}

/// A step of the thread that registers and deregisters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserStep {
    /// The pin call succeeded.
    Pinned,
    /// The pin call failed, and no callback can come.
    Refused,
    /// The pin call succeeded, but the pages are of no use.
    Useless,
    /// `get_pages`.
    Bind,
    /// The core fails by itself, before `get_pages`.
    GiveUp,
    /// First part of `dma_map`.
    Mappable,
    /// `dma_map` fails before it asks for the pages.
    BadDevice,
    /// Last part of `dma_map`.
    Mapped,
    /// `dma_map` fails in between.
    MapFails,
    /// The device gets the addresses.
    Activate,
    /// The core fails after `dma_map`.
    ActivateFails,
    /// Deregistration begins: the device lets go of the addresses.
    Stop,
    /// `dma_unmap`.
    Unmap,
    /// `put_pages`.
    Put,
    /// The core skips `put_pages`.
    SkipPut,
    /// `release`, or its next attempt.
    Release,
    /// Undoes the mapping that it got out.
    UndoMapping,
    /// Unpins the pages that it got out.
    Unpin,
}

/// A step of the driver's callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallbackStep {
    /// The driver calls; or the next attempt after waiting.
    Revoke,
    /// The core is told: it switches the device off.
    Invalidate,
    /// The core calls `dma_unmap` from within.
    InnerUnmap,
    /// The core calls `put_pages` from within.
    InnerPut,
    /// The core calls `release` from within.
    InnerRelease,
    /// The core has been told.
    Told,
    /// Undoes the mapping that it got out.
    UndoMapping,
    /// Lets go of the pin that it got out.
    Forget,
    /// Nothing is left to undo.
    Revoked,
    /// The callback returns: the driver takes the pages.
    Return,
}

/// Where the user's thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UserAt {
    Pinning,
    Acquired,
    Bound,
    Mapping,
    MapFailed,
    Mapped,
    Registered,
    Stopped,
    Unmapped,
    Leaving,
    /// `release` waits.
    Waiting,
    Released,
}

/// Where the callback is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallbackAt {
    NotCalled,
    Waiting,
    Telling,
    InnerUnmap,
    InnerPut,
    InnerRelease,
    Told,
    Undoing,
    Returning,
    Returned,
}

/// What a thread got out and has not given back yet.
#[derive(Debug, Default)]
struct Hand {
    mapping: Option<Mapping>,
    pin: Option<Pin>,
}

impl Hand {
    fn is_empty(&self) -> bool {
        self.mapping.is_none() && self.pin.is_none()
    }
}

/// One region, its neighbours, and what is known about them from outside.
pub(crate) struct Neighbours<'a> {
    setting: Setting,
    seen: &'a Seen,
    book: Book,
    life: TestLife,

    user: UserAt,
    user_hand: Hand,
    callback: CallbackAt,
    callback_hand: Hand,

    /// The driver will call if the memory is freed.
    armed: bool,
    /// The waiting thread has been woken for no reason, which may happen; once is enough.
    user_woken: bool,
    callback_woken: bool,
    /// The device may use the addresses.
    device_on: bool,
    /// The core knows that the memory is gone.
    invalidated: bool,
    /// The user's thread holds the core's lock of this registration.
    user_has_lock: bool,

    /// The driver's answer to the pin call, once it is there.
    answer: Option<Result<(), Errno>>,
    /// The region owns a pin.
    pin_inside: bool,
    /// The region owns a mapping.
    mapping_inside: bool,
    /// The region told the callback to tell the core, and has not heard that all is undone.
    telling: bool,
    /// The memory was taken back before the region gave it up.
    revoked: bool,
}

impl<'a> Neighbours<'a> {
    /// A region whose pin call is under way.
    pub(crate) fn new(setting: Setting, seen: &'a Seen) -> Self {
        Self {
            setting,
            seen,
            book: Book::default(),
            life: TestLife::new(),
            user: UserAt::Pinning,
            user_hand: Hand::default(),
            callback: CallbackAt::NotCalled,
            callback_hand: Hand::default(),
            armed: true,
            user_woken: false,
            callback_woken: false,
            device_on: false,
            invalidated: false,
            user_has_lock: false,
            answer: None,
            pin_inside: false,
            mapping_inside: false,
            telling: false,
            revoked: false,
        }
    }

    /// The thread of the callback.
    fn callback_thread(&self) -> Thread {
        match self.setting.one_thread {
            true => USER,
            false => USER + 1,
        }
    }

    /// The driver's callback is running, and with it its API lock is held.
    fn callback_runs(&self) -> bool {
        !matches!(self.callback, CallbackAt::NotCalled | CallbackAt::Returned)
    }

    /// The core's lock of this registration is held by the callback.
    fn callback_has_lock(&self) -> bool {
        matches!(
            self.callback,
            CallbackAt::InnerUnmap | CallbackAt::InnerPut | CallbackAt::InnerRelease
        )
    }

    fn user_steps(&self) -> Vec<UserStep> {
        use UserStep::*;
        if self.setting.one_thread && self.callback_runs() {
            return vec![];
        }
        if self.user_hand.mapping.is_some() {
            return vec![UndoMapping];
        }
        if self.user_hand.pin.is_some() {
            return match self.callback_runs() {
                true => vec![],
                false => vec![Unpin],
            };
        }
        match self.user {
            UserAt::Pinning if self.callback == CallbackAt::NotCalled => {
                vec![Pinned, Useless, Refused]
            }
            UserAt::Pinning => vec![Pinned, Useless],
            UserAt::Acquired => vec![Bind, GiveUp],
            UserAt::Bound => vec![Mappable, BadDevice],
            UserAt::Mapping => vec![Mapped, MapFails],
            UserAt::MapFailed => vec![Put, SkipPut],
            UserAt::Mapped if self.invalidated => vec![ActivateFails],
            UserAt::Mapped => vec![Activate, ActivateFails],
            UserAt::Registered if self.callback_has_lock() => vec![],
            UserAt::Registered if self.invalidated => vec![Release],
            UserAt::Registered => vec![Stop],
            UserAt::Stopped => vec![Unmap],
            UserAt::Unmapped => vec![Put],
            UserAt::Leaving => vec![Release],
            UserAt::Waiting if self.telling && self.user_woken => vec![],
            UserAt::Waiting => vec![Release],
            UserAt::Released => vec![],
        }
    }

    fn callback_steps(&self) -> Vec<CallbackStep> {
        use CallbackStep::*;
        if self.callback_hand.mapping.is_some() {
            return vec![UndoMapping];
        }
        if self.callback_hand.pin.is_some() {
            return vec![Forget];
        }
        match self.callback {
            CallbackAt::NotCalled if !self.armed => vec![],
            CallbackAt::NotCalled if self.setting.one_thread => {
                // Not from within a call of the core.
                match self.user {
                    UserAt::Registered => vec![Revoke],
                    UserAt::Released if self.user_hand.is_empty() => vec![Revoke],
                    _ => vec![],
                }
            }
            CallbackAt::NotCalled => vec![Revoke],
            CallbackAt::Waiting if self.answer.is_none() && self.callback_woken => vec![],
            CallbackAt::Waiting => vec![Revoke],
            CallbackAt::Telling if self.user_has_lock => vec![],
            CallbackAt::Telling => vec![Invalidate],
            CallbackAt::InnerUnmap => vec![InnerUnmap],
            CallbackAt::InnerPut => vec![InnerPut],
            CallbackAt::InnerRelease => vec![InnerRelease],
            CallbackAt::Told => vec![Told],
            CallbackAt::Undoing => vec![Revoked],
            CallbackAt::Returning => vec![Return],
            CallbackAt::Returned => vec![],
        }
    }

    fn take_user(&mut self, step: UserStep) {
        let locks = self.setting.core != Core::Reentrant;
        match step {
            UserStep::Pinned => {
                let outcome = self.life.pinned(self.book.pin());
                outcome.expect("the pin was waited for");
                self.answer = Some(Ok(()));
                self.pin_inside = true;
                self.user = UserAt::Acquired;
            }
            UserStep::Refused => {
                self.life.refused(Errno::NOMEM);
                self.answer = Some(Err(Errno::NOMEM));
                self.armed = false;
                self.user = UserAt::Acquired;
            }
            UserStep::Useless => {
                self.life.refused(Errno::OPNOTSUPP);
                self.answer = Some(Err(Errno::OPNOTSUPP));
                // The caller of the pin call unpins by itself.
                self.user_hand.pin = Some(self.book.pin());
                self.user = UserAt::Acquired;
            }
            UserStep::GiveUp => self.user = UserAt::Leaving,
            UserStep::Bind => self.bind(locks),
            UserStep::BadDevice | UserStep::MapFails => self.user = UserAt::MapFailed,
            UserStep::Mappable => self.mappable(),
            UserStep::Mapped => self.mapped(),
            UserStep::Activate => {
                self.device_on = true;
                self.user_has_lock = false;
                self.user = UserAt::Registered;
            }
            UserStep::ActivateFails | UserStep::Stop => {
                self.device_on = false;
                self.user_has_lock = self.setting.core == Core::Locked;
                self.user = UserAt::Stopped;
            }
            UserStep::Unmap => {
                self.user_hand.mapping = self.unmap();
                self.user = UserAt::Unmapped;
            }
            UserStep::Put => {
                self.user_hand.pin = self.put();
                self.user = UserAt::Leaving;
            }
            UserStep::SkipPut => self.user = UserAt::Leaving,
            UserStep::Release => self.release(),
            UserStep::UndoMapping => {
                self.user_hand.mapping.take().unwrap().give_back();
            }
            UserStep::Unpin => {
                assert!(!self.device_on, "unpinned under the device");
                assert!(self.user_hand.mapping.is_none() && !self.mapping_inside);
                self.user_hand.pin.take().unwrap().give_back();
                self.armed = self.setting.other_process;
            }
        }
        if self.user == UserAt::Leaving && self.user_hand.is_empty() {
            self.user_has_lock = false;
        }
    }

    fn bind(&mut self, locks: bool) {
        let expected = match self.answer {
            Some(Err(reason)) => Err(reason),
            _ if self.revoked => Err(Errno::FAULT),
            _ => Ok(()),
        };
        assert_eq!(self.life.bind(self.setting.ticket), expected);
        if self.revoked {
            self.seen.revoked_before_bind.add(1);
        }
        match expected {
            Ok(()) => {
                self.user_has_lock = locks;
                self.user = UserAt::Bound;
            }
            Err(_) => self.user = UserAt::Leaving,
        }
    }

    fn mappable(&mut self) {
        let outcome = self.life.mappable().map(|_pin| ());
        match self.revoked {
            true => {
                assert_eq!(outcome, Err(Errno::FAULT));
                self.user = UserAt::MapFailed;
            }
            false => {
                assert_eq!(outcome, Ok(()));
                self.user = UserAt::Mapping;
            }
        }
    }

    fn mapped(&mut self) {
        match self.life.mapped(self.book.mapping()) {
            Ok(()) => {
                assert!(!self.revoked, "mapped what is not there");
                self.mapping_inside = true;
                self.user = UserAt::Mapped;
            }
            Err((errno, mapping)) => {
                assert!(self.revoked && errno == Errno::FAULT);
                self.seen.revoked_before_mapped.add(1);
                self.user_hand.mapping = Some(mapping);
                self.user = UserAt::MapFailed;
            }
        }
    }

    /// `dma_unmap`, from either thread.
    fn unmap(&mut self) -> Option<Mapping> {
        let mapping = self.life.unmap();
        let expected = self.mapping_inside && !self.telling;
        assert_eq!(mapping.is_some(), expected, "unmap");
        match expected {
            true => self.mapping_inside = false,
            false => self.seen.unmap_lost.add(1),
        }
        mapping
    }

    /// `put_pages`, from either thread.
    fn put(&mut self) -> Option<Pin> {
        let pin = self.life.put();
        let expected = self.pin_inside && !self.mapping_inside;
        assert_eq!(pin.is_some(), expected, "put");
        match expected {
            true => self.pin_inside = false,
            false => self.seen.put_lost.add(1),
        }
        pin
    }

    /// `release` in the user's thread.
    fn release(&mut self) {
        let Some(rest) = self.life.release(USER) else {
            assert!(self.telling, "release waits for nothing");
            self.seen.release_waits.add(1);
            if self.callback == CallbackAt::Undoing {
                self.seen.release_waits_for_rest.add(1);
            }
            self.user_woken = self.user == UserAt::Waiting;
            self.user = UserAt::Waiting;
            return;
        };
        assert!(!self.telling, "release does not wait");
        assert_eq!(
            (rest.mapping.is_some(), rest.pin.is_some()),
            (self.mapping_inside, self.pin_inside),
            "release"
        );
        // The core has unmapped before, or been told.
        assert!(!self.mapping_inside);
        if self.pin_inside {
            self.seen.rests.add(1);
        }
        self.pin_inside = false;
        self.user_hand.pin = rest.pin;
        self.user = UserAt::Released;
        if self.setting.undone_by_release {
            assert_eq!(self.book.mappings_out(), 0, "a mapping outlives release");
        }
    }

    fn take_callback(&mut self, step: CallbackStep) {
        match step {
            CallbackStep::Revoke => self.revoke(),
            CallbackStep::Invalidate => self.invalidate(),
            CallbackStep::InnerUnmap => {
                assert!(self.unmap().is_none());
                self.callback = CallbackAt::InnerPut;
            }
            CallbackStep::InnerPut => {
                assert!(self.put().is_none());
                self.callback = match self.setting.core {
                    Core::Reentrant => CallbackAt::InnerRelease,
                    _ => CallbackAt::Told,
                };
            }
            CallbackStep::InnerRelease => {
                let rest = self.life.release(self.callback_thread());
                let rest = rest.expect("release waits for itself");
                assert!(rest.mapping.is_none() && rest.pin.is_none());
                self.seen.release_inside.add(1);
                self.user = UserAt::Released;
                self.callback = CallbackAt::Told;
            }
            CallbackStep::Told => {
                let rest = self.life.told();
                assert!(rest.mapping.is_some() && rest.pin.is_some(), "told");
                self.callback_hand = Hand {
                    mapping: rest.mapping,
                    pin: rest.pin,
                };
                self.mapping_inside = false;
                self.pin_inside = false;
                self.callback = CallbackAt::Undoing;
            }
            CallbackStep::UndoMapping => {
                self.callback_hand.mapping.take().unwrap().give_back();
            }
            CallbackStep::Forget => {
                self.callback_hand.pin.take().unwrap().give_back();
            }
            CallbackStep::Revoked => {
                self.life.revoked();
                self.telling = false;
                self.revoked = true;
                self.callback = CallbackAt::Returning;
            }
            CallbackStep::Return => {
                assert!(!self.device_on, "the pages go under the device");
                assert!(!self.mapping_inside && !self.pin_inside);
                if self.book.mappings_out() > 0 {
                    self.seen.mapping_last.add(1);
                }
                self.armed = false;
                self.callback = CallbackAt::Returned;
            }
        }
    }

    fn revoke(&mut self) {
        let revocation = self.life.revoke(self.callback_thread());
        self.callback = match revocation {
            Revocation::Wait => {
                assert!(self.answer.is_none(), "waits for nothing");
                self.seen.waits.add(1);
                self.callback_woken = self.callback == CallbackAt::Waiting;
                CallbackAt::Waiting
            }
            Revocation::Tell(ticket) => {
                assert!(self.mapping_inside && self.pin_inside, "tells too much");
                assert_eq!(ticket, self.setting.ticket);
                self.seen.tells.add(1);
                self.telling = true;
                CallbackAt::Telling
            }
            Revocation::Forget(pin) => {
                assert!(!self.mapping_inside, "forgets under a mapping");
                assert!(self.pin_inside, "forgets what it had not");
                self.seen.forgets.add(1);
                self.pin_inside = false;
                self.revoked = true;
                self.callback_hand.pin = Some(pin);
                CallbackAt::Returning
            }
            Revocation::Nothing => {
                assert!(self.answer.is_some(), "does not wait for the pin");
                assert!(!self.pin_inside && !self.mapping_inside, "forgets nothing");
                self.seen.nothings.add(1);
                CallbackAt::Returning
            }
        };
    }

    /// The core's answer to being told.
    fn invalidate(&mut self) {
        let registered = self.user == UserAt::Registered;
        self.callback = match self.setting.core {
            _ if !registered => CallbackAt::Told,
            Core::Current => CallbackAt::Told,
            Core::Locked | Core::Reentrant => CallbackAt::InnerUnmap,
        };
        if registered || self.user == UserAt::Mapped {
            self.device_on = false;
            self.invalidated = true;
        }
    }

    /// After the end nothing moves the region any more, and nothing comes out of it.
    fn assert_over(&mut self) {
        let pin = self.life.pinned(self.book.pin()).unwrap_err();
        pin.give_back();
        assert!(self.life.bind(0).is_err());
        assert!(self.life.mappable().is_err());
        let (_, mapping) = self.life.mapped(self.book.mapping()).unwrap_err();
        mapping.give_back();
        assert!(self.life.unmap().is_none());
        assert!(self.life.put().is_none());
        assert!(matches!(self.life.revoke(USER), Revocation::Nothing));
        let rest = self.life.release(USER).expect("waits for ever");
        assert!(rest.mapping.is_none() && rest.pin.is_none());
    }
}

impl World for Neighbours<'_> {
    type Step = Step;

    fn steps(&self) -> Vec<Step> {
        let user = self.user_steps().into_iter().map(Step::User);
        let callback = self.callback_steps().into_iter().map(Step::Callback);
        user.chain(callback).collect()
    }

    fn take(&mut self, step: Step) {
        self.seen.steps.add(1);
        match step {
            Step::User(step) => self.take_user(step),
            Step::Callback(step) => self.take_callback(step),
        }
    }

    fn finish(mut self) {
        assert_eq!(self.user, UserAt::Released, "the user waits for ever");
        assert!(!self.callback_runs(), "the callback waits for ever");
        assert!(!self.device_on);
        self.assert_over();
        self.book.assert_balanced();
    }
}
