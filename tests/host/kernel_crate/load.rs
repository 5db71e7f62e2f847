// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests loading and unloading a module, its lines in the log, and error numbers.

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use crate::host::{exit, init, said, Counted};
use kernel::{alloc::AllocError, prelude::*, print::print};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static WILLING: AtomicBool = AtomicBool::new(false);

struct Loaded {
    _counted: Counted<'static>,
}

impl kernel::Module for Loaded {
    fn init(_: &'static ThisModule) -> Result<Self> {
        let _counted = Counted::new(&LIVE);
        if WILLING.load(Ordering::Relaxed) {
            Ok(Self { _counted })
        } else {
            Err(EBUSY)
        }
    }
}

module! {
    type: Loaded,
    name: "nv_peer_mem",
    license: "Dual BSD/GPL",
}

#[test]
fn is_there_from_loading_to_unloading() {
    assert_eq!(init(), -16, "an error ends the loading");
    assert_eq!(LIVE.load(Ordering::Relaxed), 0);
    WILLING.store(true, Ordering::Relaxed);
    assert_eq!(init(), 0);
    assert_eq!(LIVE.load(Ordering::Relaxed), 1);
    exit();
    assert_eq!(LIVE.load(Ordering::Relaxed), 0);
}

#[test]
fn says_with_the_level_whose_line_it_is() {
    // `black_box` hides these values from the compiler. If the compiler knew them, it would merge
    // the pieces of the format into one, and the test would print only one piece.
    let (number, what) = black_box((3, "GPU"));
    pr_err!("{number} of {what}\n");
    assert_eq!(said(), "<3>nv_peer_mem: 3 of GPU\n");
    pr_warn!("memory\n");
    assert_eq!(said(), "<4>nv_peer_mem: memory\n");
    pr_info!("memory\n");
    assert_eq!(said(), "<6>nv_peer_mem: memory\n");
}

#[test]
fn leaves_out_what_is_too_long() {
    let long = "x".repeat(1000);
    print(6, format_args!("{long}"));
    assert_eq!(said(), format!("<6>nv_peer_mem: {}", &long[..448]));
    for len in [447, 448, 449] {
        print(0, format_args!("{}{}", &long[..len - 10], &long[..10]));
        assert_eq!(said().len(), "<0>nv_peer_mem: ".len() + len.min(448));
    }
}

#[test]
fn an_error_is_a_number_that_there_is() {
    for number in [-1, -12, -524, -4095] {
        assert_eq!(Error::from_errno(number).to_errno(), number);
    }
    for number in [0, 1, 12, i32::MAX, -4096, i32::MIN] {
        assert_eq!(Error::from_errno(number), EINVAL);
    }
    assert_eq!(Error::from(AllocError).to_errno(), -12);
}
