// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Checks the results that programs receive, and the module's lists and counters. The models check
//! the contracts between the module and its neighbours.

use super::{
    act::{Who, Wish},
    expect::{self, cause, Expected, Verdict, EDQUOT, EFAULT, EINVAL, EIO, ENOMEM, EOPNOTSUPP},
    overlap::Overlap,
    stage::{Held, Loaded, Stage},
};
use crate::{
    abi::{self, device, nvpm_region},
    c::{self, counter, Device},
    peer_client::Kind,
    rdma,
    world::world,
};

/// The errors that a program may receive because of a fault that happens once.
const FAILURES: [i32; 4] = [ENOMEM, EIO, EINVAL, EOPNOTSUPP];

/// The state before a registration.
pub(super) struct Before {
    expected: Option<Expected>,
    mapped: u32,
    longest: u64,
    registrations: u64,
    failures: u64,
}

impl Before {
    pub(super) fn new(expected: Option<Expected>) -> Self {
        Self {
            expected,
            mapped: world().driver.mapped(),
            longest: world().driver.longest(),
            registrations: counter(abi::NVPM_COUNT_REGISTRATIONS),
            failures: failures(expected),
        }
    }

    /// Tells whether the known state determines the result of the registration.
    pub(super) fn knows_the_result(&self) -> bool {
        self.expected.is_some()
    }

    /// Returns the verdict that the module learns about the pair, if it learns one.
    pub(super) fn learns(&self) -> Option<Verdict> {
        self.expected?.learns
    }

    /// Checks that the program receives the right result. If only one client could claim the
    /// memory, returns this client.
    pub(super) fn check(
        &self,
        result: Result<(), i32>,
        after: Option<Expected>,
        wish: &Wish,
        who: &Who,
        overlap: &Overlap,
    ) -> Option<Kind> {
        if overlap.is_alone() {
            let longest = world().driver.longest();
            let asked =
                longest == self.longest || expect::may_be_asked_for(longest, who.process, wish);
            assert!(asked, "the driver was asked for {longest:#x} bytes");
        }
        let (before, after) = (self.expected?, after?);
        if overlap.is_alone() && !overlap.something_fails() {
            self.check_alone(result, before);
            return before.result.ok();
        }
        let expected = [before, after].map(|one| one.result.map(|_| ()));
        // EFAULT is a right result if the registered memory was freed. EDQUOT is a right result if
        // memory of the user's orphans was freed.
        let freed = overlap.ends_memory() && matches!(result, Err(EFAULT | EDQUOT));
        // The oldest core (G2) reports EINVAL if the memory was freed.
        let not_active =
            world().rdma.kind == rdma::Kind::G2 && overlap.ends_memory() && result == Err(EINVAL);
        // If the module could not pin the page with which it asks the driver, a registration may
        // succeed although the driver would refuse the pair.
        let failed = overlap.something_fails()
            && match result {
                Ok(()) => !expected.contains(&Err(EFAULT)),
                Err(errno) => FAILURES.contains(&errno),
            };
        // EIO is expected if two objects have the memory. Another result is also right, if one of
        // the objects was freed between two requests to pin.
        let doubtful = overlap.ends_memory() && expected.contains(&Err(EIO));
        assert!(
            overlap.changes()
                || doubtful
                || expected.contains(&result)
                || freed
                || not_active
                || failed,
            "a program got {result:?}, and should get one of {expected:?}"
        );
        None
    }

    fn check_alone(&self, result: Result<(), i32>, expected: Expected) {
        assert_eq!(
            result,
            expected.result.map(|_| ()),
            "a program got the left result, and should get {expected:?}"
        );
        let mapped = world().driver.mapped() - self.mapped;
        assert_eq!(
            mapped, expected.maps,
            "the driver has mapped more often or less often than expected"
        );
        let succeeded = expected.result.is_ok() || !expected.counts && mapped_for_a_device(result);
        let registrations = counter(abi::NVPM_COUNT_REGISTRATIONS) - self.registrations;
        assert_eq!(
            registrations,
            u64::from(succeeded),
            "the counter of registrations is wrong"
        );
        let failed = failures(Some(expected)) - self.failures;
        assert_eq!(
            failed,
            u64::from(expected.counts),
            "the counter of failures is wrong"
        );
    }
}

/// Tells whether the device failed after all memory was mapped.
fn mapped_for_a_device(result: Result<(), i32>) -> bool {
    result == Err(EINVAL)
}

/// Returns how many failures of the expected kind were counted.
fn failures(expected: Option<Expected>) -> u64 {
    let errno = expected.and_then(|one| one.result.err());
    errno.map_or(0, |errno| counter(cause(errno)))
}

