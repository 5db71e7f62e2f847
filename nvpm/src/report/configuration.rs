// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Files with versions and settings.
use std::sync::LazyLock;

use regex::Regex;

use crate::read::machine::Machine;
use crate::text::pattern;

const FILES: [&str; 5] = [
    "/etc/os-release",
    "/proc/version",
    "/proc/driver/nvidia/version",
    "/proc/driver/nvidia/params",
    "/etc/infiniband/nv_peer_mem.conf",
];

/// Words of the kernel's command line that concern GPUs and RDMA devices. Other words are left out, because they may be
/// private.
static WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\A(?:(\w+_)?iommu|pci|nvidia|rdma|mlx|ib_|mod(ule|probe)|lockdown|intremap|swiotlb|hugepages|memmap)")
});
static OPTIONS: LazyLock<Regex> = LazyLock::new(|| pattern("(?i)nvidia|nv_peer_mem|mlx|ib_|rdma"));

pub fn files(machine: &Machine) -> String {
    let mut said = Vec::new();
    for name in FILES {
        let text = machine.all_text(&[name]);
        let text = text.trim_end_matches('\n');
        let text = if text.is_empty() { "(not there)" } else { text };
        said.extend([format!("# {name}"), text.to_owned(), String::new()]);
    }
    let words = machine.text("/proc/cmdline");
    let spoken = words.split_whitespace().filter(|word| WORDS.is_match(word)).collect::<Vec<_>>().join(" ");
    said.extend(["# /proc/cmdline, of which others are left out".to_owned(), spoken, String::new()]);
    said.push("# lines of /etc/modprobe.d and /etc/modules-load.d about these modules".to_owned());
    for name in machine.glob(&["/etc/modprobe.d/*.conf", "/etc/modules-load.d/*.conf"]) {
        let lines = machine.lines(&name);
        // Comments are left out, because they may name people and tickets.
        let lines = lines.iter().map(|line| line.split('#').next().unwrap_or_default().trim_end());
        said.extend(lines.filter(|line| OPTIONS.is_match(line)).map(|line| format!("{name}: {line}")));
    }
    said.join("\n") + "\n"
}
