// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Takes names of hosts and addresses out of quoted lines. The same name always becomes the same word.
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use regex::bytes::Regex;

use crate::explain::pattern::expression;

/// Addresses: of Ethernet and InfiniBand, of IP version 4 and 6, and of mail.
const ADDRESSES: &str = r"(?i)\b[\w.+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+\b|\b(?:[0-9a-f]{2}:){5,19}[0-9a-f]{2}\b|\b(?:\d{1,3}\.){3}\d{1,3}\b|\b(?:[0-9a-f]{4}:){3}[0-9a-f]{4}\b|\b[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){2,7}:[0-9a-f]{1,4}\b|\b0x[0-9a-f]{16}\b";
/// PCI addresses have the form of other addresses, and stay, because all machines have the same ones.
const PCI: &str = r"(?i)^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}$";
/// Names that identify nobody.
const COMMON: &[&str] = &["localhost", "node", "host", "gpu", "server", "worker", "master", "root", "kernel", "test"];

pub struct Redactor {
    expressions: Option<(Regex, Regex)>,
    hosts: BTreeSet<String>,
    known: RefCell<BTreeMap<String, String>>,
}

impl Redactor {
    pub fn new(hosts: BTreeSet<String>) -> Self {
        let hosts = hosts
            .into_iter()
            .map(|host| host.to_lowercase())
            .filter(|host| host.len() > 1 && !COMMON.contains(&host.as_str()) && host.chars().any(char::is_alphabetic))
            .collect();
        let expressions = expression(ADDRESSES).zip(expression(PCI));
        Self { expressions, hosts, known: RefCell::default() }
    }

    pub fn text(&self, line: &str) -> String {
        let mut found = self.without_hosts(line);
        if let Some((addresses, pci)) = &self.expressions {
            let replaced = addresses.replace_all(found.as_bytes(), |one: &regex::bytes::Captures| {
                let text = one.get(0).map_or(&b""[..], |text| text.as_bytes());
                if pci.is_match(text) { text.to_vec() } else { self.word("address", text).into_bytes() }
            });
            found = String::from_utf8_lossy(&replaced).into_owned();
        }
        found
    }

    fn word(&self, kind: &str, name: &[u8]) -> String {
        let name = String::from_utf8_lossy(name).to_lowercase();
        let mut known = self.known.borrow_mut();
        let number = known.values().filter(|word| word.starts_with(kind)).count() + 1;
        known.entry(name).or_insert_with(|| format!("{kind}-{number}")).clone()
    }

    /// Replaces each host as a whole word, with the domain behind it.
    fn without_hosts(&self, line: &str) -> String {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '.' || letter == '_';
        let mut found = String::new();
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|letter| is_part(letter) != is_part(first)).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            let host = word.split('.').next().unwrap_or_default().to_lowercase();
            if is_part(first) && self.hosts.contains(&host) {
                found.push_str(&self.word("host", host.as_bytes()));
            } else {
                found.push_str(word);
            }
            rest = behind;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_addresses_become_words_and_pci_addresses_stay() {
        let redactor = Redactor::new(BTreeSet::from(["gpu07".to_owned()]));
        assert_eq!(
            redactor.text("gpu07.example.com: 192.0.2.1 to fe80::1:2, 192.0.2.1 on 0000:3b:00.0"),
            "host-1: address-1 to address-2, address-1 on 0000:3b:00.0"
        );
    }
}
