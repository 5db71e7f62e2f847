// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Tests which entries the cache keeps, for which node, and what becomes of damaged entries.
use super::*;
use crate::files::{Directory, Files};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const NAME: &str = "nvidia_peermem";
const MODULE: &str = "nvidia_peermem.ko";

struct Case {
    cache: Cache,
    node: Files,
    built: Directory,
    _directory: Directory,
}

impl Case {
    fn new() -> Self {
        let (directory, built) = (Directory::new(), Directory::new());
        for name in [MODULE, CALLBACK, "other"] {
            fs::write(built.join(name), name).unwrap();
        }
        let cache = Cache::new(&directory.join("cache")).unwrap();
        Self { cache, node: Files::ready(), built, _directory: directory }
    }

    fn key(&self) -> Key {
        Key::new(&self.node, NAME, "2.0.0")
    }

    fn store(&self) -> Key {
        self.cache.store(&self.key(), &self.built).unwrap();
        self.key()
    }

    fn has(&self, key: &Key) -> bool {
        !self.cache.modules(key).is_empty()
    }
}

#[test]
fn stored_and_found() {
    let case = Case::new();
    assert!(!case.has(&case.key()));
    let key = case.store();
    let files = case.cache.modules(&key);
    for (file, name) in files.iter().zip([CALLBACK, MODULE]) {
        assert_eq!((file.file_name().unwrap().to_str().unwrap(), &*fs::read_to_string(file).unwrap()), (name, name));
    }
    assert_eq!(Cache::new(&case.cache.directory).unwrap().modules(&key), files);
}

#[test]
fn every_part_of_the_key() {
    for changed in ["nvidia", "ib_core", "ib_uverbs", "name", "version", "kernel", "build"] {
        let case = Case::new();
        assert!(case.has(&case.store()));
        let (mut name, mut version) = (NAME, "2.0.0");
        match changed {
            "name" => name = "nv_peer_mem",
            "version" => version = "2.0.1",
            "kernel" => drop(case.node.put("/proc/sys/kernel/osrelease", "6.8.0-61-generic\n")),
            "build" => drop(case.node.put("/sys/kernel/notes", "another build of the same release")),
            // This is another build of the same version.
            module => drop(case.node.put(&format!("/sys/module/{module}/notes/.note.gnu.build-id"), "another")),
        }
        assert!(!case.has(&Key::new(&case.node, name, version)), "{changed}");
    }
}

#[test]
fn a_module_without_a_build_id() {
    for changed in ["srcversion", "version", "coresize"] {
        let node = Files::ready();
        node.remove("/sys/module/nvidia/notes");
        let before = node.identity("nvidia");
        node.put(&format!("/sys/module/nvidia/{changed}"), "another");
        assert_ne!(node.identity("nvidia"), before);
    }
}

#[test]
fn a_damaged_entry() {
    for file in [MODULE, CALLBACK, "about.json"] {
        for is_cut in [true, false] {
            let case = Case::new();
            let key = case.store();
            let damaged = case.cache.place(&key).join(file);
            if is_cut {
                let data = fs::read(&damaged).unwrap();
                fs::write(&damaged, &data[..data.len() - 2]).unwrap();
            } else {
                fs::remove_file(&damaged).unwrap();
            }
            assert!(!case.has(&key), "{file}");
            assert_eq!(case.cache.modules(&case.store()).len(), 2);
        }
    }
}

/// The pod goes on, whatever the file about an entry contains.
#[test]
fn a_strange_entry() {
    for text in ["[]", "{}", "{\"files\": null}", "{\"files\": {\"x\": 1}}", "\u{0}"] {
        let case = Case::new();
        let key = case.store();
        fs::write(case.cache.place(&key).join("about.json"), text).unwrap();
        assert!(!case.has(&key) && !case.cache.place(&key).exists(), "{text}");
    }
}

#[test]
fn an_unfinished_entry() {
    let case = Case::new();
    fs::remove_file(case.built.join(CALLBACK)).unwrap();
    let error = case.cache.store(&case.key(), &case.built).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(!case.has(&case.key()));
    assert_eq!(case.cache.directory.read_dir().unwrap().count(), 0);
}

#[test]
fn only_the_last_entries_stay() {
    let case = Case::new();
    let mut keys = Vec::new();
    for number in 0..MOST as u64 + 2 {
        case.node.load_build("nvidia", &number.to_string(), 0, "live");
        let key = case.store();
        let place = File::open(case.cache.place(&key)).unwrap();
        place.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(number)).unwrap();
        keys.push(key);
    }
    // Entry 2 is the oldest entry, and is used here. The cache therefore removes entry 3 for the next entry.
    assert!(case.has(&keys[2]));
    case.node.load_build("nvidia", "another", 0, "live");
    case.store();
    let left: Vec<bool> = keys.iter().map(|key| case.has(key)).collect();
    assert_eq!(left, [vec![false, false, true, false], vec![true; MOST - 2]].concat());
}

#[test]
fn others_can_write() {
    for mode in [0o770, 0o707, 0o777] {
        let directory = Directory::new();
        fs::set_permissions(&*directory, fs::Permissions::from_mode(mode)).unwrap();
        assert!(Cache::new(&directory).err().unwrap().starts_with("others than root can write to /"));
    }
}

#[test]
fn a_driver() {
    let (case, files) = (Case::new(), Directory::new());
    let (symbols, header) = (files.join("symbols"), files.join("header"));
    fs::write(&symbols, "0x1\tnvidia_p2p_get_pages\tnvidia\n").unwrap();
    // A header need not be UTF-8.
    fs::write(&header, b"#define X \xe9\n").unwrap();
    assert_eq!(case.cache.driver("a"), None);
    case.cache.store_driver("a", &symbols, &header).unwrap();
    let kept = case.cache.driver("a").unwrap();
    assert_eq!(fs::read(kept.join("Module.symvers")).unwrap(), fs::read(&symbols).unwrap());
    assert_eq!(fs::read(kept.join("nv-p2p.h")).unwrap(), fs::read(&header).unwrap());
    assert_eq!(case.cache.driver("b"), None);
    fs::remove_file(kept.join("nv-p2p.h")).unwrap();
    assert_eq!(case.cache.driver("a"), None);
}
