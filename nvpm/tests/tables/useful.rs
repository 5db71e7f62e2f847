// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Judges whether the commands in a piece of advice would do anything on the machine for which the advice was given.
//! Such a command needs something that exists there: a module, a service, a source that dkms builds, a device or a
//! file. New kinds of commands need a new rule.
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

/// Modules that belong to the kernel of a distribution or to an OFED. The advice with modprobe for such a module also
/// says what to install if the module is missing.
const OF_KERNELS: [&str; 12] = [
    "ib_core",
    "ib_uverbs",
    "rdma_cm",
    "mlx5_core",
    "mlx5_ib",
    "efa",
    "ice",
    "irdma",
    "bnxt_en",
    "bnxt_re",
    "mana",
    "mana_ib",
];
/// Directories into which an administrator may write a new file.
const FOR_NEW_FILES: [&str; 5] =
    ["/etc/modprobe.d", "/etc/modules-load.d", "/etc/security/limits.d", "/etc/sysctl.d", "/etc/docker"];
/// Files of each system.
const ANYWHERE: [&str; 18] = [
    "/etc/sysctl.conf",
    "/etc/nv_peer_mem-build.conf",
    "/usr/bin/false",
    "/dev/null",
    "/usr/bin/true",
    "/etc/infiniband/nv_peer_mem.conf",
    "/proc/PID",
    "/sys/kernel/mm/memory_peers",
    "/sys/firmware/efi/efivars",
    "/usr/lib/modules-load.d",
    "/run/modules-load.d",
    "/lib/modules",
    "/var/lib/dkms/mok.pub",
    "/dev/infiniband",
    "/dev/nvidia",
    "/var",
    "/lib",
    "/sys",
];
/// Files below these paths are made by the kernel, or were judged with the command that names them.
const AT_LEAST: [&str; 3] = ["/proc/PID", "/dev/nvidia", "/etc/init.d/openibd"];
/// A service of systemd itself.
const OF_SYSTEMD: &str = "systemd-modules-load";
/// The commands of nvpm.
const COMMANDS: [&str; 10] =
    ["status", "check", "selftest", "regions", "compare", "explain", "run", "report", "holders", "advise"];
/// Words that follow "nvpm" in sentences, and are no commands.
const NO_COMMANDS: [&str; 3] = ["says", "status", "help"];

/// Returns whether a command with these words does something.
type Judged = fn(&Judge, &str) -> bool;
type Rule = (Regex, Judged);

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rules: [(&str, Judged); 15] = [
        (r"modprobe -r ([\w-]+)", Judge::is_loaded),
        (r"modprobe ([a-zA-Z0-9_][\w-]*)", Judge::is_known),
        (r"modinfo (?:-n|-p|-F \w+) ([a-z]\w*(?: ib_\w+)*)", |judge, names| {
            names.split(' ').all(|name| judge.is_known(name))
        }),
        (r"/etc/init\.d/([\w-]+) (?:re)?start", Judge::is_script),
        (r"systemctl (?:(?:enable|disable|stop|start|restart|edit)(?: --now)?) ([\w-]+)", Judge::is_service),
        (r"(?:update-rc\.d|chkconfig --add) ([\w-]+)", Judge::is_script),
        (r"dkms (?:build|install) [^;]*?(nvidia-peer-memory)", |judge, _| {
            judge.has("/var/lib/dkms/nvidia-peer-memory*") || judge.has("/usr/src/nvidia-peer-memory-*")
        }),
        (r"dkms (autoinstall|status)", |judge, _| judge.has("/var/lib/dkms/*")),
        (r"(make && make install)", |judge, _| judge.text("/modinfo/nv_peer_mem").contains("/extra/")),
        (r"(rpmbuild --rebuild)", |judge, _| {
            judge.text("/modinfo/nv_peer_mem").contains("/nvidia_peer_memory/") || judge.has("/rpm")
        }),
        (r"mokutil --import ([^\s,;]+)", Judge::is_key),
        (r"(?:setpci -s|mlxconfig -d) ([\da-f:.]+)", |judge, address| {
            judge.has(&format!("/sys/bus/pci/devices/{address}"))
        }),
        (r"\brm (/\S+)", Judge::is_file),
        (r"\b(docs/[\w-]+\.md)", |_, name| Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).is_file()),
        (r"(?:^|[^\w/])nvpm ([a-z]{3,})(?: |$|[:.,;])", |_, name| COMMANDS.contains(&name)),
    ];
    rules.map(|(pattern, judge)| (Regex::new(pattern).unwrap(), judge)).into()
});

struct Judge {
    root: PathBuf,
    advice: String,
}

