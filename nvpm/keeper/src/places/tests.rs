// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Where the headers, the driver and the core of a node are found.
use super::*;
use crate::files::{Directory, Files, KERNEL};
use std::os::unix::fs::symlink;

/// Reads a module's file that has lines FIELD=VALUE, in place of modinfo.
fn of_text(file: &Path, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap();
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default().to_owned()
}

fn find_driver(node: &Node, cache: &Cache) -> Result<String, String> {
    driver(node, cache, &of_text).map_err(|missing| missing.0)
}

fn find_core(node: &Node) -> Result<String, String> {
    core(node, &of_text).map_err(|missing| missing.0)
}

/// Returns whether a part is missing, and the text about it has these words.
fn lacks(found: &Result<String, String>, words: &str) -> bool {
    found.as_ref().is_err_and(|missing| missing.contains(words))
}

fn module(name: &str, build: &str, left_out: &str) -> String {
    let fields = [("name", name.to_owned()), ("version", build.to_owned()), ("srcversion", format!("S{build}"))];
    let fields = fields.iter().filter(|(field, _)| *field != left_out);
    fields.map(|(field, value)| format!("{field}={value}\n")).collect::<Vec<_>>().concat()
}

fn lib(root: &str, file: &str) -> String {
    format!("{root}/lib/modules/{KERNEL}/{file}")
}

fn cache() -> (Cache, Directory) {
    let directory = Directory::new();
    (Cache::new(&directory.join("cache")).unwrap(), directory)
}

/// The driver's container comes first, because the node may have none.
#[test]
fn the_headers() {
    let node = Files::new();
    assert!(headers(&node).unwrap_err().0.starts_with(&format!("no headers of kernel {KERNEL} in ")));
    node.put(&format!("{HOST}/usr/src/kernels/{KERNEL}/.config"), "");
    let root = node.path(HOST);
    assert_eq!(headers(&node).unwrap(), (root.clone(), root.join(format!("usr/src/kernels/{KERNEL}"))));
    // The link of another kernel is not followed.
    node.put(&format!("{DRIVER}/usr/src/linux-headers-{KERNEL}-other/.config"), "");
    assert_eq!(headers(&node).unwrap().0, root);
    node.put(&format!("{DRIVER}/usr/src/linux-headers-{KERNEL}/.config"), "");
    let root = node.path(DRIVER);
    assert_eq!(headers(&node).unwrap(), (root.clone(), root.join(format!("usr/src/linux-headers-{KERNEL}"))));
}

/// An absolute link begins at the root directory of the node.
#[test]
fn headers_behind_a_link() {
    for target in ["/usr/src/any", "../../../usr/src/any"] {
        let node = Files::new();
        node.put(&format!("{HOST}/usr/src/any/.config"), "");
        node.put(&lib(HOST, "kernel/x"), "");
        symlink(target, node.path(&lib(HOST, "build"))).unwrap();
        let there = node.path(&format!("{HOST}/usr/src/any")).canonicalize().unwrap();
        assert_eq!(headers(&node).unwrap(), (node.path(HOST), there));
    }
}

/// If the container has a driver and the node another driver, the loaded driver counts.
#[test]
fn the_loaded_driver() {
    let (node, (cache, _directory)) = (Files::new(), cache());
    node.load_build("nvidia", "550.1", 0, "live");
    node.put(&lib(DRIVER, "kernel/drivers/video/nvidia.ko"), &module("nvidia", "570.1", ""));
    node.put(&lib(DRIVER, "kernel/drivers/video/nvidia-uvm.ko"), &module("nvidia_uvm", "550.1", ""));
    let found = find_driver(&node, &cache);
    assert!(lacks(&found, "the loaded driver 550.1 is") && lacks(&found, "has version 570.1"), "{found:?}");
    node.put(&lib(HOST, "updates/dkms/nvidia-current.ko"), &module("nvidia", "550.1", ""));
    assert_eq!(find_driver(&node, &cache).unwrap(), format!("DRIVER_ROOT={}", node.path(HOST).display()));
    node.load_build("nvidia", "570.1", 0, "live");
    assert_eq!(find_driver(&node, &cache).unwrap(), format!("DRIVER_ROOT={}", node.path(DRIVER).display()));
}

