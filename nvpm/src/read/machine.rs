// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The machine that nvpm looks at, which means its files and the output of its programs. In tests, the files lie below
//! another root directory.
use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::rc::Rc;

use glob::{MatchOptions, Pattern, glob_with};
use indexmap::IndexMap;
use rustix::fs::{Access, access};

use crate::read::programs::{self, Ended};
use crate::read::reader::{Reader, Unread, reason};
use crate::read::reading_child::directly;
use crate::read::{gpu_links, rdma_netlink};
use crate::text::clean;

pub const MODULE: &str = "nv_peer_mem";
/// The name of NVIDIA's own module. A pod can load `nv_peer_mem` under this name, because the programs of NVIDIA's
/// operators know this name alone, and unload the module before they need its neighbours.
pub const PEERMEM: &str = "nvidia_peermem";
/// The description of `nv_peer_mem` in its file, whatever the name of the file.
pub const DESCRIPTION: &str = "GPUDirect RDMA: NVIDIA GPU memory for the RDMA core";
/// The callback module, which the NVIDIA driver calls. It is installed and loaded together with `nv_peer_mem`, but it
/// stays loaded until the next boot.
pub const CALLBACK: &str = "nv_peer_mem_callback";
pub const SERVICE: &str = "/etc/init.d/nv_peer_mem";
pub const CONF: &str = "/etc/infiniband/nv_peer_mem.conf";
pub const PEERS: &str = "/sys/kernel/mm/memory_peers";

/// The first line of a file is read from this number of bytes.
const FIRST_LINE: u64 = 65536;
/// What drivers answer, each of which may hang.
const MAY_HANG: [&str; 4] = ["/proc/", "/sys/", rdma_netlink::PLACE, gpu_links::PLACE];
/// Names that begin with a dot match no star, as in a shell.
const LIKE_A_SHELL: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Returns bytes as text. Each byte that is not UTF-8 becomes a sign, which `clean` makes a question mark.
pub fn decoded(data: &[u8]) -> String {
    let mut found = String::with_capacity(data.len());
    for chunk in data.utf8_chunks() {
        found.push_str(chunk.valid());
        found.extend(std::iter::repeat_n('\u{fffd}', chunk.invalid().len()));
    }
    found
}

