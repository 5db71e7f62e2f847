// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Neighbours that keep no contract: whatever comes in whatever order, nothing panics, and what
//! went into the region comes out of it, once.

use super::{
    tokens::{give_back, Book, TestLife},
    walk::{every_sequence, Trail, World},
};
use crate::{
    errno::Errno,
    random::Random,
    region::{Revocation, Thread},
};

const USER: Thread = 1;
const DRIVER: Thread = 2;

/// One method of the region's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Pinned,
    Refused,
    Bind,
    Mappable,
    Mapped,
    Unmap,
    Put,
    Revoke,
    Told,
    Revoked,
    ReleaseByUser,
    ReleaseByDriver,
}

const EVENTS: [Event; 12] = [
    Event::Pinned,
    Event::Refused,
    Event::Bind,
    Event::Mappable,
    Event::Mapped,
    Event::Unmap,
    Event::Put,
    Event::Revoke,
    Event::Told,
    Event::Revoked,
    Event::ReleaseByUser,
    Event::ReleaseByDriver,
];

/// A region on which events rain.
struct Rain {
    book: Book,
    life: TestLife,
    /// The region told the callback to tell the core, and has not heard what came of it.
    telling: bool,
    left: usize,
}

impl Rain {
    fn new(left: usize) -> Self {
        Self {
            book: Book::default(),
            life: TestLife::new(),
            telling: false,
            left,
        }
    }

    fn happen(&mut self, event: Event) {
        let before = (self.book.pins_out(), self.book.mappings_out());
        let (life, book) = (&mut self.life, &self.book);
        match event {
            Event::Pinned => {
                if let Err(pin) = life.pinned(book.pin()) {
                    pin.give_back();
                }
            }
            Event::Refused => {
                life.refused(Errno::NOMEM);
                self.telling = false;
            }
            Event::Bind => drop(life.bind(7)),
            Event::Mappable => drop(life.mappable().map(|_pin| ())),
            Event::Mapped => {
                if let Err((_, mapping)) = life.mapped(book.mapping()) {
                    mapping.give_back();
                }
            }
            Event::Unmap => life.unmap().into_iter().for_each(|out| out.give_back()),
            Event::Put => life.put().into_iter().for_each(|out| out.give_back()),
            Event::Revoke => match life.revoke(DRIVER) {
                Revocation::Forget(pin) => pin.give_back(),
                Revocation::Tell(ticket) => {
                    assert_eq!(ticket, 7);
                    assert_eq!(before, (1, 1), "tells without a mapping");
                    self.telling = true;
                }
                Revocation::Wait | Revocation::Nothing => {}
            },
            Event::Told => give_back(life.told()),
            Event::Revoked => {
                life.revoked();
                self.telling = false;
            }
            Event::ReleaseByUser => {
                let rest = life.release(USER);
                assert_eq!(rest.is_none(), self.telling, "waits");
                rest.into_iter().for_each(give_back);
            }
            Event::ReleaseByDriver => give_back(life.release(DRIVER).expect("waits for itself")),
        }
        // Whatever went out: no mapping stays without its pin.
        let after = (self.book.pins_out(), self.book.mappings_out());
        assert!(after.0 >= after.1, "{event:?}: {before:?} to {after:?}");
        assert!(after.0 <= 1, "{event:?}: {before:?} to {after:?}");
    }

    /// A last release, and the end of a callback if one is under way: then nothing is left.
    fn end(mut self) {
        give_back(self.life.release(DRIVER).expect("waits for itself"));
        if self.telling {
            assert!(matches!(self.life.revoke(DRIVER), Revocation::Nothing));
            assert!(self.life.release(USER).is_none(), "does not wait");
            give_back(self.life.told());
            assert!(self.life.release(USER).is_none(), "does not wait");
            self.life.revoked();
        }
        let rest = self.life.release(USER).expect("waits for ever");
        assert!(rest.mapping.is_none() && rest.pin.is_none());
        self.book.assert_balanced();
        drop(self.life);
        self.book.assert_balanced();
    }
}

impl World for Rain {
    type Step = Event;

    fn steps(&self) -> Vec<Event> {
        match self.left {
            0 => vec![],
            _ => EVENTS.to_vec(),
        }
    }

    fn take(&mut self, event: Event) {
        self.left -= 1;
        self.happen(event);
    }

    fn finish(self) {
        self.end();
    }
}

#[test]
fn every_short_sequence() {
    let mut sequences = 0;
    for length in 0..=6 {
        sequences += every_sequence(|| Rain::new(length));
    }
    println!("{sequences} sequences");
    assert!(sequences > 1_000_000);
}

#[test]
fn long_sequences() {
    let mut random = Random::new();
    for _ in 0..20_000 {
        let mut rain = Rain::new(0);
        let mut trail = Trail::default();
        for _ in 0..random.below(60) {
            let event = random.one_of(&EVENTS);
            trail.add(event);
            rain.happen(event);
        }
        rain.end();
    }
}

/// A second pin while there is one must not push the first out of the region: it would be undone
/// under the region's lock.
#[test]
fn a_second_pin() {
    let book = Book::default();
    let mut life = TestLife::new();
    life.pinned(book.pin()).unwrap();
    life.pinned(book.pin()).unwrap_err().give_back();
    assert_eq!(book.pins_out(), 1);
    give_back(life.release(USER).unwrap());
    book.assert_balanced();
}
