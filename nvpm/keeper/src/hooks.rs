// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Gives the OFED container a hook, which unloads `nv_peer_mem` before openibd unloads the RDMA core.
//!
//! The hook is needed only if the module is loaded and no pod looks after it. It lies in the directory that the OFED
//! container shares with the node, so `OPENIBD_PRE_STOP` can name it.
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{Access, access};

use crate::disk;
use crate::node::{Node, OFED};

pub const HOOK: &str = "/usr/lib/nvidia-peer-memory/ofed-container-pre-stop";
const PLACE: &str = "/run/mellanox/drivers/nv_peer_mem/pre-stop";

/// Writes the hook if the directory is there and this pod may write to it, and returns whether the hook is there.
pub fn write(node: &Node, hook: &Path) -> io::Result<bool> {
    let place = node.path(PLACE);
    let wanted = disk::of(hook, fs::read(hook))?;
    if fs::read(&place).is_ok_and(|found| found == wanted) {
        return Ok(true);
    }
    if access(node.path(OFED), Access::WRITE_OK).is_err() {
        return Ok(false);
    }
    if let Some(directory) = place.parent() {
        disk::of(directory, fs::create_dir_all(directory))?;
    }
    let new = place.with_extension("new");
    disk::of(&new, fs::write(&new, wanted))?;
    disk::of(&new, fs::set_permissions(&new, Permissions::from_mode(0o755)))?;
    disk::flush(&new)?;
    disk::of(&place, fs::rename(&new, &place))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Files;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn written_once() {
        let node = Files::new();
        let hook = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../init.d/ofed-container-pre-stop"));
        let (place, text) = (node.path(PLACE), fs::read(hook).unwrap());
        assert!(!write(&node, hook).unwrap());
        node.contain_ofed();
        assert!(write(&node, hook).unwrap());
        let about = fs::metadata(&place).unwrap();
        assert_eq!((fs::read(&place).unwrap(), about.mode() & 0o777), (text.clone(), 0o755));
        assert!(write(&node, hook).unwrap());
        assert_eq!(fs::metadata(&place).unwrap().ino(), about.ino());
        // A hook of an earlier version is replaced.
        fs::write(&place, "#!/bin/sh\n").unwrap();
        assert!(write(&node, hook).unwrap());
        assert_eq!(fs::read(&place).unwrap(), text);
        // A failure names the file.
        let said = write(&node, Path::new("/no/hook")).unwrap_err().to_string();
        assert!(said.starts_with("/no/hook: "), "{said}");
    }
}
