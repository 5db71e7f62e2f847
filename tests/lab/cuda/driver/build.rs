// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Makes Rust declarations of cuda.h and of the simulated GPU driver's ioctls
//! with the `bindgen` program, and gives the library its name.
//!
//! Environment: `LAB_GPU_H` names the driver's header, `CUDA_INCLUDE` the
//! directory of cuda.h.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src/wrapper.h");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let lab_gpu_h = input("LAB_GPU_H", "../../nvidia/lab_gpu.h");
    let include = input("CUDA_INCLUDE", "../include");
    let status = Command::new("bindgen")
        .arg("src/wrapper.h")
        .arg("--output")
        .arg(out.join("sys.rs"))
        .args(["--no-prepend-enum-name", "--no-doc-comments"])
        .args(["--no-layout-tests", "--rust-target", "1.77"])
        .args(["--blocklist-function", "cu[A-Z].*"])
        .args(["--allowlist-type", "CU.*|cuuint.*|lab_gpu_.*"])
        .args(["--allowlist-var", "CU.*|LAB_GPU_.*|E[A-Z]+|PROT_NONE"])
        .args(["--allowlist-var", "MAP_[A-Z_]+|LAB_CUDA_.*"])
        .args(["--allowlist-function", "mmap|munmap|ioctl|getpid"])
        .arg("--")
        .arg(flag("-I", lab_gpu_h.parent().unwrap_or(Path::new("/"))))
        .arg(flag("-I", &include))
        .status()
        .expect("bindgen can be started");
    assert!(status.success(), "bindgen failed: {status}");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
}

fn flag(name: &str, path: &Path) -> String {
    format!("{name}{}", path.display())
}

fn input(variable: &str, usual: &str) -> PathBuf {
    println!("cargo::rerun-if-env-changed={variable}");
    let path = PathBuf::from(env::var_os(variable).unwrap_or_else(|| usual.into()));
    println!("cargo::rerun-if-changed={}", path.display());
    path.canonicalize()
        .unwrap_or_else(|error| panic!("{}: {error}: set {variable}", path.display()))
}
