// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Describes a history, in bytes and in words.
//!
//! A history is a list of acts in a world. The first two bytes describe the world. Each act has six
//! bytes. One byte is its kind, and three bytes are its details. The other two bytes say at which
//! points the act stops so that other acts run. All bytes are valid, because each number is taken
//! modulo the number of choices.

use crate::{
    extents::GPU_PAGE,
    rdma::{Kind, KINDS},
};

/// WORLD is the number of bytes that describe the world, and ACT is the number of bytes of each
/// act.
pub(super) const WORLD: usize = 2;
pub(super) const ACT: usize = 6;

/// The settings that stay the same during a history.
#[derive(Clone, Copy, Debug)]
pub(super) struct World {
    pub(super) core: Kind,
    /// The value of `persistent_api_support`, or [`None`] if the module is not loaded at the
    /// beginning.
    pub(super) loaded: Option<bool>,
    /// The driver gives the address of a freed page table to the next page table.
    pub(super) reuses_tables: bool,
    /// The kernel can map all pieces of a registration into one range of DMA addresses.
    pub(super) ranges: bool,
    /// At the beginning the module knows no pair.
    pub(super) unasked: bool,
    /// Devices use physical addresses.
    pub(super) direct: bool,
    /// The driver's addresses are the physical addresses plus this number.
    pub(super) bus_offset: Option<u64>,
    pub(super) coherent: bool,
}

impl World {
    pub(super) fn new(bytes: [u8; WORLD]) -> Self {
        let [first, second] = bytes;
        let bit = |at: u32| (second >> at) & 1 != 0;
        let bus_offset = match (second >> 4) & 7 {
            6 => Some(0),
            7 => Some(1 << 45),
            _ => None,
        };
        let coherent = first & 0x1c == 0x1c;
        Self {
            core: KINDS[usize::from(first) % KINDS.len()],
            loaded: (first < 0xe0).then_some(first & 0x20 != 0),
            reuses_tables: bit(0),
            ranges: bit(1),
            // The module can know pairs at the beginning only if the driver gives the usual answer
            // about them.
            unasked: bit(2) || coherent || bus_offset.is_some(),
            direct: bit(3),
            bus_offset,
            coherent,
        }
    }
}

/// The addresses of memory in a process. Two of the addresses are far from the others.
pub(super) const PLACES: [u64; 4] = [
    0x10_0000,
    0x20_0000,
    (1 << 38) + 0x10_0000,
    (1 << 44) + 0x10_0000,
];

/// The number of devices that several registrations can share.
pub(super) const DEVICES: usize = 2;

/// The kinds of acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Allocate {
        place: usize,
        gpu: u8,
    },
    Free {
        place: usize,
    },
    Register(Wish),
    Deregister {
        which: usize,
    },
    /// The core calls `release` without calling `dma_unmap` before, which real cores never do.
    Abandon {
        which: usize,
    },
    /// An object of the driver owns memory and belongs to another process. The driver removes this
    /// process from the object.
    Delist {
        place: usize,
    },
    RemoveDevice {
        which: usize,
    },
    /// The given number of calls succeed, and the next call fails.
    Fail {
        step: usize,
        successes: u32,
    },
    /// From now on, the driver or the kernel gives this answer.
    Answer {
        setting: usize,
        value: u8,
    },
    /// A program reads the module's files.
    Read,
    Unload,
    Load {
        persistent: bool,
        beside_peermem: bool,
    },
    /// The user gets so many orphans that only two more are allowed.
    Leave {
        pages: bool,
    },
}

/// The number of different kinds of acts.
pub(super) const KINDS_OF_ACTS: usize = 13;

/// A request to register memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) address: u64,
    pub(super) len: u64,
    pub(super) cannot_be_revoked: bool,
    pub(super) device_fails: bool,
    pub(super) device: DeviceWish,
}

/// The device of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeviceWish {
    Shared(usize),
    New,
    NoPci,
    NeverComplete,
}

/// The process that acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) process: i32,
    pub(super) uid: u32,
    /// The time at which the process began. A later process can have the same number, but then has
    /// another time.
    pub(super) born: u64,
    pub(super) exiting: bool,
}

/// The points at which an act stops so that other acts run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pause {
    /// The act stops after it has passed this number of points.
    pub(super) after: Option<u32>,
    /// The act continues when this number of further acts have begun.
    pub(super) acts: u32,
    /// The act stops again after it has passed this number of further points.
    pub(super) again_after: Option<u32>,
}

/// An act of a history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Act {
    pub(super) kind: usize,
    pub(super) what: What,
    pub(super) who: Who,
    pub(super) pause: Pause,
}