#[test]
fn the_driver_is_unloaded_meanwhile() {
    assert!(lacks(&find_driver(&Files::new(), &cache().0), "a moment ago"));
}

#[test]
fn a_driver_without_a_checksum() {
    let (node, (cache, _directory)) = (Files::new(), cache());
    node.load_build("nvidia", "550.1", 0, "live");
    node.put(&lib(DRIVER, "nvidia.ko"), &module("nvidia", "570.1", "srcversion"));
    assert!(find_driver(&node, &cache).is_err());
    node.put(&lib(DRIVER, "nvidia.ko"), &module("nvidia", "550.1", "srcversion"));
    assert!(find_driver(&node, &cache).unwrap().starts_with("DRIVER_ROOT="));
}

/// The driver's module is nowhere, and an earlier build has kept its symbols.
#[test]
fn after_the_fast_path() {
    let (node, (cache, directory)) = (Files::new(), cache());
    node.load_build("nvidia", "550.1", 0, "live");
    assert!(lacks(&find_driver(&node, &cache), "FORCE_REINSTALL"));
    let file = directory.join("file");
    fs::write(&file, "x").unwrap();
    let identity = node.identity("nvidia");
    cache.store_driver(&identity, &file, &file).unwrap();
    let kept = cache.driver(&identity).unwrap();
    assert_eq!(find_driver(&node, &cache).unwrap(), format!("NV_SRC={}", kept.display()));
    node.load_build("nvidia", "570.1", 0, "live");
    assert!(find_driver(&node, &cache).is_err());
}

#[test]
fn the_core_of_the_node() {
    let node = Files::new();
    node.load_core("25.10", "ib_uverbs");
    node.put(&lib(HOST, "kernel/ib_uverbs.ko"), &module("ib_uverbs", "inbox", ""));
    assert!(lacks(&find_core(&node), "another one"));
    // The message names the file that modprobe would load.
    node.put(&lib(HOST, "updates/ib_uverbs.ko"), &module("ib_uverbs", "25.9", ""));
    assert!(lacks(&find_core(&node), "updates/ib_uverbs.ko)"));
    node.put(&lib(HOST, "updates/ib_uverbs.ko.xz"), &module("ib_uverbs", "25.10", ""));
    assert_eq!(find_core(&node).unwrap(), format!("CORE_ROOT={}", node.path(HOST).display()));
    // A core without peer memory has no files that would do.
    node.load_core("25.11", "");
    assert!(!lacks(&find_core(&node), "another one"));
}

/// Debian's kernels give their modules neither a checksum nor a version.
#[test]
fn a_core_without_a_checksum() {
    let node = Files::new();
    node.load_core("1", "ib_core");
    for file in ["srcversion", "version"] {
        node.remove(&format!("/sys/module/ib_core/{file}"));
    }
    node.put(&lib(HOST, "kernel/ib_core.ko"), "name=ib_core\n");
    assert_eq!(find_core(&node).unwrap(), format!("CORE_ROOT={}", node.path(HOST).display()));
    // The core is the container's, which does not show its files yet.
    node.contain_ofed();
    assert!(lacks(&find_core(&node), "wait for its pod"));
}

/// On AKS, the driver is the node's, and OFED is the container's.
#[test]
fn the_core_of_the_container() {
    let machine = rustix::system::uname();
    let machine = machine.machine().to_string_lossy();
    for tree in [format!("{machine}/{KERNEL}"), KERNEL.to_owned()] {
        let node = Files::new();
        node.load_core("25.10", "ib_core");
        node.contain_ofed();
        node.put(&lib(HOST, "kernel/ib_core.ko"), &module("ib_core", "inbox", ""));
        assert!(lacks(&find_core(&node), "wait for its pod"));
        node.put(&format!("{OFED}/usr/src/ofa_kernel/{tree}/include/rdma/peer_mem.h"), "");
        assert_eq!(find_core(&node).unwrap(), format!("CORE_ROOT={}", node.path(OFED).display()));
    }
}
