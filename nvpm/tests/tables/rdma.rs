// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Makes the messages by which a kernel lists the objects of RDMA devices, as drivers/infiniband/core/nldev.c writes
//! them, with the numbers from `<rdma/rdma_netlink.h>`.

/// The lists, each with the command's number, and the numbers of the table of objects and of an object in the table.
const LISTS: [(&str, u16, u16, u16); 5] =
    [("dev", 1, 0, 0), ("qp", 10, 19, 20), ("mr", 13, 40, 41), ("pd", 14, 46, 47), ("ctx", 22, 86, 87)];
/// The attributes with a number of 32 bits.
const NUMBERS: [(&str, u16); 7] =
    [("lqpn", 21), ("pid", 28), ("rkey", 42), ("lkey", 43), ("pdn", 60), ("mrn", 62), ("ctxn", 64)];
const INDEX: u16 = 1;
const NAME: u16 = 2;
const KERN_NAME: u16 = 29;
const MRLEN: u16 = 45;
const DRIVER: u16 = 52;
const DRIVER_STRING: u16 = 54;
const NLDEV: u16 = 5;
const MULTI: u16 = 2;

fn padded(mut data: Vec<u8>) -> Vec<u8> {
    data.resize(data.len().next_multiple_of(4), 0);
    data
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len() + 4).unwrap();
    padded([&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat())
}

fn text(kind: u16, value: &str) -> Vec<u8> {
    attribute(kind, &[value.as_bytes(), b"\0"].concat())
}

/// Returns the attribute of a word and a value.
fn of_word(word: &str, value: &str) -> Vec<u8> {
    if let Some((_, kind)) = NUMBERS.iter().find(|(name, _)| *name == word) {
        return attribute(*kind, &value.parse::<u32>().unwrap().to_ne_bytes());
    }
    match word {
        "mrlen" => attribute(MRLEN, &value.parse::<u64>().unwrap().to_ne_bytes()),
        "comm" => text(KERN_NAME, value),
        // mlx5 writes the name of the property, and then its value.
        "odp" => attribute(DRIVER, &[text(DRIVER_STRING, "odp"), text(DRIVER_STRING, value)].concat()),
        _ => panic!("no attribute of an object: {word}"),
    }
}

/// Returns the message about one object of a list: a word and a value for each attribute, as `rdma resource` prints
/// them.
pub fn message(list: &str, device: &str, words: &[&str]) -> Vec<u8> {
    let (_, command, table, object) =
        LISTS.iter().find(|(name, ..)| *name == list).unwrap_or_else(|| panic!("no list: {list}"));
    let mut body = attribute(INDEX, &device.parse::<u32>().unwrap().to_ne_bytes());
    let pairs = words.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    if list == "dev" {
        pairs.for_each(|(_, name)| body.extend(text(NAME, name)));
    } else {
        let found: Vec<u8> = pairs.flat_map(|(word, value)| of_word(word, value)).collect();
        body.extend(attribute(*table, &attribute(*object, &found)));
    }
    let length = u32::try_from(body.len() + 16).unwrap();
    let kind = (NLDEV << 10) | command;
    let mut found = length.to_ne_bytes().to_vec();
    found.extend([kind.to_ne_bytes(), MULTI.to_ne_bytes()].concat());
    found.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    found.extend(body);
    found
}

/// Returns the name of the file that has a list.
pub fn file(list: &str, device: &str) -> String {
    if list == "dev" { "/rdma-netlink/dev".to_owned() } else { format!("/rdma-netlink/{list}/{device}") }
}
