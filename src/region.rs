// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The life of one region: its phases, the events that move it, and who may do what.
//!
//! Nothing here calls anyone. Each event is a method that the owner of a [`Life`] calls under its
//! lock; what it returns (a pin, a mapping, a ticket) is for that caller alone to act on, after it
//! has let go of the lock. That is how two threads that tear down the same region are kept apart:
//! the mapping and the pin are in here once, and whoever gets them out does the work.
//!
//! # Locks and their order
//!
//! | lock | whose | held over |
//! |---|---|---|
//! | list lock | RDMA core | its call `acquire` into us, registration and unregistration of clients |
//! | gate, one | ours (`p2p/gate.rs`) | calls to pin revocably (shared) and to unpin (exclusive) |
//! | API lock | driver | its free callback into us; inside our calls to pin, unpin and map |
//! | mapping lock, one per region | RDMA core | its calls `get_pages` and `dma_map` into us, in older cores also `dma_unmap` and `put_pages`; inside our call to invalidate |
//! | life lock, one per region | ours | one method of [`Life`], never a call into either neighbour |
//! | locks of the tables of ids, pairs, processes and registrations | ours | one look-up, never a call into anyone |
//!
//! They are taken in this order, from the top down. The rules that keep it so:
//!
//! - The driver is asked to pin in `acquire` and to unpin in `release`, which the core calls
//!   without the mapping lock. In `dma_map`, under it, the driver is asked about pins that are never
//!   revoked alone: it maps such a region, or a page for its verdict on the pair (`p2p/verdict.rs`).
//!   The region in hand is not `Mapped` then, so that no callback waits for its mapping lock.
//! - The core is told of a revocation only for a region in phase `Mapped`: from then on the thread
//!   that holds the mapping lock waits for nothing of ours or the driver's.
//! - The callback waits only for the end of the pin call that armed it, which needs no lock of the
//!   driver any more, and for the end of a `dma_unmap`, which needs none. It never takes the gate.

use super::errno::Errno;

/// The core's name for a registration, to be handed back when it is revoked; 0 is a legal one.
pub(crate) type Ticket = u64;

/// A thread, as the kernel numbers them.
pub(crate) type Thread = i32;

/// Where a region is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The driver has been asked for the pages and has not answered yet.
    Pinning,
    /// The memory is the GPU's, but cannot be had for this reason.
    Refused(Errno),
    /// The driver has pinned the pages.
    Pinned,
    /// The core has named the registration.
    Bound(Ticket),
    /// The device may use the addresses.
    Mapped(Ticket),
    /// This thread is reporting to the core that the memory goes away, and undoing the mapping.
    Revoking(Thread),
    /// The driver has taken the memory back.
    Revoked,
    /// The core has let go of the addresses; its thread is undoing the mapping.
    Unmapping,
    /// The mapping is undone, the pages are pinned still.
    Unmapped,
    /// Nothing is left to give back.
    Gone,
}

/// The life of one region, with the pin `P`, if it has one that can be revoked, and the mapping `M`
/// that it owns, or what there is in its place: before it what is to be mapped, after it what is left.
///
/// # Invariants
///
/// `mapping` is one only in the phases `Mapped` and `Revoking`, `pin` is there only from `Pinned` to
/// `Revoking`, in `Unmapping` and in `Unmapped`.
pub(crate) struct Life<P, M> {
    phase: Phase,
    pin: Option<P>,
    mapping: Option<M>,
}

/// What the driver's free callback has to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Revocation<P> {
    /// Wait until the phase changes, then ask again: the call that pins, or one that undoes the
    /// mapping, has not returned yet.
    Wait,
    /// The device never saw the memory: let go of the pin without unpinning it.
    Forget(P),
    /// Tell the core, with this ticket; then [`Life::told`] and [`Life::revoked`].
    Tell(Ticket),
    /// The region was given back already.
    Nothing,
}

/// What is left of a region, for the caller to give back: first the mapping, then the pin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rest<P, M> {
    pub(crate) mapping: Option<M>,
    pub(crate) pin: Option<P>,
}

