// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A run of bytes in GPU memory, with room around it: what a transfer reads
//! from or writes to, and what shows that it touched nothing else.

use std::fmt;
use std::sync::Arc;

use crate::args::{usage, Args, Opt};
use crate::errno;
use crate::failure::Failure;
use crate::gpu::{FreeBy, Gpu, GpuMemory, GPU_PAGE};
use crate::pattern::{difference, Difference, POISON};
use crate::verbs::{Access, Mr, Pd};

/// Where a buffer is to be.
#[derive(Clone, Copy)]
pub struct Place {
    /// Of the allocation, in the BAR.
    pub offset: u64,
    /// Of the buffer, in the allocation.
    pub shift: u64,
    pub length: u64,
}

impl Place {
    /// For commands whose offsets the host looks at.
    pub fn aligned(offset: u64, shift: u64, length: u64) -> Result<Self, Failure> {
        if offset % GPU_PAGE != 0 {
            return Err(usage(format!(
                "{offset} is not the offset of a GPU page: these are multiples of 64K"
            )));
        }
        if length == 0 {
            return Err(usage("--length must not be 0"));
        }
        Ok(Self {
            offset,
            shift,
            length,
        })
    }

    /// How much memory it takes.
    pub fn size(&self) -> Result<u64, Failure> {
        self.shift
            .checked_add(self.length)
            .filter(|end| self.offset.checked_add(*end).is_some())
            .ok_or_else(|| usage("offset, shift and length are too large together"))
    }

    /// Offset in the BAR of the buffer's first byte.
    pub fn start(&self) -> u64 {
        self.offset + self.shift
    }
}

/// Options of commands that move bytes between two buffers.
pub const ENDS_OPTIONS: &[Opt] = &[
    Opt::required("from", "OFFSET", "where in the BAR the source is"),
    Opt::required("to", "OFFSET", "where in the BAR the target is"),
    Opt::required("length", "SIZE", "how much to move"),
    Opt::optional(
        "shift",
        "N",
        "bytes between an offset and its buffer's start",
    ),
    Opt::optional("seed", "N", "which pattern (default: 1)"),
];

/// Where bytes are to be moved from and to, and which.
pub struct Ends {
    pub from: Place,
    pub to: Place,
    pub seed: u64,
}

impl Ends {
    pub fn parse(args: &Args) -> Result<Self, Failure> {
        let length = args.required("length")?;
        let shift = args.number("shift")?.unwrap_or(0);
        Ok(Self {
            from: Place::aligned(args.required("from")?, shift, length)?,
            to: Place::aligned(args.required("to")?, shift, length)?,
            seed: args.number("seed")?.unwrap_or(1),
        })
    }
}

pub struct Buffer {
    memory: GpuMemory,
    place: Place,
    start: usize,
    length: usize,
}

impl Buffer {
    pub fn allocate(gpu: &Gpu, place: Place) -> Result<Self, Failure> {
        let size = place.size()?;
        let memory = gpu
            .allocate(place.offset, size)
            .map_err(Failure::unmet(format_args!(
                "allocating {size} bytes of GPU memory at offset {}",
                place.offset
            )))?;
        let fits =
            |number| usize::try_from(number).map_err(|_| usage(format!("{number} is too large")));
        Ok(Self {
            memory,
            place,
            start: fits(place.shift)?,
            length: fits(place.length)?,
        })
    }

    pub fn place(&self) -> Place {
        self.place
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// Poison in the buffer and all around it.
    pub fn poison(&mut self) {
        self.memory.fill(POISON);
    }

    /// `bytes` in the buffer, poison all around it.
    pub fn put(&mut self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.length);
        self.memory.fill(POISON);
        self.memory.write(self.start, bytes);
    }

    /// Whether `bytes` are in the buffer, and poison is all around it.
    pub fn check(&self, bytes: &[u8]) -> Result<(), Mismatch> {
        assert_eq!(bytes.len(), self.length);
        let mut expected = vec![POISON; self.memory.size()];
        expected[self.start..self.start + self.length].copy_from_slice(bytes);
        let found = self.memory.read(0, self.memory.size());
        match difference(&expected, &found) {
            None => Ok(()),
            Some(difference) => Err(Mismatch {
                outside: difference.at < self.start || difference.at >= self.start + self.length,
                bar_offset: self.place.offset + difference.at as u64,
                difference,
            }),
        }
    }

    pub fn register(&self, pd: &Arc<Pd>) -> Result<Mr, Failure> {
        let range = self.memory.range(self.start, self.length);
        pd.register(range, Access::ALL).map_err(|error| {
            Failure::Unmet(format!(
                "ibv_reg_mr() of {} bytes of GPU memory at offset {}: {}",
                self.length,
                self.place.start(),
                errno::describe(&error)
            ))
        })
    }

    pub fn free(&mut self, by: FreeBy) -> Result<(), Failure> {
        let how = match by {
            FreeBy::Ioctl => "the driver's ioctl",
            FreeBy::Munmap => "munmap()",
        };
        self.memory.free(by).map_err(Failure::unmet(format_args!(
            "freeing GPU memory at offset {} with {how}",
            self.place.offset
        )))
    }
}

/// What a buffer should not hold.
pub struct Mismatch {
    difference: Difference,
    outside: bool,
    bar_offset: u64,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference {
            expected,
            found,
            count,
            ..
        } = self.difference;
        write!(
            f,
            "the byte at offset {} in the BAR{} is {found:#04x} instead of {expected:#04x}, {count} in all are wrong",
            self.bar_offset,
            if self.outside { ", outside of the buffer," } else { "" },
        )
    }
}
