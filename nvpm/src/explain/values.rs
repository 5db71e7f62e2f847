// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Takes values out of a line, and puts them into the command of a cause: the device, the other side's address, the
//! file, and the names at placeholders.
use std::net::Ipv6Addr;

use regex::bytes::Regex;

use crate::explain::pattern::expression;

const DEVICE: &str = r"\b(?:mlx[45]_(?:bond_)?\d+|(?:rocep|ibp|rdmap|rocep)\d+s\d\w*|(?:bnxt_re|irdma|erdma|hns|qedr|efa|ionic|mana)_?\d+)\b";
/// The address of the other side stands behind such a word; else the last address of a line is taken.
const REMOTE: &str =
    r"(?i:remote|peer|to|connect(?:ed|ing)?)\W{0,3}(?:\w+\W{1,3}){0,3}(?:::ffff:)?(\d{1,3}(?:\.\d{1,3}){3})\b";
const ADDRESS: &str = r"\b(\d{1,3}(?:\.\d{1,3}){3})\b";
/// The RDMA port of the other side has this address. The address before `<PORT>` is that of a TCP socket.
const REMOTE_GID: &str = r"(?i:remote ?gids?)(?:: | ?= ?| |)([0-9a-f]*:[0-9a-f:.]+)";
/// A package that a package manager does not find, without its version.
const RPM: &str = r"(?:Unable to find a match: |No package |No match for argument: )([A-Za-z][\w+.]*?(?:-[A-Za-z][\w+.]*)*?)(?:-\d\S*)?(?:\s|$)";
const DEB: &str = r"Unable to locate package (\S+)";
const FILE: &str = r"(/[\w./+-]+/make\.log)";

fn group(pattern: &str, line: &str) -> Option<String> {
    let found: Regex = expression(pattern)?;
    let last = found.captures_iter(line.as_bytes()).last()?;
    let text = last.get(1).or_else(|| last.get(0))?;
    Some(String::from_utf8_lossy(text.as_bytes()).into_owned())
}

fn value(name: &str, line: &str, named: &[(&str, String)]) -> Option<String> {
    match name {
        "device" => group(DEVICE, line),
        "address" => group(REMOTE, line).or_else(|| group(ADDRESS, line)).filter(|address| is_of_a_host(address)),
        "gid" => group(REMOTE_GID, line).and_then(|gid| routed(&gid)),
        "rpm" => group(RPM, line),
        "deb" => group(DEB, line),
        "file" => group(FILE, line),
        _ => named.iter().find(|(of, _)| *of == name).map(|(_, text)| text.clone()),
    }
}

/// Returns the address in a GID, which is in one of the forms of programs and of the kernel. A link-local address leads
/// nowhere.
fn routed(gid: &str) -> Option<String> {
    let bytes: Option<Vec<u8>> = gid.split(':').map(|pair| u8::from_str_radix(pair, 16).ok()).collect();
    let of_bytes = bytes.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok()).map(Ipv6Addr::from);
    let address = of_bytes.or_else(|| gid.trim_end_matches(['.', ':']).parse().ok())?;
    if let Some(address) = address.to_ipv4_mapped() {
        return Some(address.to_string());
    }
    (!address.is_unicast_link_local() && !address.is_unspecified()).then(|| address.to_string())
}

fn is_of_a_host(address: &str) -> bool {
    let parts: Vec<Option<u8>> = address.split('.').map(|part| part.parse().ok()).collect();
    parts.iter().all(Option::is_some) && !matches!(parts.first(), Some(Some(0 | 127 | 224..)))
}

/// Returns the first of the commands whose values stand in the line. A value is printed to be pasted into a shell, so a
/// value with other characters than those of names does not count.
pub fn filled(commands: &str, line: &str, named: &[(&str, String)]) -> Option<String> {
    commands.lines().find_map(|command| one_filled(command, line, named))
}

fn one_filled(command: &str, line: &str, named: &[(&str, String)]) -> Option<String> {
    let mut found = String::new();
    let mut rest = command;
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((name, behind)) = behind.split_once('}') else { break };
        found.push_str(before);
        if name.chars().all(|letter| letter.is_ascii_lowercase()) {
            let text = value(name, line, named)?;
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/+:".contains(letter);
            if !text.chars().all(is_plain) || text.starts_with('-') {
                return None;
            }
            found.push_str(&text);
        } else {
            found.extend(["{", name, "}"]);
        }
        rest = behind;
    }
    found.push_str(rest);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_line_stand_in_the_command() {
        let line =
            "ibv_modify_qp failed with 110, on dev mlx5_1:1, local GID ::ffff:192.0.2.1, remote GID ::ffff:203.0.113.9";
        assert_eq!(filled("ping -c 3 {address}", line, &[]).as_deref(), Some("ping -c 3 203.0.113.9"));
        assert_eq!(filled("ibstat {device}\nibstat", line, &[]).as_deref(), Some("ibstat mlx5_1"));
        assert_eq!(filled("ibstat {device}\nibstat", "no device", &[]).as_deref(), Some("ibstat"));
        assert_eq!(filled("awk '{print}'", "x", &[]), None);
    }

    #[test]
    fn the_other_port_is_that_of_the_gid_and_not_of_the_socket() {
        let command = "ping -c 3 {gid}\nshow_gids {device}\nshow_gids";
        for (line, expected) in [
            ("Got completion from peer 192.0.2.5<38560> with error 12, vendor err 129", "show_gids"),
            ("error 12 localGid ::ffff:192.0.2.1 remoteGids ::ffff:203.0.113.9", "ping -c 3 203.0.113.9"),
            ("on mlx5_1:1, local GID fe80::1, remote GID fe80::966d:aeff:fe01:203", "show_gids mlx5_1"),
            ("remote GID: 00:00:00:00:00:00:00:00:00:00:ff:ff:cb:00:71:09", "ping -c 3 203.0.113.9"),
            ("remote GID 2001:db8::7", "ping -c 3 2001:db8::7"),
        ] {
            assert_eq!(filled(command, line, &[]).as_deref(), Some(expected), "{line}");
        }
        let line = "Error: Unable to find a match: kernel-devel-5.14.0-427.el9.x86_64";
        assert_eq!(filled("dnf list {rpm}", line, &[]).as_deref(), Some("dnf list kernel-devel"));
    }

    #[test]
    fn a_value_cannot_be_a_command() {
        let named = [("module", "x;reboot".to_owned())];
        assert_eq!(filled("modinfo {module}", "", &named), None);
    }
}
