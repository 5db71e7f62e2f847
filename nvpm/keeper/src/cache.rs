// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Keeps built modules, so that a restart does not build again, and so that a node whose driver container has no
//! headers any more still has its module.
//!
//! Layout: `KERNEL-KEY/{NAME.ko, nv_peer_mem_callback.ko, about.json}` for each built module, and
//! `drivers/IDENTITY/{Module.symvers, nv-p2p.h}` for each driver that a module was built for.
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::checksum::checksum;
use crate::disk::{self, Scratch};
use crate::node::Node;

pub const CALLBACK: &str = "nv_peer_mem_callback.ko";
/// A node has few kernels and drivers at a time, and each entry has half a megabyte.
const MOST: usize = 16;

pub struct Cache {
    pub directory: PathBuf,
}

/// What a built module depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub kernel: String,
    pub name: String,
    /// The other parts, each with its name.
    parts: BTreeMap<String, String>,
}

impl Key {
    pub fn new(node: &Node, name: &str, version: &str) -> Self {
        let parts = [("build", node.kernel_build()), ("version", version.to_owned())];
        let parts = parts.map(|(part, text)| (part.to_owned(), text));
        let neighbours = node.module("nvidia").into_iter().chain(node.core());
        let neighbours = neighbours.map(|module| (module.name, module.identity));
        Self { kernel: node.kernel(), name: name.to_owned(), parts: neighbours.chain(parts).collect() }
    }

    /// Returns the key of a module that is signed with a certificate of this checksum.
    pub fn signed(mut self, certificate: String) -> Self {
        self.parts.insert("certificate".to_owned(), certificate);
        self
    }

    fn json(&self) -> Value {
        json!({"kernel": self.kernel, "name": self.name, "parts": self.parts})
    }

    /// Returns the names of the modules, in the order in which they are loaded.
    pub fn files(&self) -> [String; 2] {
        [CALLBACK.to_owned(), format!("{}.ko", self.name)]
    }
}

impl Cache {
    /// Opens a cache, or returns why it is not safe.
    pub fn new(directory: &Path) -> Result<Self, String> {
        let about = disk::make_private(directory).and_then(|()| disk::of(directory, directory.metadata()));
        let about = about.map_err(|error| format!("the directory of built modules cannot be used: {error}"))?;
        if about.uid() != rustix::process::geteuid().as_raw() || about.mode() & 0o022 != 0 {
            let name = directory.display();
            return Err(format!(
                "others than root can write to {name}, and root would load modules from there: chown root:root {name} && \
                 chmod 700 {name}, after a look at what is inside"
            ));
        }
        Ok(Self { directory: directory.to_owned() })
    }

    fn place(&self, key: &Key) -> PathBuf {
        let text = [key.kernel.as_str(), key.name.as_str()].into_iter();
        let text: Vec<&str> = text.chain(key.parts.iter().flat_map(|(part, text)| [&**part, &**text])).collect();
        self.directory.join(format!("{}-{}", key.kernel, checksum(text.join("\0").as_bytes())))
    }

    /// Returns the files of a built module, the callback module first; none if the cache has no such module. An entry
    /// whose files were cut, as by a full disk, is removed.
    pub fn modules(&self, key: &Key) -> Vec<PathBuf> {
        let place = self.place(key);
        match whole(&place, key) {
            Ok(true) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Ok(false) | Err(_) => {
                self.drop(key);
                return Vec::new();
            }
        }
        // The directory may be read-only by now, and its modules are still good.
        let _ = File::open(&place).and_then(|directory| directory.set_modified(SystemTime::now()));
        key.files().map(|file| place.join(file)).into()
    }

    /// Stores the modules of the directory BUILT. An entry appears at once and complete.
    pub fn store(&self, key: &Key, built: &Path) -> io::Result<()> {
        let new = Scratch::new(&self.directory.join(".new"))?;
        let entry = new.join("entry");
        disk::make_private(&entry)?;
        let mut sums = BTreeMap::new();
        for file in key.files() {
            let to = entry.join(&file);
            disk::copy(&built.join(&file), &to)?;
            disk::flush(&to)?;
            sums.insert(file, sum_of(&to)?);
        }
        let about = json!({"files": sums, "key": key.json()});
        disk::write(&entry.join("about.json"), format!("{about:#}\n").as_bytes())?;
        self.drop(key);
        let place = self.place(key);
        disk::of(&place, fs::rename(&entry, &place))?;
        self.prune();
        Ok(())
    }

    fn drop(&self, key: &Key) {
        disk::remove(&self.place(key));
    }

    /// Removes the entries that were not used for the longest time.
    fn prune(&self) {
        for directory in [&self.directory, &self.directory.join("drivers")] {
            let mut entries: Vec<_> =
                directory.read_dir().into_iter().flatten().flatten().filter_map(|entry| used(&entry)).collect();
            entries.sort();
            for (_, entry) in entries.iter().rev().skip(MOST) {
                disk::remove(entry);
            }
        }
    }

    /// Returns the directory with the symbols and the header of a driver; None if no module was built for that driver
    /// here.
    pub fn driver(&self, identity: &str) -> Option<PathBuf> {
        let place = self.directory.join("drivers").join(identity);
        ["Module.symvers", "nv-p2p.h"].into_iter().all(|name| place.join(name).exists()).then_some(place)
    }

    pub fn store_driver(&self, identity: &str, symbols: &Path, header: &Path) -> io::Result<()> {
        let place = self.directory.join("drivers").join(identity);
        disk::make_private(&place)?;
        for (name, from) in [("nv-p2p.h", header), ("Module.symvers", symbols)] {
            disk::write(&place.join(name), &disk::of(from, fs::read(from))?)?;
        }
        Ok(())
    }
}

/// Returns whether each file of an entry has its checksum.
fn whole(place: &Path, key: &Key) -> io::Result<bool> {
    let about: Value = serde_json::from_slice(&fs::read(place.join("about.json"))?).unwrap_or_default();
    for file in key.files() {
        let expected = about.get("files").and_then(|files| files.get(&file)).and_then(Value::as_str);
        let Some(expected) = expected else { return Ok(false) };
        if expected != sum_of(&place.join(&file))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns when an entry of the cache was last used.
fn used(entry: &fs::DirEntry) -> Option<(SystemTime, PathBuf)> {
    let name = entry.file_name();
    let about = entry.metadata().ok()?;
    let counts = about.is_dir() && name != "drivers" && !name.as_encoded_bytes().starts_with(b".");
    counts.then(|| Some((about.modified().ok()?, entry.path())))?
}

fn sum_of(file: &Path) -> io::Result<String> {
    Ok(checksum(&disk::of(file, fs::read(file))?))
}

#[cfg(test)]
mod tests;
