// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds the files that a build needs: the kernel's headers, the driver that is loaded, and the RDMA core that is
//! loaded. Each can be the node's or a container's.
use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::Cache;
use crate::node::{DRIVER, HOST, Node, OFED};
use crate::program::printed;

/// A part is missing. The text says which one, and where it was searched.
#[derive(Debug)]
pub struct Missing(pub String);

/// The root directory with the headers and their directory, and make's settings for the driver and for the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    pub headers_root: PathBuf,
    pub headers: PathBuf,
    pub driver: String,
    pub core: String,
}

/// Returns a field of a module's file.
type Field<'a> = &'a dyn Fn(&Path, &str) -> String;

fn modinfo(file: &Path, name: &str) -> String {
    printed("modinfo", &["-F".as_ref(), name.as_ref(), file.as_os_str()])
}

pub fn find(node: &Node, cache: &Cache) -> Result<Places, Missing> {
    let (headers_root, headers) = headers(node)?;
    Ok(Places { headers_root, headers, driver: driver(node, cache, &modinfo)?, core: core(node, &modinfo)? })
}

/// Returns the root below which the kernel's headers are, and their directory. Distributions name this directory in two
/// ways, and /lib/modules has a link to it, which may be absolute.
fn headers(node: &Node) -> Result<(PathBuf, PathBuf), Missing> {
    let kernel = node.kernel();
    let roots = [DRIVER, HOST].map(|root| node.path(root));
    for root in &roots {
        for name in [format!("usr/src/linux-headers-{kernel}"), format!("usr/src/kernels/{kernel}")] {
            let there = root.join(name);
            if there.join(".config").exists() {
                return Ok((root.clone(), there));
            }
        }
        let modules = root.join("lib/modules").join(&kernel);
        if let Ok(target) = fs::read_link(modules.join("build")) {
            let there = target.strip_prefix("/").map_or_else(|_| modules.join(&target), |below| root.join(below));
            if let (true, Ok(there)) = (there.join(".config").exists(), there.canonicalize()) {
                return Ok((root.clone(), there));
            }
        }
    }
    let searched = roots.map(|root| root.join("usr/src").display().to_string()).join(" or ");
    Err(Missing(format!(
        "no headers of kernel {kernel} in {searched}: install the package of the headers on the node (linux-headers or \
         kernel-devel). The driver's container has them only after it has built the driver itself"
    )))
}

/// Returns make's setting for the loaded driver. After the driver container's fast path, the driver's module is
/// nowhere, but an earlier build has kept its symbols.
fn driver(node: &Node, cache: &Cache, field: Field) -> Result<String, Missing> {
    let Some(driver) = node.module("nvidia") else {
        return Err(Missing("NVIDIA's driver was unloaded a moment ago".to_owned()));
    };
    let mut others = Vec::new();
    for root in [DRIVER, HOST] {
        for file in modules_below(&modules(node, root), "nvidia") {
            if field(&file, "name") != "nvidia" {
                continue;
            }
            if is_loaded(node, &file, "nvidia", true, field) {
                return Ok(format!("DRIVER_ROOT={}", node.path(root).display()));
            }
            others.push(format!("{root} has version {}", field(&file, "version")));
        }
    }
    if let Some(kept) = cache.driver(&driver.identity) {
        return Ok(format!("NV_SRC={}", kept.display()));
    }
    let found = if others.is_empty() { String::new() } else { format!(" ({})", others.join("; ")) };
    Err(Missing(format!(
        "the file of the loaded driver {} is neither below {DRIVER} nor on the node{found}. The driver's container lacks it \
         after a restart that kept the driver loaded (fast path): set FORCE_REINSTALL=true in driver.manager.env once, or \
         reboot the node",
        driver.version
    )))
}

/// Returns make's setting for the loaded RDMA core. The OFED container shows only the sources of its core, in a
/// directory for the kernel.
fn core(node: &Node, field: Field) -> Result<String, Missing> {
    let (kernel, is_contained) = (node.kernel(), node.ofed_contained());
    let trees = [format!("{}/{kernel}", rustix::system::uname().machine().to_string_lossy()), kernel];
    let header = |tree| format!("{OFED}/usr/src/ofa_kernel/{tree}/include/rdma/peer_mem.h");
    if is_contained && trees.iter().any(|tree| node.exists(&header(tree))) {
        return Ok(format!("CORE_ROOT={}", node.path(OFED).display()));
    }
    let exporter = node.peer_memory_in();
    let mut others = Vec::new();
    for file in modules_below(&modules(node, HOST), &exporter) {
        // The core of a container is not below the node's root, so a file there must be known to be it.
        if field(&file, "name") == exporter && is_loaded(node, &file, &exporter, !is_contained, field) {
            return Ok(format!("CORE_ROOT={}", node.path(HOST).display()));
        }
        others.push(file);
    }
    let found = others.first().map(|file| format!(", which has another one ({})", file.display()));
    Err(Missing(format!(
        "the files of the loaded RDMA core are neither in {OFED}/usr/src/ofa_kernel nor on the node{}. The OFED container \
         shows its files while it runs: wait for its pod",
        found.unwrap_or_default()
    )))
}

/// Returns the directory of the modules of the running kernel.
fn modules(node: &Node, root: &str) -> PathBuf {
    node.path(root).join("lib/modules").join(node.kernel())
}

/// Returns the files of modules whose names begin with NAME, because Debian's driver is called nvidia-current. A file
/// in `updates` is more likely to be the loaded one.
fn modules_below(directory: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            let (path, file) = (entry.path(), entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(path);
            } else if !name.is_empty()
                && file.to_string_lossy().strip_prefix(name).is_some_and(|rest| rest.contains(".ko"))
                && path.is_file()
            {
                found.push(path);
            }
        }
    }
    found.sort_by_cached_key(|file| (!file.iter().any(|part| part == "updates"), file.clone()));
    found
}

/// Returns whether the loaded module NAME comes from FILE. Checksums of the sources tell it; a module without one
/// counts as loaded if its version is the same. Some kernels give their modules neither, and UNKNOWN is returned for
/// these.
fn is_loaded(node: &Node, file: &Path, name: &str, unknown: bool, field: Field) -> bool {
    for checked in ["srcversion", "version"] {
        let (loaded, here) = (node.text(&format!("/sys/module/{name}/{checked}")), field(file, checked));
        if !loaded.is_empty() && !here.is_empty() {
            return loaded == here;
        }
    }
    unknown
}

#[cfg(test)]
mod tests;
