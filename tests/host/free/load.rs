// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The module's beginning and its end, and its lines in the log.

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use crate::{
    errno::Errno,
    kernel::{exit, init, said, Counted},
    rt,
};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static WILLING: AtomicBool = AtomicBool::new(false);

struct Loaded {
    _counted: Counted<'static>,
}

impl rt::Module for Loaded {
    fn load() -> Result<Self, Errno> {
        let _counted = Counted::new(&LIVE);
        if WILLING.load(Ordering::Relaxed) {
            Ok(Self { _counted })
        } else {
            Err(Errno::BUSY)
        }
    }
}

rt::module!(Loaded);

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
    // Unknown to the compiler, which would make one piece of them.
    let (number, what) = black_box((3, "GPU"));
    rt::pr_err!("{number} of {what}\n");
    assert_eq!(said(), "<3>nv_peer_mem: 3 of GPU\n");
    rt::pr_warn!("memory\n");
    assert_eq!(said(), "<4>nv_peer_mem: memory\n");
    rt::pr_info!("memory\n");
    assert_eq!(said(), "<6>nv_peer_mem: memory\n");
}

#[test]
fn leaves_out_what_is_too_long() {
    let long = "x".repeat(1000);
    rt::print(6, format_args!("{long}"));
    assert_eq!(said(), format!("<6>nv_peer_mem: {}", &long[..448]));
    for len in [447, 448, 449] {
        rt::print(0, format_args!("{}{}", &long[..len - 10], &long[..10]));
        assert_eq!(said().len(), "<0>nv_peer_mem: ".len() + len.min(448));
    }
}