/// Returns the name of a kind of act. A task that carries out the act has the same name.
pub(super) fn name(kind: usize) -> &'static str {
    const NAMES: [&str; KINDS_OF_ACTS] = [
        "allocate",
        "free",
        "register",
        "deregister",
        "abandon",
        "delist",
        "remove device",
        "fail",
        "answer",
        "read",
        "unload",
        "load",
        "leave",
    ];
    NAMES.get(kind).copied().unwrap_or("last")
}

/// Returns the kind of act that a byte stands for.
pub(super) fn kind(byte: u8) -> usize {
    // The acts that matter most occur more often.
    const OFTEN: [usize; 32] = [
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3,
        3, 7, 8,
    ];
    OFTEN[usize::from(byte) % OFTEN.len()]
}

impl Act {
    pub(super) fn new(bytes: [u8; ACT]) -> Self {
        let [first, a, b, who, pause, resume] = bytes;
        let kind = kind(first);
        let place = usize::from(a) % PLACES.len();
        let which = usize::from(a);
        let what = match kind {
            0 => What::Allocate {
                place,
                gpu: if b & 3 == 3 { 8 } else { 7 },
            },
            1 => What::Free { place },
            2 => What::Register(Wish::new(a, b)),
            3 => What::Deregister { which },
            4 => What::Abandon { which },
            5 => What::Delist { place },
            6 => What::RemoveDevice { which },
            7 => What::Fail {
                step: usize::from(a),
                successes: u32::from(b % 12),
            },
            8 => What::Answer {
                setting: usize::from(a),
                value: b,
            },
            9 => What::Read,
            10 => What::Unload,
            11 => What::Load {
                persistent: a & 1 != 0,
                beside_peermem: a >> 4 == 15,
            },
            _ => What::Leave { pages: a & 1 != 0 },
        };
        Self {
            kind,
            what,
            who: Who::new(who, &what),
            pause: Pause::new(pause, resume),
        }
    }
}

impl Who {
    fn new(byte: u8, what: &What) -> Self {
        let at_its_end = matches!(what, What::Free { .. } | What::Deregister { .. });
        Self {
            process: if byte & 3 == 3 { 2 } else { 1 },
            uid: match (byte >> 2) & 7 {
                6 => 0,
                7 => 1001,
                _ => 1000,
            },
            born: if byte >> 5 == 7 { 2 } else { 1 },
            exiting: at_its_end && byte >> 5 == 6,
        }
    }
}

impl Pause {
    fn new(after: u8, resume: u8) -> Self {
        let times = |points: u8| (points > 0).then(|| u32::from(points) - 1);
        Self {
            after: times(after),
            acts: u32::from(resume % 8),
            again_after: times(resume >> 3),
        }
    }
}

impl Wish {
    fn new(a: u8, b: u8) -> Self {
        let place = PLACES[usize::from(a) % PLACES.len()];
        let (address, len) = shape(place, (a >> 2) & 15, b);
        Self {
            address,
            len,
            cannot_be_revoked: a >> 6 == 3,
            device_fails: b >> 5 == 7,
            device: match b & 15 {
                14 => DeviceWish::NoPci,
                15 => DeviceWish::NeverComplete,
                0..=5 => DeviceWish::Shared(usize::from(b) % DEVICES),
                _ => DeviceWish::New,
            },
        }
    }
}

/// Returns the address and the length of a range to register. Most ranges are near the two pages at
/// `place`.
fn shape(place: u64, shape: u8, b: u8) -> (u64, u64) {
    let (page, b) = (GPU_PAGE, u64::from(b));
    match shape {
        0..=3 => (place, page),
        4 => (place + page, page),
        5 => (place, 2 * page),
        6 => (place + 5, 2 * page - 10),
        7 => (place + 5, page),
        8 => (place + 8 * b, b + 1),
        // Ranges that are not completely allocated.
        9 => (place + page, page + 1),
        10 => (place - 1, page),
        11 => (place, 0),
        12 => (u64::MAX - b, page),
        13 => (place, u64::MAX >> (b % 64)),
        // Ranges from one place to another.
        14 => (PLACES[0], (1 << 38) + 2 * page),
        _ => (PLACES[0], (1 << 44) + 2 * page),
    }
}

/// Reads the world and the acts from bytes.
pub(super) fn read(bytes: &[u8]) -> Option<(World, Vec<Act>)> {
    let (world, acts) = bytes.split_first_chunk()?;
    let acts = acts.chunks_exact(ACT).map(|act| {
        let act = act.try_into().expect("chunks have the length of an act");
        Act::new(act)
    });
    Some((World::new(*world), acts.collect()))
}