/// Returns the last part of a path.
pub fn base(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

pub struct Machine {
    /// The directory below which the files lie; empty for this machine.
    pub root: String,
    pub kernel: String,
    pub host: String,
    pub processor: String,
    pub reader: Reader,
    pub is_debugged: Cell<bool>,
    computed: RefCell<HashMap<TypeId, Rc<dyn Any>>>,
}

impl Machine {
    pub fn new(root: &str) -> Self {
        let mut found = Self {
            root: root.to_owned(),
            kernel: String::new(),
            host: String::new(),
            processor: String::new(),
            reader: Reader::new(),
            is_debugged: Cell::new(false),
            computed: RefCell::new(HashMap::new()),
        };
        let here = rustix::system::uname();
        let known = |file: &str, otherwise: &std::ffi::CStr| {
            let text = clean(&found.text(&format!("/proc/sys/kernel/{file}")));
            if text.is_empty() { otherwise.to_string_lossy().into_owned() } else { text }
        };
        let kernel = known("osrelease", here.release());
        let host = known("hostname", here.nodename());
        let processor = known("arch", here.machine());
        (found.kernel, found.host, found.processor) = (kernel, host, processor);
        found
    }

    /// Returns this machine. Tests set the variable `NVPM_SYSROOT`, and nvpm then reads the files of that directory in
    /// place of the root directory.
    pub fn here(is_debugged: bool) -> Self {
        let machine = Self::new(&std::env::var("NVPM_SYSROOT").unwrap_or_default());
        machine.is_debugged.set(is_debugged);
        machine
    }

    /// Returns the result of a function, which is computed only once for this machine.
    pub fn once<T: 'static, F: Fn(&Self) -> T + 'static>(&self, compute: F) -> Rc<T> {
        let key = TypeId::of::<F>();
        let known = self.computed.borrow().get(&key).cloned();
        if let Some(found) = known.and_then(|found| found.downcast().ok()) {
            return found;
        }
        let found = Rc::new(compute(self));
        self.computed.borrow_mut().insert(key, found.clone());
        found
    }

    /// With --debug, prints a file or a program, and the beginning of its text.
    pub fn tell(&self, what: &str, found: &str) {
        if self.is_debugged.get() {
            let found: String = clean(found).chars().take(200).collect();
            // If this cannot be written, the answer still can be.
            let _ = writeln!(io::stderr(), "nvpm: {}: {found}", clean(what));
        }
    }

    // ---- files ----

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("{}{name}", self.root))
    }

    pub fn exists(&self, name: &str) -> bool {
        let is_there = self.path(name).exists();
        self.tell(name, if is_there { "is there" } else { "is not there" });
        is_there
    }

    pub fn readable(&self, name: &str) -> bool {
        let may = access(self.path(name), Access::READ_OK).is_ok();
        self.tell(name, if may { "can be read" } else { "cannot be read" });
        may
    }

    pub fn writable(&self, name: &str) -> bool {
        let may = access(self.path(name), Access::READ_OK | Access::WRITE_OK).is_ok();
        self.tell(name, if may { "can be written" } else { "cannot be written" });
        may
    }

    pub fn loaded(&self, module: &str) -> bool {
        self.exists(&format!("/sys/module/{module}"))
    }

    /// Returns the names of the files that match the patterns. The names of each pattern are sorted.
    pub fn glob(&self, patterns: &[&str]) -> Vec<String> {
        let below = Pattern::escape(&self.root);
        let mut found: Vec<String> = Vec::new();
        for pattern in patterns {
            let paths = glob_with(&format!("{below}{pattern}"), LIKE_A_SHELL).into_iter().flatten().flatten();
            let names = paths.map(|path| path.to_string_lossy().into_owned());
            let mut names: Vec<String> =
                names.filter_map(|name| Some(name.strip_prefix(&self.root)?.to_owned())).collect();
            names.sort();
            found.extend(names);
        }
        let names = found.join(" ");
        self.tell(&patterns.join(" "), if names.is_empty() { "no such file" } else { &names });
        found
    }

    /// Returns the names of at most MOST files in a directory, sorted; None if the directory cannot be read.
    pub fn names(&self, directory: &str, most: usize) -> Option<Vec<String>> {
        let entries = fs::read_dir(self.path(directory));
        let entries = entries.inspect_err(|error| self.tell(directory, &reason(error))).ok()?;
        let names = entries.flatten().take(most).map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        if self.is_debugged.get() {
            self.tell(directory, &names.join(" "));
        }
        Some(names)
    }

    /// Returns the directory to which a name leads, with the root directory before it; an empty string if it leads to
    /// no directory.
    pub fn target(&self, name: &str) -> String {
        let found = fs::canonicalize(self.path(name)).ok().filter(|path| path.is_dir());
        let Some(found) = found.map(|path| path.to_string_lossy().into_owned()) else {
            self.tell(name, "leads to no directory");
            return String::new();
        };
        self.tell(name, &format!("leads to {found}"));
        found
    }

    /// Returns the target of a link; an empty string for other files.
    pub fn link(&self, name: &str) -> String {
        match fs::read_link(self.path(name)) {
            Ok(target) => {
                let target = target.to_string_lossy().into_owned();
                self.tell(name, &format!("-> {target}"));
                target
            }
            Err(error) => {
                self.tell(name, &reason(&error));
                String::new()
            }
        }
    }

    fn status(&self, name: &str) -> Option<fs::Metadata> {
        let found = fs::metadata(self.path(name));
        found.inspect_err(|error| self.tell(name, &reason(error))).ok()
    }

    /// Returns the access rights of a file; None if the file does not exist any more.
    pub fn mode(&self, name: &str) -> Option<u32> {
        self.status(name).map(|status| status.mode() & 0o7777)
    }

    /// Returns the number of the user who owns a file; None if the file does not exist any more.
    pub fn owner(&self, name: &str) -> Option<u32> {
        self.status(name).map(|status| status.uid())
    }

    /// Returns the numbers of a file's filesystem and of the file, which tell whether two names lead to one file.
    pub fn identity(&self, name: &str) -> Option<(u64, u64)> {
        self.status(name).map(|status| (status.dev(), status.ino()))
    }

    /// Returns the bytes of a file; no bytes if the file cannot be read.
    pub fn read(&self, name: &str) -> Vec<u8> {
        self.bytes(name, None)
    }

    pub fn read_at_most(&self, name: &str, size: u64) -> Vec<u8> {
        self.bytes(name, Some(size))
    }

    fn bytes(&self, name: &str, size: Option<u64>) -> Vec<u8> {
        self.contents(name, size).unwrap_or_default()
    }

    /// Returns the bytes of a file, at most SIZE, or why it cannot be read.
    pub fn contents(&self, name: &str, size: Option<u64>) -> Result<Vec<u8>, Unread> {
        let found = if MAY_HANG.iter().any(|place| name.starts_with(place)) {
            self.reader.read(&self.root, name, size)
        } else {
            directly(&self.path(name), size).map_err(Unread::Error)
        };
        match &found {
            Ok(data) if self.is_debugged.get() => self.tell(name, decoded(data.get(..200).unwrap_or(data)).trim()),
            Ok(_) => {}
            Err(why) => self.tell(name, &why.to_string()),
        }
        found
    }

    /// Returns the text of some files, one after the other.
    pub fn all_text<T: AsRef<str>>(&self, names: &[T]) -> String {
        let data: Vec<Vec<u8>> = names.iter().map(|name| self.read(name.as_ref())).collect();
        decoded(&data.concat())
    }

    pub fn lines(&self, name: &str) -> Vec<String> {
        let text = self.all_text(&[name]);
        let text = text.trim_end_matches('\n');
        if text.is_empty() { Vec::new() } else { text.split('\n').map(str::to_owned).collect() }
    }

    /// Returns the first line of a file, stripped; an empty string if the file cannot be read.
    pub fn text(&self, name: &str) -> String {
        let data = self.read_at_most(name, FIRST_LINE);
        let line = data.split(|byte| *byte == b'\n').next().unwrap_or_default();
        decoded(line).trim_matches([' ', '\t', '\0']).to_owned()
    }

    // ---- users ----

    /// Returns the name of a user, or the number if /etc/passwd has no name for it. No name service is asked, because
    /// it may be a server, and may not answer for minutes.
    pub fn user(&self, number: &str) -> String {
        let users = self.once(Self::read_users);
        let found = users.iter().find(|(_, found)| found.to_string() == number);
        found.map_or(number.to_owned(), |(name, _)| clean(name))
    }

    /// Returns the names and numbers of the users in /etc/passwd.
    pub fn users(&self) -> Rc<Vec<(String, u32)>> {
        self.once(Self::read_users)
    }

    fn read_users(&self) -> Vec<(String, u32)> {
        let user = |line: &String| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| !name.is_empty())?;
            Some((name.to_owned(), fields.nth(1)?.parse().ok()?))
        };
        self.lines("/etc/passwd").iter().filter_map(user).collect()
    }

    // ---- programs ----

    /// Runs a program. With --debug, also prints how the program ended.
    pub fn ended(&self, command: &[&str]) -> Ended {
        let ended = programs::run(command, programs::LIMIT, None);
        let code = ended.code.map_or(String::new(), |code| format!("exit code {code}"));
        let how = if ended.why.is_empty() { &code } else { &ended.why };
        self.tell(&format!("{} ({how})", command.join(" ")), decoded(&ended.output).trim_matches('\n'));
        ended
    }

    /// Runs a program. Returns whether the program succeeded, and its output. A program that hangs, as rpm can, is
    /// stopped, and has not succeeded.
    pub fn run(&self, command: &[&str]) -> (bool, String) {
        let ended = self.ended(command);
        (ended.code == Some(0), decoded(&ended.output).trim_matches('\n').to_owned())
    }
}

