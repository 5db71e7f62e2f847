// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The commands `nvpm help` and `nvpm version`.
use std::ffi::OsString;
use std::process::ExitCode;

use crate::commands::LOST;
use crate::show::out::say;
use crate::show::release::release;

const USAGE: &str = "\
Usage: nvpm [COMMAND [OPTION]...]

  (none)      whether and how GPU memory can be registered on this node
  status      the same, and what needs attention; --all: everything; or of some devices
  used        whether GPUDirect RDMA is used now: by which process, by which way, how fast
  check       one line and an exit code, for monitoring
  selftest    moves data between GPUs and RDMA devices, by each way
  regions     which process has which GPU memory registered (root)
  compare     which of many nodes differ, from what nvpm status --json printed on each
  explain     the cause of the failures in a log: of NCCL, UCX, MPI, the kernel and others
  run         starts a program that registers pointers where only dma-buf serves
  report      what a bug report needs, in one archive, without names and addresses
  completion  what bash, zsh or fish needs to complete the words of nvpm
  help        this text; nvpm COMMAND --help says more
  --version   the version of nvpm

With --debug each of them says on stderr which file or program told it what.

The service: systemctl start nv_peer_mem, or /etc/init.d/nv_peer_mem start.
More: man nvpm, man nv_peer_mem";

/// Returns what the usage says of a command.
pub fn summary(name: &str) -> &'static str {
    let lines = USAGE.lines().filter_map(|line| line.strip_prefix("  ")?.strip_prefix(name)?.strip_prefix(' '));
    lines.map(str::trim_start).next().unwrap_or_default()
}

pub fn usage(_: &[OsString]) -> ExitCode {
    say([USAGE], 0, LOST)
}

pub fn version(_: &[OsString]) -> ExitCode {
    say([format!("nvpm {}", release())], 0, LOST)
}