impl<P, M> Life<P, M> {
    /// A region about to be pinned.
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Pinning,
            pin: None,
            mapping: None,
        }
    }

    /// The driver has pinned the pages, of which `source` is to be mapped. What nobody was waiting for
    /// comes back.
    pub(crate) fn pinned(&mut self, pin: Option<P>, source: M) -> Result<(), Rest<P, M>> {
        if self.phase != Phase::Pinning {
            let mapping = Some(source);
            return Err(Rest { mapping, pin });
        }
        self.pin = pin;
        self.mapping = Some(source);
        self.phase = Phase::Pinned;
        Ok(())
    }

    /// The memory is the GPU's, but the driver does not give it: what `get_pages` shall answer.
    pub(crate) fn refused(&mut self, reason: Errno) {
        self.phase = Phase::Refused(reason);
    }

    /// The core gives the registration its ticket (`get_pages`).
    pub(crate) fn bind(&mut self, ticket: Ticket) -> Result<(), Errno> {
        match self.phase {
            Phase::Pinned => {
                self.phase = Phase::Bound(ticket);
                Ok(())
            }
            Phase::Refused(reason) => Err(reason),
            Phase::Revoked => Err(Errno::FAULT),
            _ => Err(Errno::INVAL),
        }
    }

    /// What to map, if the pages may be mapped now (`dma_map`).
    pub(crate) fn mappable(&mut self) -> Result<M, Errno> {
        match self.phase {
            Phase::Bound(_) => self.mapping.take().ok_or(Errno::INVAL),
            Phase::Revoked => Err(Errno::FAULT),
            _ => Err(Errno::INVAL),
        }
    }

    /// It could not be mapped: `rest` is there still.
    pub(crate) fn not_mapped(&mut self, rest: Option<M>) {
        self.mapping = rest;
    }

    /// The pages are mapped: the last step of `dma_map`. If the memory was revoked meanwhile the
    /// mapping comes back, to be undone.
    pub(crate) fn mapped(&mut self, mapping: M) -> Result<(), (Errno, M)> {
        match self.phase {
            Phase::Bound(ticket) => {
                self.mapping = Some(mapping);
                self.phase = Phase::Mapped(ticket);
                Ok(())
            }
            Phase::Revoked => Err((Errno::FAULT, mapping)),
            _ => Err((Errno::INVAL, mapping)),
        }
    }

    /// The core lets go of the addresses (`dma_unmap`): the mapping, if it is for the caller to
    /// undo and not for a revocation. When it has, it calls [`Self::unmapped`].
    pub(crate) fn unmap(&mut self) -> Option<M> {
        match self.phase {
            Phase::Mapped(_) => {
                self.phase = Phase::Unmapping;
                self.mapping.take()
            }
            _ => None,
        }
    }

    /// The mapping that [`Self::unmap`] gave out is undone: `rest` is what is left of it.
    pub(crate) fn unmapped(&mut self, rest: M) {
        self.mapping = Some(rest);
        if self.phase == Phase::Unmapping {
            self.phase = Phase::Unmapped;
        }
    }

    /// The driver takes the memory back, in its free callback on `thread`.
    pub(crate) fn revoke(&mut self, thread: Thread) -> Revocation<P> {
        match self.phase {
            Phase::Pinning | Phase::Unmapping => Revocation::Wait,
            Phase::Mapped(ticket) => {
                self.phase = Phase::Revoking(thread);
                Revocation::Tell(ticket)
            }
            Phase::Pinned | Phase::Bound(_) | Phase::Unmapped => {
                self.phase = Phase::Revoked;
                match self.pin.take() {
                    Some(pin) => Revocation::Forget(pin),
                    None => Revocation::Nothing,
                }
            }
            Phase::Refused(_) | Phase::Revoking(_) | Phase::Revoked | Phase::Gone => {
                Revocation::Nothing
            }
        }
    }

    /// The core has been told and the device uses the addresses no more: what the callback undoes
    /// (the mapping) and lets go of (the pin, which the driver itself undoes). When it has, it
    /// calls [`Self::revoked`].
    pub(crate) fn told(&mut self) -> Rest<P, M> {
        match self.phase {
            Phase::Revoking(_) => self.take_rest(),
            _ => Rest {
                mapping: None,
                pin: None,
            },
        }
    }

    /// The callback has undone everything: nobody need wait for it any more. `rest` is what is left.
    pub(crate) fn revoked(&mut self, rest: Option<M>) {
        self.mapping = rest;
        self.phase = Phase::Revoked;
    }

    /// The core forgets the region (`release`) on `thread`: what nobody has given back yet, the pin
    /// above all. While another thread is revoking this region there is nothing to say but
    /// [`None`]: wait until the phase changes and ask again.
    pub(crate) fn release(&mut self, thread: Thread) -> Option<Rest<P, M>> {
        match self.phase {
            Phase::Revoking(other) if other != thread => None,
            // Released from inside the core's answer to our own invalidation (older cores do
            // that). The device may go when this has returned; the callback further up this stack
            // lets go of the pin.
            Phase::Revoking(_) => Some(Rest {
                mapping: self.mapping.take(),
                pin: None,
            }),
            _ => {
                self.phase = Phase::Gone;
                Some(self.take_rest())
            }
        }
    }

    fn take_rest(&mut self) -> Rest<P, M> {
        Rest {
            mapping: self.mapping.take(),
            pin: self.pin.take(),
        }
    }
}
