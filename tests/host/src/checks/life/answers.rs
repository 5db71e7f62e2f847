// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What each event answers in each phase, as one table.

use super::tokens::{give_back, Book, TestLife};
use crate::{
    errno::Errno,
    region::{Rest, Revocation, Thread},
};

const USER: Thread = 1;
const DRIVER: Thread = 2;

/// The shortest way into each phase.
fn live(phase: &str, book: &Book) -> TestLife {
    let mut life = TestLife::new();
    let stages = [
        ("pinned", 1),
        ("bound", 2),
        ("mapped", 3),
        ("revoking", 3),
        ("told", 3),
        ("revoked", 3),
        ("unmapped", 3),
        ("put", 3),
        ("forgotten", 1),
    ];
    let stage = stages.iter().find(|stage| stage.0 == phase);
    let stage = stage.map_or(0, |stage| stage.1);
    if stage >= 1 {
        life.pinned(book.pin()).unwrap();
    }
    if stage >= 2 {
        life.bind(7).unwrap();
    }
    if stage >= 3 {
        life.mapped(book.mapping()).unwrap();
    }
    match phase {
        "refused" => life.refused(Errno::NOMEM),
        "released" => assert!(life.release(USER).is_some()),
        "forgotten" => match life.revoke(DRIVER) {
            Revocation::Forget(pin) => pin.give_back(),
            other => panic!("{other:?}"),
        },
        "revoking" | "told" | "revoked" => {
            assert!(matches!(life.revoke(DRIVER), Revocation::Tell(7)));
            if phase != "revoking" {
                give_back(life.told());
            }
            if phase == "revoked" {
                life.revoked();
            }
        }
        "unmapped" | "put" => {
            life.unmap().unwrap().give_back();
            if phase == "put" {
                life.put().unwrap().give_back();
            }
        }
        "pinning" | "pinned" | "bound" | "mapped" => {}
        other => panic!("{other}"),
    }
    life
}

fn name(errno: Errno) -> &'static str {
    match errno {
        Errno::FAULT => "FAULT",
        Errno::INVAL => "INVAL",
        Errno::NOMEM => "NOMEM",
        other => panic!("{other:?}"),
    }
}

fn rest(rest: Option<Rest<super::tokens::Pin, super::tokens::Mapping>>) -> &'static str {
    let Some(rest) = rest else { return "wait" };
    let answer = match (&rest.mapping, &rest.pin) {
        (None, None) => "-",
        (None, Some(_)) => "pin",
        (Some(_), None) => "mapping",
        (Some(_), Some(_)) => "both",
    };
    give_back(rest);
    answer
}

/// Lets one event happen in one phase.
fn answer(phase: &str, event: &str) -> &'static str {
    let book = Book::default();
    let mut life = live(phase, &book);
    let answer = match event {
        "pin" => match life.pinned(book.pin()) {
            Ok(()) => "ok",
            Err(pin) => {
                pin.give_back();
                "back"
            }
        },
        "bind" => life.bind(9).map_or_else(name, |()| "ok"),
        "mappable" => life.mappable().map_or_else(name, |_pin| "ok"),
        "mapped" => match life.mapped(book.mapping()) {
            Ok(()) => "ok",
            Err((errno, mapping)) => {
                mapping.give_back();
                name(errno)
            }
        },
        "unmap" => life.unmap().map_or("-", |mapping| {
            mapping.give_back();
            "mapping"
        }),
        "put" => life.put().map_or("-", |pin| {
            pin.give_back();
            "pin"
        }),
        "revoke" => match life.revoke(DRIVER) {
            Revocation::Wait => "wait",
            Revocation::Tell(ticket) => {
                assert_eq!(ticket, 7);
                "tell"
            }
            Revocation::Forget(pin) => {
                pin.give_back();
                "forget"
            }
            Revocation::Nothing => "-",
        },
        "other" => rest(life.release(USER)),
        "same" => rest(life.release(DRIVER)),
        other => panic!("{other}"),
    };
    // What is left now must come out too.
    give_back(life.told());
    give_back(life.release(DRIVER).expect("waits for itself"));
    book.assert_balanced();
    answer
}

/// `other` and `same`: release by another thread than the callback's, and by the same.
const TABLE: &str = "
    phase      pin  bind   mappable mapped unmap   put  revoke  other  same
    pinning    ok   INVAL  INVAL    INVAL  -       -    wait    -      -
    refused    back NOMEM  INVAL    INVAL  -       -    -       -      -
    pinned     back ok     INVAL    INVAL  -       pin  forget  pin    pin
    bound      back INVAL  ok       ok     -       pin  forget  pin    pin
    mapped     back INVAL  INVAL    INVAL  mapping -    tell    both   both
    revoking   back INVAL  INVAL    INVAL  -       -    -       wait   -
    told       back INVAL  INVAL    INVAL  -       -    -       wait   -
    revoked    back FAULT  FAULT    FAULT  -       -    -       -      -
    forgotten  back FAULT  FAULT    FAULT  -       -    -       -      -
    unmapped   back INVAL  INVAL    INVAL  -       pin  forget  pin    pin
    put        back INVAL  INVAL    INVAL  -       -    -       -      -
    released   back INVAL  INVAL    INVAL  -       -    -       -      -
";

#[test]
fn each_event_in_each_phase() {
    let mut rows = TABLE
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|row| !row.is_empty());
    let events = rows.next().unwrap();
    let mut checked = 0;
    for row in rows {
        assert_eq!(row.len(), events.len());
        for (event, expected) in events.iter().zip(&row).skip(1) {
            assert_eq!(answer(row[0], event), *expected, "{event} when {}", row[0]);
            checked += 1;
        }
    }
    assert_eq!(checked, 12 * 9);
}
