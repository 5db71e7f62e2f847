// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests of the ground that the module stands on: the kernel is as the module takes it to be.

use super::*;
use crate::kunit::Threads;
use kernel::bindings;

/// Of some threads, how many have come to wait, and how many went on; and whether they may.
#[derive(Default)]
struct Waiters {
    waiting: u32,
    may_go: bool,
    gone: u32,
}

impl Monitor<(), Waiters> {
    /// Waits for `may_go`.
    fn stand(&self) {
        let mut waiters = self.lock();
        waiters.waiting += 1;
        self.notify(waiters);
        let mut waiters = self.lock();
        while !waiters.may_go {
            self.wait(&mut waiters);
        }
        waiters.gone += 1;
    }
}

#[kernel::macros::kunit_tests(nv_peer_mem_rt)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_are_the_kernels() {
        assert_eq!(Errno::IO.number() as u32, bindings::EIO);
        assert_eq!(Errno::NOMEM.number() as u32, bindings::ENOMEM);
        assert_eq!(Errno::FAULT.number() as u32, bindings::EFAULT);
        assert_eq!(Errno::INVAL.number() as u32, bindings::EINVAL);
        assert_eq!(Errno::OPNOTSUPP.number() as u32, bindings::EOPNOTSUPP);
    }

    #[test]
    fn numbers_of_the_kernels_own_stay_inside() {
        let outcome = |number: u32| Errno::check(-(number as i32));
        assert_eq!(outcome(bindings::ENOTSUPP), Err(Errno::OPNOTSUPP));
        assert_eq!(outcome(bindings::ERESTARTSYS), Err(Errno::IO));
        assert_eq!(outcome(bindings::EPROBE_DEFER), Err(Errno::IO));
    }

    #[test]
    fn a_notification_wakes_every_waiter() -> Result<(), Errno> {
        const THREADS: u32 = 3;
        let monitor = Monitor::new((), Waiters::default())?;
        let threads = Threads::new()?;
        for _ in 0..THREADS {
            let monitor = monitor.clone();
            threads.spawn(move || monitor.stand())?;
        }
        // Whoever counts itself under the lock is asleep when the lock is free.
        let mut waiters = monitor.lock();
        while waiters.waiting < THREADS {
            monitor.wait(&mut waiters);
        }
        waiters.may_go = true;
        monitor.notify(waiters);
        drop(threads);
        let gone = monitor.lock().gone;
        assert_eq!(gone, THREADS);
        Ok(())
    }

    #[test]
    fn complaints_end() {
        // However slow the machine is, it asks more often than one may complain.
        let ended = (0..1000).any(|_| !may_complain());
        // SAFETY: Takes no arguments.
        unsafe { abi::nvpm_kunit_complain_again() };
        assert!(ended);
        assert!(may_complain());
    }
}
