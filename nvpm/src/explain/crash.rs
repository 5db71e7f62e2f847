// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the trace of a crash or a hang of the kernel: the function in which the kernel stopped, and the functions of
//! modules that called it.
use crate::explain::kinds::kind_of;

/// The innermost functions say most.
const MOST_FRAMES: usize = 3;

#[derive(Default)]
pub struct Crash {
    is_open: bool,
    /// The functions of the first trace, each with its module.
    frames: Vec<(String, String)>,
}

impl Crash {
    pub fn is_about(line: &str) -> bool {
        line.contains("+0x") || begins(line)
    }

    pub fn read(&mut self, line: &str) {
        self.is_open |= begins(line);
        let Some(frame) = frame(line).filter(|_| self.is_open && self.frames.len() < MOST_FRAMES) else { return };
        if !self.frames.contains(&frame) {
            self.frames.push(frame);
        }
    }

    /// Returns where the kernel stopped, as a sentence without a full stop, if the function is one of a module for
    /// GPUs, RDMA or storage.
    pub fn sentence(&self) -> Option<String> {
        let named = |(function, module): &(String, String)| format!("{function} (module {module})");
        let (first, callers) = self.frames.split_first()?;
        let callers: Vec<String> = callers.iter().map(named).collect();
        let called = if callers.is_empty() { String::new() } else { format!(", called by {}", callers.join(" and ")) };
        Some(format!("The kernel stopped in {}{called}", named(first)))
    }
}

fn begins(line: &str) -> bool {
    ["BUG:", "kernel BUG", "Oops", "RIP:", "Call Trace", "Call trace", "blocked for more than", "lockup", "LOCKUP"]
        .iter()
        .any(|word| line.contains(word))
}

/// Returns the function and the module of a line of a trace, as `nv_mem_put_pages+0x5a/0x90 [nvidia_peermem]`.
fn frame(line: &str) -> Option<(String, String)> {
    let (before, behind) = line.split_once("+0x")?;
    let function =
        before.rsplit(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != '.').next()?;
    let module = behind.split_once('[')?.1.split_once(']')?.0.split(' ').next()?;
    let kind = kind_of("module", module)?;
    (!function.is_empty() && kind != "other").then(|| (function.to_owned(), module.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_names_its_innermost_functions() {
        let mut crash = Crash::default();
        for line in [
            "do_work+0x1/0x2 [mlx5_core]",
            "BUG: kernel NULL pointer dereference, address: 0000000000000018",
            "RIP: 0010:nvidia_p2p_put_pages+0x42/0x180 [nvidia]",
            "Call Trace:",
            " ? __die+0x24/0x70",
            " nv_mem_put_pages+0x5a/0x90 [nvidia_peermem]",
            " ib_umem_release+0x9c/0x110 [ib_uverbs]",
            " mlx5_ib_dereg_mr+0x120/0x2f0 [mlx5_ib]",
        ] {
            crash.read(line);
        }
        assert_eq!(
            crash.sentence().as_deref(),
            Some(
                "The kernel stopped in nvidia_p2p_put_pages (module nvidia), called by nv_mem_put_pages (module \
                 nvidia_peermem) and ib_umem_release (module ib_uverbs)"
            )
        );
    }

    #[test]
    fn modules_of_other_parts_are_not_named() {
        let mut crash = Crash::default();
        crash.read("RIP: 0010:i915_gem_fault+0x42/0x180 [i915]");
        assert_eq!(crash.sentence(), None);
    }
}
