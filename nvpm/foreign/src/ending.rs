// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Ends this process.
use std::ffi::{CString, c_int};
use std::mem::zeroed;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};

/// The signals by which users and systems end a program.
const SIGNALS: [c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

/// Ends this process without the exit handlers of foreign libraries, which may hang or crash. Output that is buffered
/// is lost.
pub fn leave(code: u8) -> ! {
    // SAFETY: The function takes any number, and needs nothing of this process.
    unsafe { libc::_exit(code.into()) }
}

/// An incomplete file, and a message about the file.
struct Unfinished {
    path: CString,
    text: String,
}

/// The file that a signal removes; null if there is none. The object is never freed, because a signal may come at any
/// time.
static UNFINISHED: AtomicPtr<Unfinished> = AtomicPtr::new(null_mut());

/// Keeps a file from staying incomplete. As long as this object exists, a signal that ends this process removes the
/// file.
pub struct Removal(());

impl Removal {
    /// Prepares the removal of a file. TEXT is then written to the standard error. A signal that this process ignores,
    /// as below nohup, stays ignored.
    pub fn of(path: &Path, text: &str) -> Self {
        // A path that the kernel has taken has no zero.
        let path = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
        let unfinished = Unfinished { path, text: format!("{text}\n") };
        UNFINISHED.store(Box::into_raw(Box::new(unfinished)), Ordering::Release);
        SIGNALS.into_iter().filter(|signal| ends_process(*signal)).for_each(catch);
        Self(())
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        UNFINISHED.store(null_mut(), Ordering::Release);
    }
}

/// Whether `undisturbed` runs, and the signal that came meanwhile, or 0.
static IS_UNDISTURBED: AtomicBool = AtomicBool::new(false);
static CAME: AtomicI32 = AtomicI32::new(0);

/// Calls MAKE. A signal that would end this process meanwhile ends it afterwards. So a file and its `Removal` come into
/// being at the same moment, as a signal sees it. The signals are not blocked, because another thread would take them.
pub fn undisturbed<T>(make: impl FnOnce() -> T) -> T {
    IS_UNDISTURBED.store(true, Ordering::SeqCst);
    SIGNALS.into_iter().filter(|signal| ends_process(*signal)).for_each(catch);
    let made = make();
    IS_UNDISTURBED.store(false, Ordering::SeqCst);
    match CAME.load(Ordering::SeqCst) {
        0 => made,
        signal => end(signal),
    }
}

/// The process groups of the programs that this process has started; 0 for a free place.
static GROUPS: [AtomicI32; 4] = [const { AtomicI32::new(0) }; 4];

/// Keeps a program from staying behind. As long as this object exists, a signal that ends this process also ends the
/// program, with all processes of its group.
pub struct Companion(Option<&'static AtomicI32>);

impl Companion {
    /// GROUP is the number of the program's process group. A program for which there is no place may stay behind.
    pub fn of(group: i32) -> Self {
        let take = |place: &&AtomicI32| place.compare_exchange(0, group, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let place = GROUPS.iter().find(take);
        SIGNALS.into_iter().filter(|signal| ends_process(*signal)).for_each(catch);
        Self(place)
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.store(0, Ordering::Release);
        }
    }
}

/// Lets a write to a file that has reached its largest size fail, in place of ending this process. Programs that are
/// started after that inherit it.
pub fn outlive_full_files() {
    // SAFETY: The signal exists, and may be ignored.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Returns whether a signal has its usual effect.
fn ends_process(signal: c_int) -> bool {
    // SAFETY: The structure consists of numbers and of a function that may be missing, so zeros are valid.
    let mut found: libc::sigaction = unsafe { zeroed() };
    // SAFETY: The signal exists, nothing is changed, and there is room for the answer.
    let code = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut found) };
    code == 0 && found.sa_sigaction == libc::SIG_DFL
}

fn catch(signal: c_int) {
    // SAFETY: As in `ends_process`. No signal is blocked, and no flag is set.
    let mut wanted: libc::sigaction = unsafe { zeroed() };
    wanted.sa_sigaction = on_signal as extern "C" fn(c_int) as libc::sighandler_t;
    // SAFETY: The signal exists, and the handler is a function of this type, which calls only functions that are
    // allowed in a handler.
    unsafe { libc::sigaction(signal, &raw const wanted, null_mut()) };
}

/// Handles a signal. It is noted before the flag is read, and `undisturbed` reads in the other order, so one of the two
/// ends the process.
extern "C" fn on_signal(signal: c_int) {
    CAME.store(signal, Ordering::SeqCst);
    if !IS_UNDISTURBED.load(Ordering::SeqCst) {
        end(signal);
    }
}

/// Ends the programs, removes the file and ends this process, with the exit code of a shell for this signal.
fn end(signal: c_int) -> ! {
    for group in GROUPS.iter().map(|place| place.load(Ordering::Acquire)).filter(|group| *group > 0) {
        // SAFETY: The call takes numbers. A signal handler may call this function.
        unsafe { libc::killpg(group, libc::SIGKILL) };
    }
    // SAFETY: The pointer is null, or that of an object that is never freed or changed.
    if let Some(unfinished) = unsafe { UNFINISHED.load(Ordering::Acquire).as_ref() } {
        // SAFETY: The text ends with a zero. A signal handler may call this function.
        unsafe { libc::unlink(unfinished.path.as_ptr()) };
        // SAFETY: The text has as many bytes. A signal handler may call this function.
        unsafe { libc::write(2, unfinished.text.as_ptr().cast(), unfinished.text.len()) };
    }
    // SAFETY: As in `leave`. A signal handler may call this function.
    unsafe { libc::_exit(128 + signal) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Duration;
    use std::{env, fs, thread};

    const FILE: &str = "NVPM_TEST_FILE";

    /// Runs in a separate process, because a signal ends the process.
    #[test]
    #[ignore = "the next test starts it"]
    fn waits_for_a_signal() {
        let path = env::var_os(FILE).unwrap();
        let kind = path.to_string_lossy().into_owned();
        if kind.ends_with("made") {
            // The signal comes after the file is there, and before its removal is prepared.
            let _removal = undisturbed(|| {
                fs::write(&path, "ready").unwrap();
                while !Path::new(&format!("{kind}.sent")).exists() {
                    thread::sleep(Duration::from_millis(1));
                }
                Removal::of(Path::new(&path), "is not written")
            });
            thread::sleep(Duration::from_secs(100));
        }
        let removal = Removal::of(Path::new(&path), "is not written");
        if kind.ends_with("kept") {
            drop(removal);
        }
        fs::write(&path, "ready").unwrap();
        thread::sleep(Duration::from_secs(100));
    }

    #[test]
    fn a_signal_removes_the_file() {
        for (signal, code) in [("HUP", 129), ("INT", 130), ("TERM", 143)] {
            for kind in ["removed", "kept", "made"] {
                let path = env::temp_dir().join(format!("nvpm-ending-{}-{kind}", std::process::id()));
                // The tests may run below nohup, which lets programs ignore a signal.
                let mut child = Command::new("env");
                let child = child.arg("--default-signal").arg(env::current_exe().unwrap()).args([
                    "--ignored",
                    "--exact",
                    "ending::tests::waits_for_a_signal",
                ]);
                let child = child.env(FILE, &path).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
                while !fs::read(&path).is_ok_and(|text| text == b"ready") {
                    thread::sleep(Duration::from_millis(1));
                }
                assert!(Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap().success());
                let sent = path.with_extension("sent");
                fs::write(&sent, "").unwrap();
                let ended = child.wait_with_output().unwrap();
                fs::remove_file(&sent).unwrap();
                assert_eq!(ended.status.code(), Some(code), "{kind}");
                assert_eq!(path.exists(), kind == "kept");
                assert_eq!(ended.stderr, if kind == "kept" { b"".as_slice() } else { b"is not written\n" });
                let _ = fs::remove_file(&path);
            }
        }
    }
}
