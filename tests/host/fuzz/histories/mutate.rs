// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Makes a new history from one or two histories. It adds, removes and changes acts, and changes
//! the points at which acts stop.

use super::act::{ACT, WORLD};

/// Random numbers from a seed (xorshift).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u32) -> Self {
        let mut this = Self(u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        this.next();
        this
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `end`.
    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }
}

/// Returns a random act. Most of these acts do not stop, and are acts of the first process.
fn act(random: &mut Random) -> [u8; ACT] {
    let mut act: [u8; ACT] = std::array::from_fn(|_| random.byte());
    if random.below(2) > 0 {
        act[3] = 0;
    }
    // Half of the acts choose among few places and registrations, so that several acts often choose
    // the same place or registration.
    if random.below(2) > 0 {
        act[1] &= 0x3d;
    }
    match random.below(4) {
        0 => stop(&mut act, random),
        _ => act[4] = 0,
    }
    act
}

/// Changes the point at which an act stops.
fn stop(act: &mut [u8], random: &mut Random) {
    let most = if random.below(2) > 0 { 24 } else { 90 };
    act[4] = 1 + random.below(most) as u8;
    act[5] = random.below(8) as u8;
    if random.below(4) == 0 {
        act[5] |= (random.below(32) << 3) as u8;
    }
}

/// Makes one change.
fn change(acts: &mut Vec<[u8; ACT]>, random: &mut Random) {
    let (at, other) = (random.below(acts.len()), random.below(acts.len()));
    match random.below(if acts.is_empty() { 1 } else { 9 }) {
        0 | 1 => acts.insert(random.below(acts.len() + 1), act(random)),
        2 => drop(acts.remove(at)),
        3 => acts.insert(random.below(acts.len() + 1), acts[at]),
        4 => acts.swap(at, other),
        5 | 6 => stop(&mut acts[at], random),
        7 => acts[at][4] = 0,
        _ => acts[at][random.below(4)] = random.byte(),
    }
}

/// Changes the history of `len` bytes in `room`. Returns its new length.
pub(super) fn mutate(room: &mut [u8], len: usize, random: &mut Random) -> usize {
    let mut world = [0; WORLD];
    let (mut acts, begin) = split(&room[..len]);
    world[..begin.len()].copy_from_slice(begin);
    if random.below(12) == 0 {
        world[random.below(WORLD)] = random.byte();
    }
    for _ in 0..1 + random.below(4) {
        change(&mut acts, random);
    }
    put(room, world, &acts)
}

/// Joins the beginning of one history and the end of another one into a new history. Returns the
/// length of the new history.
pub(super) fn cross(one: &[u8], other: &[u8], room: &mut [u8], random: &mut Random) -> usize {
    let (mut acts, begin) = split(one);
    let mut world = [0; WORLD];
    world[..begin.len()].copy_from_slice(begin);
    acts.truncate(random.below(acts.len() + 1));
    let (others, _) = split(other);
    acts.extend(&others[random.below(others.len() + 1)..]);
    put(room, world, &acts)
}

/// Returns the acts of a history, and the bytes of the history's world.
fn split(history: &[u8]) -> (Vec<[u8; ACT]>, &[u8]) {
    let (world, acts) = history.split_at(history.len().min(WORLD));
    let acts = acts.chunks_exact(ACT);
    (
        acts.map(|act| act.try_into().expect("chunks have the length of an act"))
            .collect(),
        world,
    )
}

/// Writes a history into `room`. Acts that do not fit are left out. Returns the number of bytes.
fn put(room: &mut [u8], world: [u8; WORLD], acts: &[[u8; ACT]]) -> usize {
    let bytes = world.iter().chain(acts.iter().flatten());
    let len = (WORLD + acts.len() * ACT).min(room.len());
    room.iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = *from);
    len
}
