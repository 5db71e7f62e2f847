// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Memory of the host that a device may write to.
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// The size of a page on most machines. Larger pages are registered as well.
const PAGE: usize = 4096;

/// Whole pages, so that a registration contains nothing else. While a device may write to the memory, there is no
/// reference to its bytes; they are copied.
pub struct HostMemory {
    start: NonNull<u8>,
    layout: Layout,
}

impl HostMemory {
    /// Returns memory of SIZE bytes, which are zero. Returns None if there is not enough, or SIZE is 0.
    pub fn new(size: usize) -> Option<Self> {
        let layout = Layout::from_size_align(size, PAGE).ok().filter(|layout| layout.size() > 0)?;
        // SAFETY: The layout does not have the size 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { start, layout })
    }

    pub fn size(&self) -> usize {
        self.layout.size()
    }

    pub(crate) fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Copies DATA to the start of the memory.
    pub fn put(&self, data: &[u8]) {
        let length = data.len().min(self.size());
        // SAFETY: Both places have LENGTH bytes, bytes have no alignment, and DATA is not in this memory, because
        // nothing returns a reference to it. The type is not Sync, so no other thread copies.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), self.start.as_ptr(), length) };
    }

    /// Returns a copy of all bytes.
    pub fn get(&self) -> Vec<u8> {
        let mut data = vec![0; self.size()];
        // SAFETY: Both places have as many bytes as the layout, bytes have no alignment, and the vector is new. The
        // bytes are initialized, because the memory was zero at first. A device that still writes only changes
        // their values.
        unsafe { std::ptr::copy_nonoverlapping(self.start.as_ptr(), data.as_mut_ptr(), data.len()) };
        data
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // SAFETY: The memory was allocated with this layout, and only here it is freed. A registration borrows the
        // memory, so none is left.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_copied() {
        let memory = HostMemory::new(5).unwrap();
        assert_eq!(memory.get(), [0; 5]);
        memory.put(b"more than fits");
        assert_eq!(memory.get(), b"more ");
        assert_eq!(memory.address().addr() % PAGE, 0);
        assert!(HostMemory::new(0).is_none() && HostMemory::new(usize::MAX).is_none());
    }
}
