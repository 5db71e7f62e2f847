// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Makes Rust declarations of libibverbs and of the simulated GPU driver's
//! ioctls with the `bindgen` program. `LAB_GPU_H` names the driver's header.

use std::env;
use std::process::Command;

const OPTIONS: &str = "--no-doc-comments --no-prepend-enum-name --rust-target 1.77 \
    --with-derive-default --rustified-enum ibv_wc_status --allowlist-var LAB_GPU_.* \
    --allowlist-type lab_gpu_.*|ibv_(access_flags|port_attr|qp_attr_mask|send_flags|send_wr|wc) \
    --allowlist-function ibv_((get|free)_device_list|open_device|query_(gid|port)|alloc_pd|reg_mr_iova2\
    |dereg_mr|(create|destroy)_cq|(create|modify|destroy)_qp)";

fn main() {
    let header =
        env::var("LAB_GPU_H").unwrap_or_else(|_| "../../doubles/driver/lab_gpu.h".to_owned());
    let out = env::var("OUT_DIR").expect("cargo says where") + "/sys.rs";
    println!("cargo::rerun-if-env-changed=LAB_GPU_H");
    println!("cargo::rerun-if-changed={header}");
    println!("cargo::rustc-link-lib=ibverbs");
    let status = Command::new("bindgen")
        .args([&header, "--output", &out])
        .args(OPTIONS.split_whitespace())
        .args(["--", "-include", "infiniband/verbs.h"])
        .status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "bindgen, which Debian has a package of, ended with {status:?}"
    );
}