/// Checks the result of loading the module.
pub(super) fn loading(
    error: Option<i32>,
    persistent: bool,
    beside_peermem: bool,
    overlap: &Overlap,
) {
    match error {
        Some(errno) if overlap.something_fails() => {
            // These errors come from nv_peer_mem_callback, from a client, from a lack of memory,
            // and from a loaded nvidia_peermem.
            let known = [-93, -22, -12, -16];
            assert!(
                known.contains(&errno),
                "loading the module failed with an unexpected error: {errno}"
            );
        }
        error => assert_eq!(error, beside_peermem.then_some(-16), "the error of loading"),
    }
    let linux = &world().linux;
    assert_eq!(
        linux.served.get(),
        error.is_none(),
        "callbacks are passed on"
    );
    let names: &[_] = match (error, persistent) {
        (Some(_), _) => &[],
        (None, true) => &["nv_mem", "nv_mem_revocable", "nv_mem_fixed"],
        (None, false) => &["nv_mem", "nv_mem_nc"],
    };
    assert_eq!(world().rdma.names(), names, "the registered clients");
    let shown = linux.files.names().map(|names| {
        let names = names.into_iter().flatten();
        names.map(|name| name.to_str().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(
        shown.unwrap_or_default(),
        names,
        "the names of clients in files"
    );
}

/// Checks that the module has given its references to removed devices back. The caller must have
/// read the list of pairs before, because reading the list makes the module forget removed devices.
pub(super) fn nothing_refers_to(gone: &[*mut device]) {
    for &device in gone {
        // SAFETY: Devices exist until the end of the world.
        let references = unsafe { (*device.cast::<Device>()).references.get() };
        assert_eq!(references, 0, "a device that was removed is kept");
    }
}

/// Checks lists and counters. May be called only while no act is in progress.
pub(super) fn quiet(stage: &Stage) {
    let held = stage.held.borrow();
    let kept = held
        .iter()
        .filter(|one| matches!(one.kind, Some(Kind::Persistent | Kind::CatchAll)));
    assert!(
        world().driver.pinned_until_put() >= kept.count(),
        "a persistent pin is gone that was not unpinned"
    );
    if !matches!(*stage.loaded.borrow(), Loaded::Yes(..)) {
        return;
    }
    let (left, mut lines): (Vec<_>, Vec<_>) = c::listed()
        .into_iter()
        .partition(|line| state(line) == abi::NVPM_REGION_ORPHANED);
    let mapped = lines
        .iter()
        .filter(|line| state(line) == abi::NVPM_REGION_MAPPED);
    let bytes = mapped
        .clone()
        .filter_map(|line| expect::pages(line.address, line.len));
    assert_eq!(
        counter(abi::NVPM_COUNT_REACHABLE_REGIONS),
        mapped.count() as u64
    );
    assert_eq!(
        counter(abi::NVPM_COUNT_BYTES),
        bytes.map(|(_, len)| len).sum()
    );
    assert_eq!(counter(abi::NVPM_COUNT_ORPHANS), left.len() as u64);
    if stage.knows_orphans.get() {
        let orphans = stage.orphans.borrow();
        let there = orphans.iter().filter(|one| one.is_left()).count();
        assert_eq!(there, left.len(), "the number of orphans in the list");
    }
    // Registrations whose state is known are matched with lines before the others, because each of
    // them fits fewer lines.
    let (known, unknown): (Vec<_>, Vec<_>) =
        held.iter().partition(|one| one.is_revoked().is_some());
    for one in known.iter().chain(&unknown) {
        let line = lines.iter().position(|line| is_of(line, one));
        let may_lack = world().rdma.kind == rdma::Kind::G2 && one.is_revoked() != Some(false);
        match line {
            Some(at) => drop(lines.remove(at)),
            None => assert!(
                may_lack,
                "a registration is not listed, or with wrong values: {}",
                one.wish
            ),
        }
    }
    assert_eq!(lines.len(), 0, "something is listed that is not registered");
}

fn state(line: &nvpm_region) -> abi::nvpm_region_state {
    line.state.into()
}

/// Tells whether a line of the list can be the line of a registration.
fn is_of(line: &nvpm_region, held: &Held) -> bool {
    let asked = (line.address, line.len) == (held.wish.address, held.wish.len);
    let process = &line.process;
    let who = &held.who;
    let its = (process.tgid, process.born, process.uid) == (who.process, who.born, who.uid);
    let revoked = state(line) == abi::NVPM_REGION_REVOKED;
    let told = held
        .is_revoked()
        .is_none_or(|is_revoked| is_revoked == revoked);
    let client = held.kind.is_none_or(|kind| line.client == kind as u8);
    let device = (line.domain, line.devfn) == (0, 8);
    asked && its && told && client && device && (revoked || state(line) == abi::NVPM_REGION_MAPPED)
}
