// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The program nvpm-bin.
#[allow(dead_code)]
mod explain;
#[allow(dead_code)]
mod python;

fn main() {}
