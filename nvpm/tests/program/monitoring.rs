// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The line of check fits into the 1,024 bytes that NRPE passes on, lines of JSON are short, and docs/monitoring.md
//! names each key.
use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;
use serde_json::Value;

use crate::node::Node;

const STATISTICS: &str = "/sys/module/nv_peer_mem/statistics";

/// Returns the numbers of findings that a line of check shows and leaves out.
fn shown(node: &Node) -> (usize, usize) {
    let said = node.nvpm("check").out;
    let finding = Regex::new(r"(?:^NVPM \w+ - |; )[a-z0-9_.:-]+/[a-z0-9_.:-]+: ").unwrap();
    let more = Regex::new("; and ([0-9]+) more: nvpm status").unwrap();
    let left = more.captures(&said).map_or(0, |found| found[1].parse().unwrap());
    (finding.find_iter(&said).count(), left)
}

#[test]
fn findings_that_do_not_fit_are_counted() {
    let node = Node::new();
    node.change(&["many_devices"]);
    node.change(&[&format!("{STATISTICS}/failed_no_memory = 3"), &format!("{STATISTICS}/failed_driver = 3")]);
    for number in 2..10 {
        node.change(&[&if number % 2 == 1 {
            format!("bar1 0000:{}3:00.0 256 131072", number - 1)
        } else {
            format!("port mlx5_{number} 1 DOWN Polling InfiniBand")
        }]);
    }
    let closed = |number: u32| {
        let file = format!("/dev/infiniband/uverbs{number}");
        node.change(&[&format!("{file} ="), &format!("mode 600 {file}")]);
    };
    closed(100);
    let (everything, _) = shown(&node);
    let mut lefts = BTreeSet::new();
    // With each further device file that is not open to all users, the line has less room.
    for number in 101..160 {
        closed(number);
        let (found, left) = shown(&node);
        assert_eq!(found + left, everything);
        lefts.insert(left);
    }
    assert!(lefts.contains(&0) && lefts.contains(&1), "{lefts:?}");
}

#[test]
fn lines_are_short() {
    // srun cuts a long line, and two writers of a pipe tear a long line.
    let node = Node::new();
    node.change(&["many_devices"]);
    let said = node.nvpm("status --json").out;
    let object: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(object["ways"].as_array().map(Vec::len), Some(96));
    assert!(said.lines().all(|line| line.len() < 1000));
}

#[test]
fn a_line_about_a_bad_machine() {
    let node = Node::new();
    node.change(&["many_devices", "/sys/module/nvidia/version = 595.58.03"]);
    for i in 1..9 {
        let (gpu, nic) = (format!("0000:{i}3:00.0"), format!("0000:{i}4:00.0"));
        node.change(&[
            &format!("link {gpu} 16.0 8 32.0 16"),
            &format!("bar1 {gpu} 256 131072"),
            &format!("link {nic} 16.0 8 32.0 16"),
            &format!("settings {nic} 0930"),
            &format!("iommu {nic} DMA-FQ"),
            &format!("acs 0000:{i}1:00.0 4"),
            &format!("port mlx5_{} 1 DOWN Polling layer_with_a_long_name_{i}", i + 1),
        ]);
    }
    for figure in ["failed_no_memory", "failed_not_supported", "failed_freed", "failed_driver"] {
        node.change(&[&format!("{STATISTICS}/{figure} = 3")]);
    }
    let ended = node.nvpm("check");
    let line = ended.out.trim_end_matches('\n');
    assert!(ended.code == Some(2) && !line.contains('\n') && (801..=1024).contains(&line.len()), "{line}");
    assert!(line.starts_with("NVPM CRITICAL - driver/crash_at_exit: 595.58.03"), "{line}");
    assert!(line.contains("gpu_0000:13:00.0/link: 16.0 GT/s x8: both ends can x16 [8 devices]"), "{line}");
    assert!(Regex::new(r"; and \d+ more: nvpm status \| reachable_regions=0 ").unwrap().is_match(line), "{line}");
}

#[test]
fn the_same_fact_about_several_devices_is_one_item() {
    let node = Node::new();
    node.change(&["many_devices"]);
    for i in 1..9 {
        node.change(&[&format!("settings 0000:{i}4:00.0 0930")]);
    }
    assert!(node.nvpm("check").out.contains("rdma_device_mlx5_2/maxreadreq: 128 [mlx5_2 to mlx5_9] |"));
}

/// Returns the keys of an object, and all keys below.
fn keys(said: &Value) -> BTreeSet<String> {
    match said {
        Value::Array(members) => members.iter().flat_map(keys).collect(),
        Value::Object(fields) => fields.keys().cloned().chain(fields.values().flat_map(keys)).collect(),
        _ => BTreeSet::new(),
    }
}

#[test]
fn the_page_names_each_key() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/monitoring.md");
    let page = std::fs::read_to_string(page).unwrap();
    let node = Node::new();
    node.change(&["/proc/driver/nv_peer_mem/regions = 42 5 5 0x7f0000000000 65536 nv_mem mapped - python3"]);
    node.change(&["rdma dev 0 name mlx5_0", "rdma mr 0 mrlen 65536 pid 42", "process 42 python3 24 nvidia0"]);
    let word = Regex::new(r"`(\w+)`").unwrap();
    for command in ["regions", "used", "selftest"] {
        let ended = node.nvpm(&format!("{command} --json"));
        let object: Value = serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {}", ended.out));
        let row = page.lines().find(|line| line.starts_with(&format!("| `nvpm {command} --json` |"))).unwrap();
        let mut named: BTreeSet<String> = word.captures_iter(row).map(|found| found[1].to_owned()).collect();
        named.insert("schema".to_owned());
        let there: BTreeSet<String> = match command {
            "regions" | "used" => keys(&object),
            _ => object.as_object().unwrap().keys().cloned().collect(),
        };
        assert!(there.is_subset(&named) && there.len() > 4, "{command}: {:?}", there.difference(&named));
    }
}