// ---- what several parts ask ----

/// Returns the name under which `nv_peer_mem` is loaded, MODULE or PEERMEM; an empty string if `nv_peer_mem` is not
/// loaded. NVIDIA's own module and the marker have no statistics.
pub fn own_module(machine: &Machine) -> &'static str {
    if machine.loaded(MODULE) {
        return MODULE;
    }
    if machine.exists(&format!("/sys/module/{PEERMEM}/statistics")) { PEERMEM } else { "" }
}

fn directory(machine: &Machine, name: &str) -> String {
    let module = own_module(machine);
    format!("/sys/module/{}/{name}/", if module.is_empty() { MODULE } else { module })
}

/// Returns the directory of the module's statistics, with a slash at the end.
pub fn statistics(machine: &Machine) -> String {
    directory(machine, "statistics")
}

/// Returns the directory of the module's parameters, with a slash at the end.
pub fn parameters(machine: &Machine) -> String {
    directory(machine, "parameters")
}

pub fn loaded_version(machine: &Machine, module: &str) -> String {
    let version = machine.text(&format!("/sys/module/{module}/version"));
    if version.is_empty() { "unknown".to_owned() } else { version }
}

/// The fields that modinfo prints about a module.
pub type Fields = IndexMap<String, String>;

/// Returns the fields of the installed file of `nv_peer_mem` with the name under which the module is loaded; none if
/// there is no such file. A file `nvidia_peermem.ko` may be NVIDIA's.
pub fn own_file(machine: &Machine) -> Rc<Fields> {
    if own_module(machine) != PEERMEM {
        return modinfo(machine, MODULE);
    }
    let fields = modinfo(machine, PEERMEM);
    let is_ours = fields.get("description").is_some_and(|text| text == DESCRIPTION);
    if is_ours { fields } else { Rc::default() }
}

