// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What becomes of the numbers that C functions return.

use std::io;

use proptest::prelude::any;

use crate::{
    errno::{to_c, Errno},
    random,
};

/// Whatever comes in, what goes out to a user is 0 or an error number that user space knows.
fn check(ret: i32) {
    let answer = Errno::check(ret);
    let expected = match i64::from(ret) {
        0 => 0,
        number @ -511..=-1 => number,
        // ENOTSUPP is EOPNOTSUPP for users.
        -524 => -95,
        // All else is EIO.
        _ => -5,
    };
    assert_eq!(i64::from(to_c(answer)), expected, "check({ret})");
    if let Err(errno) = answer {
        assert!((1..=511).contains(&errno.number()), "check({ret})");
        assert_eq!(errno.to_c(), -errno.number(), "check({ret})");
        assert_eq!(Errno::check(errno.to_c()), answer, "check({ret}) again");
    }
}

#[test]
fn edges() {
    for ret in [i32::MIN, i32::MIN + 1, -1, 0, 1, i32::MAX - 1, i32::MAX] {
        check(ret);
    }
    assert_eq!(Errno::check(i32::MIN), Err(Errno::IO));
    assert_eq!(Errno::check(i32::MAX), Err(Errno::IO));
    assert_eq!(Errno::check(1), Err(Errno::IO));
    assert_eq!(Errno::check(511), Err(Errno::IO));
    assert_eq!(Errno::check(-512), Err(Errno::IO));
    assert_eq!(Errno::check(-523), Err(Errno::IO));
    assert_eq!(Errno::check(-524), Err(Errno::OPNOTSUPP));
    assert_eq!(Errno::check(-525), Err(Errno::IO));
    assert_eq!(Errno::check(-511).map_err(Errno::number), Err(511));
}

#[test]
fn all_numbers_of_the_kernel_and_many_more() {
    (-70_000..=70_000).for_each(check);
}

#[test]
fn any_number() {
    random::check(20_000, any::<i32>(), check);
}

/// The names stand for the numbers that this system gives them.
#[test]
fn names() {
    for (errno, text) in [
        (Errno::IO, "Input/output error"),
        (Errno::NOMEM, "Cannot allocate memory"),
        (Errno::FAULT, "Bad address"),
        (Errno::INVAL, "Invalid argument"),
        (Errno::OPNOTSUPP, "Operation not supported"),
    ] {
        let system = io::Error::from_raw_os_error(errno.number()).to_string();
        assert!(system.starts_with(text), "{errno:?} is {system}");
        assert_eq!(Errno::check(errno.to_c()), Err(errno));
    }
}
