// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Writes results to the standard output. A result that cannot be written gives another exit code, because a monitor
//! that gets no line must not take the machine for a good one.
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use rustix::fs::fsync;
use rustix::io::Errno;

use crate::read::reader::reason;

/// Writes lines, and returns the exit code CODE, or LOST if they cannot be written. If the reader of the output has
/// stopped early, as in `nvpm status | head`, nothing is said.
pub fn say<T: AsRef<str>>(lines: impl IntoIterator<Item = T>, code: u8, lost: u8) -> ExitCode {
    match written(lines) {
        Ok(()) => ExitCode::from(code),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(code),
        Err(error) => self::lost(&reason(&error), lost),
    }
}

/// Says that the answer is lost, and returns the exit code CODE.
pub fn lost(why: &str, code: u8) -> ExitCode {
    // If this cannot be written either, the exit code still says it.
    let _ = writeln!(io::stderr(), "nvpm: what it has to say cannot be written: {why}.");
    ExitCode::from(code)
}

/// Writes lines.
pub fn written<T: AsRef<str>>(lines: impl IntoIterator<Item = T>) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in lines {
        out.write_all(line.as_ref().as_bytes())?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    // The disk may be full although all was written. Terminals and pipes know no fsync.
    match fsync(io::stdout().as_fd()) {
        Err(error) if ![Errno::INVAL, Errno::ROFS, Errno::NOTSUP].contains(&error) => Err(error.into()),
        _ => Ok(()),
    }
}
