// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What a history is made of, as bytes and in words.
//!
//! The first two bytes say what the world is like. Then each act has six: what it is, three bytes of what
//! that means, and two for when other acts come in between. Any bytes are a history: numbers are taken
//! modulo what there is.

use crate::{
    extents::GPU_PAGE,
    rdma::{Kind, KINDS},
};

/// Bytes of a world, and of an act.
pub(super) const WORLD: usize = 2;
pub(super) const ACT: usize = 6;

/// What does not change while a history lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct World {
    pub(super) core: Kind,
    /// The module is loaded when the history begins, with this parameter.
    pub(super) loaded: Option<bool>,
    /// The driver uses the address of a freed page table again at once.
    pub(super) reuses_tables: bool,
    /// Pieces share a range of addresses.
    pub(super) ranges: bool,
    /// Nobody knows yet how pairs are mapped.
    pub(super) unasked: bool,
    /// Devices use physical addresses.
    pub(super) direct: bool,
    /// The driver's own addresses are the physical ones with this added.
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
            // What is known from the beginning is what is usual.
            unasked: bit(2) || coherent || bus_offset.is_some(),
            direct: bit(3),
            bus_offset,
            coherent,
        }
    }
}

/// Places for memory in a process, of which two lie far from the others.
pub(super) const PLACES: [u64; 4] = [
    0x10_0000,
    0x20_0000,
    (1 << 38) + 0x10_0000,
    (1 << 44) + 0x10_0000,
];

/// Devices that more than one registration uses.
pub(super) const DEVICES: usize = 2;

/// What somebody does.
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
    /// What no core does: the addresses are not given back before.
    Abandon {
        which: usize,
    },
    /// The object of another process that has the memory lists nobody any more.
    Delist {
        place: usize,
    },
    RemoveDevice {
        which: usize,
    },
    /// As many succeed, then one fails.
    Fail {
        step: usize,
        successes: u32,
    },
    /// The driver, or the kernel, answers something else from now on.
    Answer {
        setting: usize,
        value: u8,
    },
    /// Somebody reads the module's files.
    Read,
    Unload,
    Load {
        persistent: bool,
        beside_peermem: bool,
    },
    /// The user has left so much behind elsewhere that two more are too many.
    Leave {
        pages: bool,
    },
}

/// How many kinds of acts there are.
pub(super) const KINDS_OF_ACTS: usize = 13;

/// What a program wants to register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) address: u64,
    pub(super) len: u64,
    pub(super) cannot_be_revoked: bool,
    pub(super) device_fails: bool,
    pub(super) device: DeviceWish,
}

/// With which device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeviceWish {
    Shared(usize),
    New,
    NoPci,
    NeverComplete,
}

/// Who does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) process: i32,
    pub(super) uid: u32,
    /// When the process began: its number may come again.
    pub(super) born: u64,
    pub(super) exiting: bool,
}

/// When others come in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pause {
    /// It stops when it has passed so many points.
    pub(super) after: Option<u32>,
    /// It goes on when so many acts more have begun.
    pub(super) acts: u32,
    /// Then it stops once more.
    pub(super) again_after: Option<u32>,
}

/// One act of a history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Act {
    pub(super) kind: usize,
    pub(super) what: What,
    pub(super) who: Who,
    pub(super) pause: Pause,
}

/// What a kind of act is called, and the task that does it.
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

/// The number of the kind of act in a byte.
pub(super) fn kind(byte: u8) -> usize {
    // What most histories are about comes more often.
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

/// Address and length of what is registered of the two pages at `place`.
fn shape(place: u64, shape: u8, b: u8) -> (u64, u64) {
    let (page, b) = (GPU_PAGE, u64::from(b));
    match shape {
        0..=3 => (place, page),
        4 => (place + page, page),
        5 => (place, 2 * page),
        6 => (place + 5, 2 * page - 10),
        7 => (place + 5, page),
        8 => (place + 8 * b, b + 1),
        // What is not all there.
        9 => (place + page, page + 1),
        10 => (place - 1, page),
        11 => (place, 0),
        12 => (u64::MAX - b, page),
        13 => (place, u64::MAX >> (b % 64)),
        // From one place to another one.
        14 => (PLACES[0], (1 << 38) + 2 * page),
        _ => (PLACES[0], (1 << 44) + 2 * page),
    }
}

/// The world and the acts in bytes.
pub(super) fn read(bytes: &[u8]) -> Option<(World, Vec<Act>)> {
    let (world, acts) = bytes.split_first_chunk()?;
    let acts = acts.chunks_exact(ACT).map(|act| {
        let act = act.try_into().expect("it is as long");
        Act::new(act)
    });
    Some((World::new(*world), acts.collect()))
}
