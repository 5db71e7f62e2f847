// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests the conversion of the numbers that C functions return.

use crate::errno::{from_result, to_result};

/// Checks that a user gets 0 or an error number that user space knows, for any number from C.
pub(crate) fn check(ret: i32) {
    let answer = to_result(ret);
    let expected = match ret {
        -511..=0 => ret,
        // Users get EOPNOTSUPP for ENOTSUPP.
        -524 => -95,
        // Every other number becomes EIO.
        _ => -5,
    };
    assert_eq!(from_result(answer), expected, "check({ret})");
    assert_eq!(to_result(from_result(answer)), answer, "check({ret}) again");
}

#[test]
fn all_numbers_of_the_kernel_and_many_more() {
    (-70_000..=70_000).for_each(check);
    (i32::MIN..i32::MIN + 70_000).for_each(check);
    (i32::MAX - 70_000..=i32::MAX).for_each(check);
}