fn text_of(file: &Path) -> String {
    fs::read(file).map_or(String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

impl Judge {
    /// Returns the files that a pattern matches.
    fn files(&self, pattern: &str) -> Vec<PathBuf> {
        let pattern = format!("{}/{}", self.root.display(), pattern.trim_matches(['/', '.']));
        glob::glob(&pattern).unwrap().flatten().collect()
    }

    fn has(&self, path: &str) -> bool {
        if path.contains('*') {
            return !self.files(path).is_empty();
        }
        self.root.join(path.trim_matches(['/', '.'])).exists()
    }

    fn text(&self, path: &str) -> String {
        text_of(&self.root.join(path.trim_start_matches('/')))
    }

    fn is_loaded(&self, module: &str) -> bool {
        self.has(&format!("/sys/module/{}", module.replace('-', "_")))
    }

    /// Returns whether the module is loaded, or modprobe finds its file. Debian's modules have other names, for which
    /// modprobe has aliases.
    fn is_known(&self, module: &str) -> bool {
        let name = module.replace('-', "_");
        let file = Regex::new(&format!(r"\b{}\.ko", regex::escape(&name))).unwrap();
        let lists = self.files("/lib/modules/*/modules.dep");
        let is_listed = lists.iter().any(|list| file.is_match(&text_of(list).replace('-', "_")));
        let files = self.files("/modinfo/*");
        let is_alias = files.iter().any(|one| text_of(one).contains(&format!("name={name}\n")));
        let is_found = self.has(&format!("/modinfo/{name}")) || is_alias;
        self.is_loaded(&name) || is_found || is_listed || OF_KERNELS.contains(&name.as_str())
    }

    fn is_service(&self, name: &str) -> bool {
        let units = ["/lib", "/usr/lib", "/etc"].map(|place| format!("{place}/systemd/system/{name}.service*"));
        let daemon = match name {
            "docker" => "dockerd",
            "ssh" => "sshd",
            other => other,
        };
        let running = self.files("/proc/[0-9]*/comm");
        self.has(&format!("/etc/init.d/{name}"))
            || units.iter().any(|unit| self.has(unit))
            || running.iter().any(|file| text_of(file).trim() == daemon)
            || name == OF_SYSTEMD
    }

    fn is_script(&self, name: &str) -> bool {
        if name == "openibd" {
            return !self.text("/ofed_info").is_empty() || self.advice.contains("Install MLNX_OFED");
        }
        self.has(&format!("/etc/init.d/{name}"))
    }

    fn is_key(&self, path: &str) -> bool {
        self.has(path) || self.advice.contains(&format!("There is no key {path} yet"))
    }

    /// Returns whether the file exists, is the file of a module, or lies beside such a file. A file below the kernel's
    /// headers exists after the headers were installed.
    fn is_file(&self, path: &str) -> bool {
        let beside = if path.contains('*') { path.rsplit_once('/').unwrap_or_default().0 } else { path };
        let is_of_module = self.files("/modinfo/*").iter().any(|file| text_of(file).contains(beside));
        let is_of_headers = path.contains("/build/") && self.advice.contains("headers");
        self.has(path) || is_of_module || is_of_headers || self.is_key(path)
    }
}

/// Returns the absolute paths in a text.
fn paths(text: &str) -> Vec<&str> {
    static PATH: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?:^|[^\w./=*-])(/(?:etc|sys|proc|dev|usr|var|lib|run)(?:/[\w.+*:@-]+)*)").unwrap()
    });
    PATH.captures_iter(text).map(|found| found.get(1).unwrap().as_str().trim_end_matches(['.', ':'])).collect()
}

/// Returns the parts of the advice that would do nothing on this machine.
pub fn useless(root: &Path, advice: &str) -> Vec<String> {
    let judge = Judge { root: root.to_owned(), advice: advice.to_owned() };
    let mut found = Vec::new();
    for (pattern, does_something) in RULES.iter() {
        for part in pattern.captures_iter(advice) {
            if !NO_COMMANDS.contains(&&part[1]) && !does_something(&judge, &part[1]) {
                found.push(part[0].to_owned());
            }
        }
    }
    for path in paths(advice) {
        let is_new = path.rsplit_once('/').is_some_and(|(directory, _)| FOR_NEW_FILES.contains(&directory));
        let is_allowed = is_new
            || FOR_NEW_FILES.contains(&path)
            || ANYWHERE.contains(&path)
            || AT_LEAST.iter().any(|begin| path.starts_with(begin));
        if !is_allowed && !judge.is_file(path) {
            found.push(path.to_owned());
        }
    }
    found
}
