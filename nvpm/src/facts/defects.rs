// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Versions of NVIDIA's driver with a known defect that programs with GPU memory can meet. For a new defect, add a row
//! with the source of the information, and a machine in nvpm/tests/machines.
use crate::facts::driver::is_proprietary;
use crate::facts::fact::Verdict;
use crate::read::machine::Machine;
use crate::read::ways;

/// A defect of the driver's versions from `first` on. The version `repaired`, and later versions, do not have the
/// defect.
pub struct Defect {
    pub name: &'static str,
    first: &'static [u64],
    repaired: &'static [u64],
    /// Returns the verdict on this machine. None if this machine cannot meet the defect.
    pub meets: fn(&Machine) -> Option<Verdict>,
    pub effect: &'static str,
    pub advice: &'static str,
    pub source: &'static str,
}

impl Defect {
    pub fn is_in(&self, version: &[u64]) -> bool {
        self.first <= version && version < self.repaired
    }
}

/// Judges the double free, which only a registration that can be revoked can cause. With `persistent_api_support=0`,
/// all registrations can be revoked. Otherwise only the registrations of MIG and vGPU can be revoked.
// The row of each defect has such a function.
#[allow(clippy::unnecessary_wraps)]
fn loses_revocable(machine: &Machine) -> Option<Verdict> {
    Some(if ways::revokes(machine) { Verdict::Bad } else { Verdict::Warn })
}

/// Returns a verdict if HMM is on. With the open driver, HMM is on unless a parameter of `nvidia_uvm` turns it off.
fn has_hmm(machine: &Machine) -> Option<Verdict> {
    let is_off = machine.text("/sys/module/nvidia_uvm/parameters/uvm_disable_hmm") == "Y";
    (!is_proprietary(machine) && !is_off).then_some(Verdict::Bad)
}

fn is_open(machine: &Machine) -> Option<Verdict> {
    (!is_proprietary(machine)).then_some(Verdict::Warn)
}

const DOUBLE_FREE: Defect = Defect {
    name: "double_free",
    first: &[545],
    repaired: &[545, 29],
    meets: loses_revocable,
    effect: "frees memory of the kernel twice if a program frees GPU memory during a revocable registration (of MIG \
             and vGPU; with persistent_api_support=0 of all)",
    advice: "Install driver 535.129.03 or later (of 545: 545.29.02); until then keep persistent_api_support=1.",
    source: "docs/support.md",
};

pub const DEFECTS: &[Defect] = &[
    // The version 535.43.24 is a beta for developers. It got the repair before 535.129 did (docs/support.md), so the
    // versions 535 have two rows.
    Defect { first: &[535], repaired: &[535, 43, 24], ..DOUBLE_FREE },
    Defect { first: &[535, 44], repaired: &[535, 129], ..DOUBLE_FREE },
    DOUBLE_FREE,
    Defect {
        name: "crash_at_exit",
        first: &[595],
        repaired: &[596],
        meets: has_hmm,
        effect: "crashes the kernel when a process that used the GPU ends (uvm_hmm_unregister_gpu), or hangs every \
                 later call of nvidia-smi",
        advice: "Install driver 610 or later, or one of 590 and older; until then: echo 'options nvidia_uvm \
                 uvm_disable_hmm=1' >/etc/modprobe.d/nvidia-uvm-hmm.conf, and reboot.",
        source: "NVIDIA/open-gpu-kernel-modules#1082, #1333",
    },
    Defect {
        name: "crash_on_proc_mem",
        first: &[595, 58],
        repaired: &[595, 58, 4],
        meets: is_open,
        effect: "crashes the kernel when a debugger reads GPU mappings by /proc/PID/mem (nvidia_vma_access)",
        advice: "Use no debugger on processes with GPU memory, or install another version of the driver.",
        source: "NVIDIA/open-gpu-kernel-modules#1107",
    },
];
