// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Stand-ins for pins and mappings, and the book in which each of them is entered.

use std::{cell::RefCell, fmt, rc::Rc, thread};

use crate::region::{Life, Rest};

/// The life of a region that owns stand-ins.
pub(crate) type TestLife = Life<Pin, Mapping>;

/// What became of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Out,
    GivenBack,
    Lost,
}

/// What kind of thing a token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pin,
    Mapping,
}

/// The book of all tokens of one region.
#[derive(Clone, Default)]
pub(crate) struct Book(Rc<RefCell<Vec<(Kind, Fate)>>>);

impl Book {
    /// A new pin.
    pub(crate) fn pin(&self) -> Pin {
        Pin(self.enter(Kind::Pin))
    }

    /// A new mapping.
    pub(crate) fn mapping(&self) -> Mapping {
        Mapping(self.enter(Kind::Mapping))
    }

    fn enter(&self, kind: Kind) -> Token {
        let mut entries = self.0.borrow_mut();
        entries.push((kind, Fate::Out));
        Token {
            number: entries.len() - 1,
            book: self.clone(),
        }
    }

    fn count(&self, wanted: impl Fn(&(Kind, Fate)) -> bool) -> usize {
        self.0.borrow().iter().filter(|entry| wanted(entry)).count()
    }

    /// Pins that nobody has given back.
    pub(crate) fn pins_out(&self) -> usize {
        self.count(|&entry| entry == (Kind::Pin, Fate::Out))
    }

    /// Mappings that nobody has given back.
    pub(crate) fn mappings_out(&self) -> usize {
        self.count(|&entry| entry == (Kind::Mapping, Fate::Out))
    }

    /// Everything that there was has been given back, once.
    pub(crate) fn assert_balanced(&self) {
        let bad = self.count(|&(_, fate)| fate != Fate::GivenBack);
        assert_eq!(bad, 0, "not given back: {:?}", self.0.borrow());
    }
}

/// One thing to be given back, once and by whoever has it.
struct Token {
    number: usize,
    book: Book,
}

impl Token {
    fn settle(&self, fate: Fate) -> Fate {
        let mut entries = self.book.0.borrow_mut();
        std::mem::replace(&mut entries[self.number].1, fate)
    }

    fn give_back(self) {
        let before = self.settle(Fate::GivenBack);
        assert_eq!(before, Fate::Out, "given back before: {self:?}");
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        // A token that was given back comes by here too. One that was not is lost: real ones would
        // be undone now, but by whom, and under which locks, nobody has decided.
        let before = self.settle(Fate::Lost);
        if before == Fate::GivenBack {
            self.settle(Fate::GivenBack);
        } else if !thread::panicking() {
            panic!("lost: {self:?}");
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {}", self.number)
    }
}

/// Stands for pinned pages.
#[derive(Debug)]
pub(crate) struct Pin(Token);

impl Pin {
    /// Unpins, or lets go of what the driver unpins.
    pub(crate) fn give_back(self) {
        self.0.give_back();
    }
}

/// Stands for bus addresses.
#[derive(Debug)]
pub(crate) struct Mapping(Token);

impl Mapping {
    /// Undoes the mapping.
    pub(crate) fn give_back(self) {
        self.0.give_back();
    }
}

/// Gives back what is left: first the mapping, then the pin.
pub(crate) fn give_back(rest: Rest<Pin, Mapping>) {
    rest.mapping.into_iter().for_each(Mapping::give_back);
    rest.pin.into_iter().for_each(Pin::give_back);
}

#[test]
fn the_book_balances() {
    let book = Book::default();
    book.assert_balanced();
    let (pin, mapping) = (book.pin(), book.mapping());
    assert_eq!((book.pins_out(), book.mappings_out()), (1, 1));
    give_back(Rest {
        mapping: Some(mapping),
        pin: Some(pin),
    });
    assert_eq!((book.pins_out(), book.mappings_out()), (0, 0));
    book.assert_balanced();
}

#[test]
#[should_panic(expected = "lost: token 0")]
fn a_lost_token_is_noticed() {
    drop(Book::default().pin());
}

#[test]
#[should_panic(expected = "given back before")]
fn a_token_cannot_be_given_back_twice() {
    let token = Book::default().enter(Kind::Pin);
    let twin = Token {
        number: token.number,
        book: token.book.clone(),
    };
    token.give_back();
    twin.give_back();
}
