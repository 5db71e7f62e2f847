// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Asks NVML how many bytes a GPU has sent and received over its PCI link. Each user may ask, and nothing changes at the
//! GPU.
//!
//! The counters of a GPU have a name as if they were a file, so that the reading process asks for them: a driver that
//! hangs stops only that process. On a machine that is made of files, such a file has what the process would answer.
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::Path;

use nvpm_foreign::nvml::{Gpu, Library, NOT_SUPPORTED};
use rustix::io::Errno;

/// The directory of the names.
pub const PLACE: &str = "/nvml/";
/// NVML's number for a device that it does not find.
const NOT_FOUND: i32 = 6;

/// Returns the name of a GPU's counters.
pub fn name_of(address: &str) -> String {
    format!("{PLACE}{address}")
}

/// Returns the PCI address in a name; None for the name of a file.
pub fn parsed(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(PLACE)
}

/// NVML, and the GPUs that were asked before. Finding a GPU takes longer than reading its counters.
struct Nvml {
    library: Library,
    gpus: HashMap<String, Gpu>,
}

impl Nvml {
    fn new() -> io::Result<Self> {
        let library = Library::open().map_err(|_| Errno::NOENT)?;
        library.init().map_err(error)?;
        Ok(Self { library, gpus: HashMap::new() })
    }

    fn counters(&mut self, address: &str) -> io::Result<[u64; 2]> {
        let gpu = match self.gpus.get(address) {
            Some(gpu) => *gpu,
            None => self.library.gpu(address).map_err(error)?,
        };
        self.gpus.insert(address.to_owned(), gpu);
        self.library.link_bytes(gpu).map_err(error)
    }
}

fn error(code: i32) -> io::Error {
    let found = match code {
        NOT_SUPPORTED => Errno::OPNOTSUPP,
        NOT_FOUND => Errno::NODEV,
        _ => Errno::IO,
    };
    found.into()
}

/// Returns a line with the bytes that a GPU has sent and received.
pub fn counters(address: &str) -> io::Result<Vec<u8>> {
    thread_local! {
        static NVML: RefCell<Option<Nvml>> = const { RefCell::new(None) };
    }
    NVML.with_borrow_mut(|known| {
        if known.is_none() {
            *known = Some(Nvml::new()?);
        }
        let nvml = known.as_mut().ok_or(Errno::NOENT)?;
        let [sent, received] = nvml.counters(address)?;
        Ok(format!("{sent} {received}\n").into_bytes())
    })
}
