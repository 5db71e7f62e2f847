// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Random tests that can be repeated.

use std::{
    env,
    fmt::Debug,
    hash::{BuildHasher, Hasher, RandomState},
};

use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

/// The environment variable that contains the seed of the run to repeat.
const VARIABLE: &str = "HOST_SEED";

/// Calls `test` with `cases` values of `strategy`. `test` panics if it fails. In that case, shows
/// the simplest value with which it fails.
pub(crate) fn check<T: Debug>(cases: u32, strategy: impl Strategy<Value = T>, test: impl Fn(T)) {
    let seed = chosen_seed();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let outcome = TestRunner::new_with_rng(config, random).run(&strategy, |value| {
        test(value);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}\nto repeat this: {VARIABLE}={seed:#x} tests/run host");
    }
}

/// Returns the seed from the environment variable, which has the seed in hexadecimal. If the
/// variable is not set, returns a new seed.
fn chosen_seed() -> u64 {
    let Ok(text) = env::var(VARIABLE) else {
        return RandomState::new().build_hasher().finish();
    };
    let seed = u64::from_str_radix(text.trim_start_matches("0x"), 16);
    seed.unwrap_or_else(|error| panic!("{VARIABLE}={text}: {error}"))
}
