// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Makes Rust declarations of libibverbs and of the simulated GPU driver's
//! ioctls with the `bindgen` program. `LAB_GPU_H` names the driver's header.

use std::env;
use std::path::Path;
use std::process::Command;

const ALLOWED: &[[&str; 2]] = &[
    [
        "--allowlist-function",
        "ibv_((get|free)_device_list|get_device_name|(open|close)_device|query_port|(de)?alloc_pd\
         |reg_mr|reg_mr_iova2|dereg_mr|(create|destroy)_cq|(create|modify|destroy)_qp)|_ibv_query_gid_ex",
    ],
    [
        "--allowlist-type",
        "lab_gpu_.*|ibv_(access_flags|port_attr|gid_type|qp_attr_mask|send_flags|send_wr|wc)",
    ],
    ["--allowlist-var", "LAB_GPU_.*|IBV_LINK_LAYER_ETHERNET"],
];

fn main() {
    let header = env::var("LAB_GPU_H").unwrap_or_else(|_| "../../lab/nvidia/lab_gpu.h".to_owned());
    let out = env::var("OUT_DIR").expect("cargo says where") + "/sys.rs";
    println!("cargo::rerun-if-env-changed=LAB_GPU_H");
    println!("cargo::rerun-if-changed={header}");
    println!("cargo::rerun-if-changed=src/wrapper.h");
    println!("cargo::rustc-link-lib=ibverbs");
    let include = Path::new(&header).parent().expect("a file is in a directory");
    let status = Command::new("bindgen")
        .args(["src/wrapper.h", "--output", &out])
        .args(["--no-doc-comments", "--no-prepend-enum-name", "--rust-target", "1.77"])
        .args(ALLOWED.iter().flatten())
        .arg("--")
        .arg(format!("-I{}", include.display()))
        .status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "bindgen, which Debian has a package of, ended with {status:?}"
    );
}
