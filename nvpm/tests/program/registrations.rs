// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! nvpm reads each list of registrations that the module can write (src/c/proc.c). The lists are the same in each run.
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;

use crate::node::Node;

const HEAD: &str = "# process started age address length client state device name\n";
const LIST: &str = "/proc/driver/nv_peer_mem/regions";

#[derive(Clone, Debug)]
struct Region {
    process: u32,
    started: u64,
    age: u32,
    address: u64,
    length: u64,
    client: &'static str,
    state: &'static str,
    pci: &'static str,
    command: Vec<u8>,
}

/// Returns a name as the module writes it. A name ends before its first zero byte, as in the kernel.
fn written_name(name: &[u8]) -> String {
    let name = name.split(|byte| *byte == 0).next().unwrap();
    let one = |byte: &u8| match byte {
        b'\\' => "\\134".to_owned(),
        0x21..=0x7e => char::from(*byte).to_string(),
        _ => format!("\\{byte:03o}"),
    };
    name.iter().map(one).collect()
}

fn written(one: &Region) -> String {
    let Region { process, started, age, address, length, client, state, pci, command } = one;
    format!("{process} {started} {age} 0x{address:x} {length} {client} {state} {pci} {}\n", written_name(command))
}

fn regions() -> impl Strategy<Value = Vec<Region>> {
    let numbers = (1..=0x7fff_ffff_u32, any::<u64>(), any::<u32>(), any::<u64>(), 1..=u64::MAX);
    let words = (
        select(vec!["nv_mem", "nv_mem_revocable", "nv_mem_fixed", "nv_mem_nc"]),
        select(vec!["pinning", "pinned", "mapped", "unmapped", "revoking", "revoked", "orphaned"]),
        select(vec!["-", "0000:04:00.0", "10000:ff:1f.7"]),
        vec(any::<u8>(), 0..16),
    );
    let one = (numbers, words).prop_map(|((process, started, age, address, length), (client, state, pci, command))| {
        Region { process, started, age, address, length, client, state, pci, command }
    });
    vec(one, 0..6)
}

/// Returns a runner that makes the same cases in each run.
pub fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn sorted<T: Ord>(members: impl Iterator<Item = T>) -> Vec<T> {
    let mut found: Vec<T> = members.collect();
    found.sort();
    found
}

#[test]
fn each_list_of_the_module_is_read() {
    let node = Node::new();
    let file = node.machine.root.join(LIST.trim_start_matches('/'));
    node.change(&[&format!("{LIST} =")]);
    let tested = runner(300).run(&regions(), |found| {
        let text: String = found.iter().map(written).collect();
        std::fs::write(&file, format!("{HEAD}{text}")).unwrap();
        let ended = node.nvpm("regions --json");
        prop_assert_eq!(ended.code, Some(0), "{}", ended.err);
        let said: Value = serde_json::from_str(&ended.out).unwrap();
        let bytes: u128 = found.iter().map(|one| u128::from(one.length)).sum();
        prop_assert!(ended.out.contains(&format!("\"bytes\": {bytes}}}")), "{}", ended.out);
        let listed = said["registrations"].as_array().unwrap();
        let text = |one: &Value, key: &str| one[key].as_str().unwrap_or("-").to_owned();
        let wanted = sorted(found.iter().map(|one| {
            let name = written_name(&one.command).replace("\\040", " ");
            let name = if name.is_empty() { "?".to_owned() } else { name };
            (one.process.into(), one.age.into(), format!("0x{:x}", one.address), one.length, one.pci.to_owned(), name)
        }));
        let got = sorted(listed.iter().map(|one| {
            let number = |key: &str| one[key].as_u64().unwrap();
            let (address, pci) = (text(one, "address"), text(one, "pci"));
            (number("process"), number("age"), address, number("length"), pci, text(one, "command"))
        }));
        prop_assert_eq!(got, wanted);
        let states = |key: &str| sorted(listed.iter().map(|one| text(one, key)));
        prop_assert_eq!(states("state"), sorted(found.iter().map(|one| one.state.to_owned())));
        prop_assert_eq!(states("client"), sorted(found.iter().map(|one| one.client.to_owned())));
        Ok(())
    });
    tested.unwrap();
}
