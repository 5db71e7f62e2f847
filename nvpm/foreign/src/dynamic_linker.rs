// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Asks the dynamic linker and the C library of this process.
use std::ffi::CStr;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// From this version on, glibc shows all symbols to an auditor, and calls are not slower.
const AUDITS: (u32, u32) = (2, 35);

/// Returns whether the dynamic linker finds a library. A library that is found stays loaded.
pub fn finds(name: &str) -> bool {
    // SAFETY: The initializers of the library must be sound. The library is installed on this system, and the program
    // that nvpm is about to become would load it as well.
    let found = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) };
    found.map(std::mem::forget).is_ok()
}

/// Returns whether the C library of this process takes an auditor.
pub fn takes_auditors() -> bool {
    // SAFETY: The function needs nothing.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: glibc returns a text that ends with a zero, and exists as long as the process.
    let version = unsafe { CStr::from_ptr(version) };
    audits(&version.to_string_lossy())
}

/// Returns whether a version of glibc, such as 2.36, takes an auditor.
fn audits(version: &str) -> bool {
    let mut numbers = version.split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= AUDITS,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        for (version, expected) in
            [("2.36", true), ("2.35", true), ("2.34", false), ("2.4", false), ("3.0", true), ("", false), ("2", false)]
        {
            assert_eq!(audits(version), expected, "{version}");
        }
        // Debian 13, on which the tests run, has glibc 2.41.
        assert!(takes_auditors());
    }

    #[test]
    fn libraries_are_found_by_their_names() {
        assert!(finds("libc.so.6"));
        // Programs open the library under this name, so nvpm looks for the same name. libibverbs1 has it.
        assert_eq!(crate::verbs::LIBRARY, "libibverbs.so.1");
        assert!(finds(crate::verbs::LIBRARY));
        assert!(!finds("libno-such-library.so.1"));
    }
}