/// Returns the fields of an installed module; none if the running kernel has no such module. If modinfo prints a field
/// several times, the first one counts.
pub fn modinfo(machine: &Machine, module: &str) -> Rc<Fields> {
    fn known(_: &Machine) -> RefCell<HashMap<String, Rc<Fields>>> {
        RefCell::default()
    }
    let known = machine.once(known);
    if let Some(fields) = known.borrow().get(module) {
        return fields.clone();
    }
    let mut fields = Fields::new();
    for line in machine.run(&["modinfo", module]).1.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        fields.entry(name.to_owned()).or_insert_with(|| value.trim().to_owned());
    }
    let fields = Rc::new(fields);
    known.borrow_mut().insert(module.to_owned(), fields.clone());
    fields
}

/// Returns how the Rust of the loaded module was compiled. If no module is loaded, returns how the Rust of the
/// installed module was compiled.
pub fn rust(machine: &Machine) -> Rc<String> {
    fn compute(machine: &Machine) -> String {
        let loaded = machine.text(&format!("{}rust", statistics(machine)));
        let installed = || modinfo(machine, MODULE).get("rust").cloned().unwrap_or_default();
        if loaded.is_empty() { installed() } else { loaded }
    }
    machine.once(compute)
}

/// Returns whether this machine is meant to have the module. This is so if the module is loaded or is installed for
/// this kernel, or if the service is installed. Otherwise the absence of the module is no defect.
pub fn module_wanted(machine: &Machine) -> bool {
    fn compute(machine: &Machine) -> bool {
        !own_module(machine).is_empty() || machine.exists(CONF) || !modinfo(machine, MODULE).is_empty()
    }
    *machine.once(compute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_become_signs() {
        assert_eq!(decoded(b"a\xff\xfeb"), "a\u{fffd}\u{fffd}b");
        assert_eq!(clean(&decoded("é\u{1}".as_bytes())), "é?");
    }

    #[test]
    fn a_function_is_computed_once() {
        thread_local!(static CALLS: Cell<u32> = const { Cell::new(0) });
        fn counted(_: &Machine) -> u32 {
            CALLS.with(|calls| calls.replace(calls.get() + 1))
        }
        fn other(_: &Machine) -> u32 {
            7
        }
        let machine = Machine::new("/none/such");
        let found = [machine.once(counted), machine.once(counted), machine.once(other)];
        assert_eq!(found.map(|one| *one), [0, 0, 7]);
    }

    #[test]
    fn files_that_match_have_no_root() {
        let root = tempfile();
        for name in ["b", "a10", "a9", ".hidden"] {
            fs::write(format!("{root}/{name}"), "").unwrap();
        }
        std::os::unix::fs::symlink("nowhere", format!("{root}/broken")).unwrap();
        let machine = Machine::new(&root);
        assert_eq!(machine.glob(&["/a[0-9]*", "/b*", "/none*"]), ["/a10", "/a9", "/b", "/broken"]);
        assert_eq!(machine.glob(&["/broken", "/none"]), ["/broken"]);
        fs::remove_dir_all(&root).unwrap();
    }

    fn tempfile() -> String {
        let path = std::env::temp_dir().join(format!("nvpm-machine-[{}]", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path.to_str().unwrap().to_owned()
    }
}
