// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The reading process asks NVML for the counters of GPUs. A library that is made for the test stands for NVML.
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::node::{Node, program};

const GPU: &str = "/nvml/0000:03:00.0";

/// Makes the library, and returns its directory.
fn library(node: &Node) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/doubles/cuda/nvml_counters.c");
    let place = node.scratch().join("nvml");
    fs::create_dir(&place).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let made = Command::new(compiler)
        .args(["-shared", "-fPIC", "-o"])
        .arg(place.join("libnvidia-ml.so.1"))
        .arg(source)
        .status();
    assert!(made.unwrap().success());
    place
}

/// Returns the answer of the reading process for a name: the number of the error, and the text.
fn asked(place: &Path, name: &str, state: &[(&str, &str)]) -> (i32, String) {
    let mut command = Command::new(program());
    command.arg("__read").env("LD_LIBRARY_PATH", place).envs(state.iter().copied());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let request =
        [&u64::MAX.to_ne_bytes()[..], &u32::try_from(name.len()).unwrap().to_ne_bytes(), name.as_bytes()].concat();
    child.stdin.take().unwrap().write_all(&request).unwrap();
    let mut answer = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut answer).unwrap();
    assert!(child.wait().unwrap().success());
    let (errno, rest) = answer.split_at(4);
    let text = String::from_utf8(rest[8..].to_vec()).unwrap();
    (i32::from_ne_bytes(errno.try_into().unwrap()), text)
}

#[test]
fn a_gpu_has_the_counters_of_both_directions() {
    let node = Node::new();
    let place = library(&node);
    let bytes = [("NVML_SENT", "4294967295"), ("NVML_RECEIVED", "7")];
    assert_eq!(asked(&place, GPU, &[&bytes[..], &[("NVML_TYPE", "1")]].concat()), (0, "4294967295 7\n".to_owned()));
    let more = [("NVML_SENT", "4294967296"), ("NVML_RECEIVED", "7"), ("NVML_TYPE", "3")];
    assert_eq!(asked(&place, GPU, &more), (0, "4294967296 7\n".to_owned()));
}

#[test]
fn what_nvml_cannot_say_is_an_error() {
    let node = Node::new();
    let place = library(&node);
    let code = |errno: rustix::io::Errno| errno.raw_os_error();
    // A driver that does not have the fields, and one that does not know their numbers.
    assert_eq!(asked(&place, GPU, &[("NVML_CODE", "3")]).0, code(rustix::io::Errno::OPNOTSUPP));
    assert_eq!(asked(&place, GPU, &[("NVML_CODE", "2")]).0, code(rustix::io::Errno::IO));
    // A fraction is no counter.
    assert_eq!(asked(&place, GPU, &[("NVML_TYPE", "0")]).0, code(rustix::io::Errno::OPNOTSUPP));
    assert_eq!(asked(&place, "/nvml/0000:83:00.0", &[("NVML_TYPE", "1")]).0, code(rustix::io::Errno::NODEV));
    fs::write(place.join("libnvidia-ml.so.1"), "no library").unwrap();
    assert_eq!(asked(&place, GPU, &[("NVML_TYPE", "1")]).0, code(rustix::io::Errno::NOENT));
}
