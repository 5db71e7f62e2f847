// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Makes Rust declarations of libibverbs and of the simulated GPU driver's
//! ioctls with the `bindgen` program, and compiles the C functions that it
//! writes for the `static inline` half of libibverbs.
//!
//! Environment: `LAB_GPU_H` names the driver's header, `BINDGEN`, `CC` and `AR`
//! the programs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};

const HEADER: &str = "src/wrapper.h";

/// Relative to this crate.
const DEFAULT_LAB_GPU_H: &str = "../../lab/nvidia/lab_gpu.h";

const FUNCTIONS: &[&str] = &[
    "ibv_get_device_list",
    "ibv_free_device_list",
    "ibv_get_device_name",
    "ibv_open_device",
    "ibv_close_device",
    // What the macro ibv_query_port() stands for: it passes the size of the
    // caller's structure, which the exported symbol of that name does not.
    "___ibv_query_port",
    "_ibv_query_gid_ex",
    "ibv_alloc_pd",
    "ibv_dealloc_pd",
    "ibv_reg_mr",
    "ibv_reg_mr_iova2",
    "ibv_dereg_mr",
    "ibv_create_cq",
    "ibv_destroy_cq",
    "ibv_poll_cq",
    "ibv_create_qp",
    "ibv_modify_qp",
    "ibv_destroy_qp",
    "ibv_post_send",
    "ibv_post_recv",
    "mmap",
    "munmap",
    "ioctl",
    "pread",
    "pwrite",
    "memfd_create",
    "fork",
    "waitpid",
    "kill",
    "_exit",
    "prctl",
    "sendmsg",
    "recvmsg",
];

const TYPES: &[&str] = &[
    "ibv_access_flags",
    "ibv_gid_type",
    "ibv_qp_attr_mask",
    "ibv_send_flags",
    "ibv_wc_status",
    "lab_gpu_.*",
];

const CONSTANTS: &[&str] = &[
    "gpuverbs_.*",
    "LAB_GPU_.*",
    "E[A-Z0-9]+",
    "IBV_LINK_LAYER_.*",
    "PROT_(NONE|READ|WRITE)",
    "MAP_(SHARED|PRIVATE|ANONYMOUS|FIXED|NORESERVE)",
    "PR_SET_(CHILD_SUBREAPER|PDEATHSIG)",
    "SIGKILL",
    "WNOHANG",
    "SOL_SOCKET",
];

fn main() {
    for name in ["LAB_GPU_H", "BINDGEN", "CC", "AR"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let crate_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(variable("OUT_DIR"));

    let lab_gpu_h = crate_dir
        .join(env::var_os("LAB_GPU_H").unwrap_or_else(|| DEFAULT_LAB_GPU_H.into()))
        .canonicalize()
        .unwrap_or_else(|error| {
            fail(&format!(
                "the GPU driver's header lab_gpu.h cannot be found ({error}): say where it is with LAB_GPU_H=FILE"
            ))
        });
    println!("cargo::rerun-if-changed={HEADER}");
    println!("cargo::rerun-if-changed={}", lab_gpu_h.display());
    let include = format!("-I{}", lab_gpu_h.parent().unwrap_or(&crate_dir).display());
    let header = crate_dir.join(HEADER);

    let inline_c = out.join("inline.c");
    bindings(&header, &include, &out.join("sys.rs"), &inline_c);
    inline_functions(&inline_c, &include, &out);

    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=static=gpuverbs_inline");
    println!("cargo::rustc-link-lib=ibverbs");
}

/// Rust declarations, and a C file with what they need of inline functions.
fn bindings(header: &Path, include: &str, declarations: &Path, inline_c: &Path) {
    let mut bindgen = Command::new(program("BINDGEN", &["bindgen"]));
    bindgen
        .arg(header)
        .arg("--output")
        .arg(declarations)
        .args(["--experimental", "--wrap-static-fns"])
        .arg("--wrap-static-fns-path")
        .arg(inline_c)
        .args(["--no-doc-comments", "--rust-target", "1.77"]);
    for name in FUNCTIONS {
        bindgen.args(["--allowlist-function", name]);
    }
    for name in TYPES {
        bindgen.args(["--allowlist-type", name]);
    }
    for name in CONSTANTS {
        bindgen.args(["--allowlist-var", name]);
    }
    bindgen.args(["--", include]);
    run(bindgen);
}

fn inline_functions(inline_c: &Path, include: &str, out: &Path) {
    let object = out.join("inline.o");
    let mut compiler = Command::new(program("CC", &["gcc-14", "gcc", "cc"]));
    compiler
        .args(["-O2", "-Wall", "-fPIC", "-c", include, "-o"])
        .arg(&object)
        .arg(inline_c);
    run(compiler);

    // Made anew: `ar` would keep what an earlier build put there.
    let archive = out.join("libgpuverbs_inline.a");
    let _ = std::fs::remove_file(&archive);
    let mut ar = Command::new(program("AR", &["ar", "gcc-ar-14"]));
    ar.arg("crs").arg(&archive).arg(&object);
    run(ar);
}

/// The program that the environment names, or else the first of `usual` that
/// can be started.
fn program(name: &str, usual: &[&str]) -> String {
    if let Ok(given) = env::var(name) {
        return given;
    }
    let starts = |program: &&&str| {
        Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    };
    match usual.iter().find(starts) {
        Some(found) => (*found).to_owned(),
        None => fail(&format!(
            "none of {usual:?} is installed: install one or set {name}=PROGRAM"
        )),
    }
}

fn run(mut command: Command) {
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("{command:?} failed: {status}")),
        Err(error) => fail(&format!("{command:?} cannot be started: {error}")),
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("{name} is not set: start this with cargo")))
}

fn fail(message: &str) -> ! {
    eprintln!("gpuverbs: {message}");
    exit(1)
}
