// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Walks through every sequence of steps that a world allows.

use std::{fmt, thread};

/// Something that moves in steps. What it is after given steps is always the same, so that it can
/// be made again where a copy is not to be had.
pub(crate) trait World {
    /// One step.
    type Step: Copy + fmt::Debug;

    /// The steps that are possible now. None of them: the sequence is complete.
    fn steps(&self) -> Vec<Self::Step>;

    /// Takes a step, and checks what comes of it.
    fn take(&mut self, step: Self::Step);

    /// The sequence is complete: the last checks.
    fn finish(self);
}

/// Takes every sequence of steps in worlds that `start` makes, to its end, and returns how many
/// there are. A failed check prints the steps that led to it.
pub(crate) fn every_sequence<W: World>(start: impl Fn() -> W) -> u64 {
    // At each fork: which way is taken, of how many.
    let mut choices: Vec<(usize, usize)> = Vec::new();
    let mut sequences = 0;
    loop {
        // In each round the choices that stand are taken again, then the first at each new fork.
        let mut world = start();
        let mut trail = Trail::default();
        for depth in 0.. {
            let steps = world.steps();
            if steps.is_empty() {
                break;
            }
            if depth == choices.len() {
                choices.push((0, steps.len()));
            }
            let (choice, of) = choices[depth];
            assert_eq!(of, steps.len(), "the world is not the same again");
            trail.add(steps[choice]);
            world.take(steps[choice]);
        }
        world.finish();
        sequences += 1;
        // On to the next choice at the last fork that has one.
        loop {
            let Some((choice, of)) = choices.pop() else {
                return sequences;
            };
            if choice + 1 < of {
                choices.push((choice + 1, of));
                break;
            }
        }
    }
}

/// The steps to where a test is; printed if it fails there.
pub(crate) struct Trail<S: fmt::Debug>(Vec<S>);

impl<S: fmt::Debug> Trail<S> {
    pub(crate) fn add(&mut self, step: S) {
        self.0.push(step);
    }
}

impl<S: fmt::Debug> Default for Trail<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S: fmt::Debug> Drop for Trail<S> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the steps that led here: {:?}", self.0);
        }
    }
}

/// Three bits, one after the other, but no two ones in a row.
struct Bits(Vec<u8>);

impl World for Bits {
    type Step = u8;

    fn steps(&self) -> Vec<u8> {
        match self.0[..] {
            [_, _, _] => vec![],
            [.., 1] => vec![0],
            _ => vec![0, 1],
        }
    }

    fn take(&mut self, step: u8) {
        self.0.push(step);
    }

    fn finish(self) {
        assert_eq!(self.0.len(), 3);
    }
}

#[test]
fn a_walk_takes_each_sequence_once() {
    assert_eq!(every_sequence(|| Bits(Vec::new())), 5);
}
