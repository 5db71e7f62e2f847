// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests which types threads may move to other threads (`Send`) or share (`Sync`).

use std::{cell::Cell, marker::PhantomData, sync::MutexGuard};

use kernel::{prelude::*, rbtree::RBTree};

/// Tells whether `T` is `Send` and whether it is `Sync`. If `T` has the property, the compiler uses
/// the constant of `Probe` itself. Otherwise the compiler uses the constant of the trait
/// [`Neither`].
struct Probe<T>(PhantomData<T>);

trait Neither {
    const SEND: bool = false;
    const SYNC: bool = false;
}

impl<T> Neither for Probe<T> {}

impl<T: Send> Probe<T> {
    const SEND: bool = true;
}

impl<T: Sync> Probe<T> {
    const SYNC: bool = true;
}

#[test]
fn only_what_may_goes_to_other_threads() {
    type OfOne = *mut u8;
    type NotAtOnce = Cell<u8>;
    type Mutexed = MutexGuard<'static, u8>;
    fn both<const SEND: bool, const SYNC: bool>() -> (bool, bool) {
        (SEND, SYNC)
    }
    macro_rules! probe {
        ($type:ty) => {
            both::<{ Probe::<$type>::SEND }, { Probe::<$type>::SYNC }>()
        };
    }
    assert_eq!(probe!(KBox<u8>), (true, true));
    assert_eq!(probe!(KBox<OfOne>), (false, false));
    assert_eq!(probe!(KBox<NotAtOnce>), (true, false));
    assert_eq!(probe!(KVVec<u8>), (true, true));
    assert_eq!(probe!(KVVec<OfOne>), (false, false));
    assert_eq!(probe!(RBTree<u8, NotAtOnce>), (true, false));
    assert_eq!(probe!(RBTree<NotAtOnce, u8>), (true, false));
    assert_eq!(probe!(RBTree<u8, Mutexed>), (false, true));
    assert_eq!(probe!(RBTree<OfOne, u8>), (false, false));
}
