// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The process that reads files for nvpm. It gets requests at its standard input, and answers at its standard output,
//! until nvpm closes the pipe or ends.
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use rustix::process::{Signal, set_parent_process_death_signal, setsid};

use crate::read::{gpu_links, rdma_netlink};

/// The command by which nvpm starts itself as this process.
pub const WORD: &str = "__read";
/// The name of the process. If an nvpm has ended while its process was still waiting for a file, a later nvpm finds the
/// process by this name.
pub const NAME: &str = "nvpm-reader";
/// No path of nvpm is longer, so a request with a longer path does not come from nvpm.
const LONGEST_PATH: usize = 1 << 16;

/// The greatest number of bytes to read, or all, and the path. It begins with both lengths.
pub struct Request {
    pub size: Option<u64>,
    pub path: std::ffi::OsString,
}

impl Request {
    const HEAD: usize = 12;

    pub fn encoded(&self) -> Vec<u8> {
        let mut found = self.size.unwrap_or(u64::MAX).to_ne_bytes().to_vec();
        found.extend(u32::try_from(self.path.len()).unwrap_or(u32::MAX).to_ne_bytes());
        found.extend(self.path.as_bytes());
        found
    }

    fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut head = [0; Self::HEAD];
        from.read_exact(&mut head)?;
        let (size, length) = head.split_at(8);
        let size = u64::from_ne_bytes(size.try_into().unwrap_or_default());
        let length = u32::from_ne_bytes(length.try_into().unwrap_or_default()) as usize;
        if length > LONGEST_PATH {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut path = vec![0; length];
        from.read_exact(&mut path)?;
        Ok(Self { size: (size != u64::MAX).then_some(size), path: OsStr::from_bytes(&path).to_owned() })
    }
}

/// The number of the error, or 0, and the contents. It begins with the number and the length of the contents.
pub struct Answer {
    pub errno: i32,
    pub data: Vec<u8>,
}

impl Answer {
    pub const HEAD: usize = 12;

    pub fn of_head(head: &[u8]) -> (i32, usize) {
        let (errno, length) = head.split_at_checked(4).unwrap_or_default();
        let length = u64::from_ne_bytes(length.try_into().unwrap_or_default());
        (i32::from_ne_bytes(errno.try_into().unwrap_or_default()), usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn encoded(&self) -> Vec<u8> {
        let mut found = self.errno.to_ne_bytes().to_vec();
        found.extend((self.data.len() as u64).to_ne_bytes());
        found.extend(&self.data);
        found
    }

    pub fn contents(self) -> io::Result<Vec<u8>> {
        if self.errno == 0 { Ok(self.data) } else { Err(io::Error::from_raw_os_error(self.errno)) }
    }
}

/// Answers requests until the pipe is closed.
pub fn run() -> ExitCode {
    prepare();
    let (mut requests, mut answers) = (io::stdin().lock(), io::stdout().lock());
    while let Ok(request) = Request::read(&mut requests) {
        let answer = match directly(request.path.as_ref(), request.size) {
            Ok(data) => Answer { errno: 0, data },
            Err(error) => {
                Answer { errno: error.raw_os_error().unwrap_or(rustix::io::Errno::IO.raw_os_error()), data: Vec::new() }
            }
        };
        if answers.write_all(&answer.encoded()).and_then(|()| answers.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// Leaves the session of nvpm, and closes all files that nvpm has inherited, because a program that reads nvpm's output
/// waits until each writer has closed it. Each step may fail, as in a container without /proc, and the process reads
/// nevertheless.
fn prepare() {
    let _ = setsid();
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    nvpm_foreign::close_inherited();
    let _ = std::fs::write("/proc/self/comm", NAME);
}

/// Returns the bytes of a file, of a list of the RDMA core, or of a GPU's counters, however long that takes.
pub fn directly(path: &Path, size: Option<u64>) -> io::Result<Vec<u8>> {
    if let Some((command, device)) = rdma_netlink::parsed(path) {
        return rdma_netlink::dump(command, device, size);
    }
    if let Some(address) = gpu_links::parsed(path) {
        return gpu_links::counters(address);
    }
    let mut data = Vec::new();
    File::open(path)?.take(size.unwrap_or(u64::MAX)).read_to_end(&mut data)?;
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_keep_their_values() {
        for size in [None, Some(0), Some(200)] {
            let path = OsStr::from_bytes(b"/proc/\xff").to_owned();
            let found = Request::read(&mut Request { size, path: path.clone() }.encoded().as_slice());
            assert!(found.is_ok_and(|found| found.size == size && found.path == path));
        }
        let encoded = Answer { errno: 2, data: vec![1, 2, 3] }.encoded();
        assert_eq!(Answer::of_head(encoded.get(..Answer::HEAD).unwrap()), (2, 3));
    }

    #[test]
    fn a_request_that_is_cut_or_too_long_is_refused() {
        let whole = Request { size: None, path: "/proc/stat".into() }.encoded();
        for length in 0..whole.len() {
            assert!(Request::read(&mut whole.get(..length).unwrap()).is_err());
        }
        let long = Request { size: None, path: "x".repeat(LONGEST_PATH + 1).into() }.encoded();
        assert!(Request::read(&mut long.as_slice()).is_err());
    }
}
