// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds processes that an earlier nvpm of the same user has left behind: that nvpm has killed its reading process, and
//! the process has not ended. So a monitor that runs each minute leaves only one process behind, and knows since when
//! the file does not answer.
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use indexmap::IndexMap;
use regex::Regex;

use crate::read::areas::area_of;
use crate::read::rdma_netlink::PLACE;
use crate::read::reader::Silence;
use crate::read::reading_child::{NAME, directly};
use crate::text::pattern;

/// The bit of SIGKILL in the field `ShdPnd` of /proc/PID/status.
const KILLED: u64 = 1 << 8;
/// The kernel counts in this unit for programs on x86-64 and arm64.
const TICKS: i64 = 100;

/// Returns the files for which the processes wait, by their area.
pub fn left_behind(root: &str) -> IndexMap<String, Silence> {
    let mut found: IndexMap<String, Silence> = IndexMap::new();
    for entry in fs::read_dir(format!("{root}/proc")).into_iter().flatten().flatten() {
        let is_process = entry.file_name().to_string_lossy().bytes().all(|letter| letter.is_ascii_digit());
        if let Some(one) = Some(entry.path()).filter(|_| is_process).and_then(|place| silence(root, &place)) {
            let known = found.entry(one.area.clone()).or_insert_with(|| one.clone());
            if one.since < known.since {
                *known = one;
            }
        }
    }
    found
}

fn silence(root: &str, place: &Path) -> Option<Silence> {
    if text(&place.join("comm"), 64)?.trim() != NAME || !is_held(place) {
        return None;
    }
    let path = open_file(place)?;
    Some(Silence { area: area_of(&path), path, since: started(root, place)? })
}

fn text(path: &Path, size: u64) -> Option<String> {
    directly(path, Some(size)).ok().map(|data| String::from_utf8_lossy(&data).into_owned())
}

/// Returns whether a process belongs to this user, and was killed but has not ended. Another user may give a process
/// any name, and must not make nvpm believe that a driver hangs. A program that changes its user, such as su, also
/// belongs to the user who has started it, so the real, the effective, the saved and the file system's user must all be
/// this user.
fn is_held(place: &Path) -> bool {
    static PENDING: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^ShdPnd:\s*([0-9a-f]+)$"));
    static OWNERS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^Uid:((?:\s+\d+){4})$"));
    let Some(status) = text(&place.join("status"), 1 << 16) else { return false };
    let first = |pattern: &Regex| Some(pattern.captures(&status)?.get(1)?.as_str().to_owned());
    let pending = first(&PENDING).and_then(|mask| u64::from_str_radix(&mask, 16).ok()).unwrap_or_default();
    let own = rustix::process::geteuid().as_raw().to_string();
    let is_ours = first(&OWNERS).is_some_and(|owners| owners.split_whitespace().all(|owner| owner == own));
    pending & KILLED != 0 && is_ours
}

/// Returns the file that a reading process waits for. The process has no other file of /proc or /sys open, and its only
/// socket is that to the RDMA core.
fn open_file(place: &Path) -> Option<String> {
    let names = fs::read_dir(place.join("fd")).ok()?.flatten().map(|entry| entry.path());
    let links = names.filter_map(|name| fs::read_link(name).ok()).map(|link| link.to_string_lossy().into_owned());
    let of_link = |link: String| {
        let is_file = link.starts_with("/proc/") || link.starts_with("/sys/");
        if link.starts_with("socket:") { Some(format!("{PLACE}dev")) } else { Some(link).filter(|_| is_file) }
    };
    links.into_iter().find_map(of_link)
}

/// Returns when a process was started, in seconds since 1970.
fn started(root: &str, place: &Path) -> Option<i64> {
    let stat = text(&place.join("stat"), 4096)?;
    // The name of the process, in parentheses, may contain blanks.
    let fields = stat.rsplit_once(") ")?.1;
    let ticks: i64 = fields.split_whitespace().nth(19)?.parse().ok()?;
    let boot = text(Path::new(&format!("{root}/proc/stat")), 1 << 22)?;
    let boot: i64 = boot.lines().find_map(|line| line.strip_prefix("btime ")?.parse().ok()).unwrap_or_default();
    Some(boot + ticks / TICKS)
}
