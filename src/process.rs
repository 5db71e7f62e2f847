// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The process of a registration.

use crate::abi;

/// A process and its user. The number together with the start time identifies the process, because
/// the kernel gives the numbers of ended processes to new processes.
#[derive(Clone, Copy)]
pub(crate) struct Process(abi::nvpm_process);

impl Process {
    /// Returns the calling process.
    pub(crate) fn current() -> Self {
        let mut process = abi::nvpm_process::default();
        // SAFETY: `process` is valid for writing.
        unsafe { abi::nvpm_current_process(&mut process) };
        Self(process)
    }

    /// Tells whether this is the calling process.
    pub(crate) fn is_current(&self) -> bool {
        // SAFETY: The pointer is to a process that C has filled in, and is valid for reading.
        unsafe { abi::nvpm_is_current(&self.0) }
    }

    /// Returns the number of the user who is responsible for the process, in the initial user
    /// namespace.
    pub(crate) fn uid(&self) -> u32 {
        self.0.uid
    }

    /// Returns the process as the structure of C that the list of registrations contains.
    pub(crate) fn to_c(self) -> abi::nvpm_process {
        self.0
    }
}

/// Returns the name of the calling process, padded with zeros.
pub(crate) fn current_comm() -> [u8; 16] {
    let mut comm = [0; 16];
    // SAFETY: `comm` has room for 15 bytes.
    unsafe { abi::nvpm_current_comm(comm.as_mut_ptr()) };
    comm
}
