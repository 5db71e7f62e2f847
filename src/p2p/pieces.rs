// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Where pinned memory is.

use crate::{
    errno::Errno,
    extents::Extent,
    rt::{
        KVVec,
        GFP_KERNEL, //
    }, //
};

/// The extents of a range, in its order, neighbours merged. Mostly there is one, which needs no
/// memory of its own; that is known only when all pages have been looked at.
pub(crate) enum Pieces {
    /// None yet, if it is empty.
    One(Extent),
    /// Two at least.
    Many(KVVec<Extent>),
}

impl Pieces {
    /// None yet.
    pub(super) fn new() -> Self {
        Self::One(Extent { start: 0, len: 0 })
    }

    /// Adds the next one, of a range of `bytes`.
    pub(super) fn push(&mut self, extent: Extent, bytes: u64) -> Result<(), Errno> {
        match self {
            Self::One(only) if only.len == 0 => *only = extent,
            Self::One(first) => {
                // Mostly all are as long as the first.
                let expected = bytes.div_ceil(first.len.max(1)).max(2);
                let expected = usize::try_from(expected).map_err(|_| Errno::NOMEM)?;
                let mut many =
                    KVVec::with_capacity(expected, GFP_KERNEL).map_err(|_| Errno::NOMEM)?;
                many.extend_from_slice(&[*first, extent], GFP_KERNEL)
                    .map_err(|_| Errno::NOMEM)?;
                *self = Self::Many(many);
            }
            Self::Many(many) => many.push(extent, GFP_KERNEL).map_err(|_| Errno::NOMEM)?,
        }
        Ok(())
    }

    /// All of them.
    pub(super) fn all(&self) -> &[Extent] {
        match self {
            Self::One(only) => core::slice::from_ref(only),
            Self::Many(many) => many,
        }
    }
}
