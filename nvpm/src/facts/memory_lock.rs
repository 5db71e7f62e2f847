// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Judges how much memory the programs that a daemon starts may lock.
use std::rc::Rc;

use indexmap::IndexMap;

use crate::facts::expression::Expression;
use crate::facts::fact::{Fact, Facts, good, info, warn};
use crate::facts::limits::{each_device, locked_memory, number_of};
use crate::read::machine::{Machine, base};
use crate::read::regions::size;

const DAEMONS: &[&str] = &["slurmd", "pbs_mom", "kubelet", "containerd", "crio", "dockerd", "sshd"];
const DIRECTORIES: &[&str] = &["/lib", "/usr/lib", "/etc"];

// The settings that let all users, or all containers, lock as much memory as they want.
static LIMITS: Expression = Expression::new(r"(?m)^\s*\*\s+(-|hard)\s+memlock\s+(unlimited|infinity|-1)\s*$");
static ULIMITS: Expression = Expression::new(r#""memlock"\s*:\s*\{[^}]*"Hard"\s*:\s*-1"#);
const DOCKER: &str = "/etc/docker/daemon.json";

static SETTING: Expression = Expression::new(r"(?m)^\s*LimitMEMLOCK\s*=\s*(?:.*:)?(.*)");
static OF_ROOT: Expression = Expression::new(r"(?m)^Uid:\s+0\s+0\s");
const DEFAULT: &str = "the default of systemd (DefaultLimitMEMLOCK)";

const RAISE_DOCKER: &str = "docker run --ulimit memlock=-1, or \"default-ulimits\": {\"memlock\": {\"Name\": \
                            \"memlock\", \"Soft\": -1, \"Hard\": -1}} in /etc/docker/daemon.json, then systemctl restart \
                            docker.";
const RAISE_LOGINS: &str = "Write '* - memlock unlimited' into /etc/security/limits.d/rdma.conf, and log in again; for \
                            ssh without pam_limits: systemctl edit ssh, [Service], LimitMEMLOCK=infinity.";

pub fn facts(machine: &Machine, facts: &mut Facts) {
    for daemon in DAEMONS {
        facts.add(fact(machine, daemon));
    }
}

fn fact(machine: &Machine, daemon: &str) -> Option<Fact> {
    let (name, limit) = (format!("memory lock {daemon}"), memory_limit(machine, daemon));
    if limit.is_empty() {
        return None;
    }
    if daemon == "kubelet" {
        return Some(info("access", &name, format!("{limit}; containers have that of their runtime")));
    }
    if limit.starts_with("unlimited") || limit.starts_with("infinity") {
        return Some(good("access", &name, limit));
    }
    let amount = number_of(&limit).map_or_else(|| limit.clone(), size);
    let raised = raised_by(machine, daemon);
    if !raised.is_empty() {
        return Some(good("access", &name, format!("{amount}, raised by {raised}")));
    }
    let value = format!("{amount}: {} cannot register more{}", jobs_of(daemon), each_device(machine, &limit));
    Some(warn("access", &name, value).advised(to_raise(daemon)))
}

/// Returns the processes that inherit a daemon's limit.
fn jobs_of(daemon: &str) -> &'static str {
    match daemon {
        "dockerd" => "containers without --ulimit memlock=-1",
        "containerd" | "crio" => "its containers",
        "sshd" => "programs of its logins",
        _ => "its jobs",
    }
}

fn to_raise(daemon: &str) -> String {
    match daemon {
        "dockerd" => RAISE_DOCKER.to_owned(),
        "sshd" => RAISE_LOGINS.to_owned(),
        _ => format!(
            "systemctl edit {daemon}, write [Service] and LimitMEMLOCK=infinity, then systemctl restart {daemon}."
        ),
    }
}

/// Returns the file that raises the limit for the programs that this daemon starts. An empty text if there is none.
/// `pam_limits` raises the limit of each login, and Docker that of each container.
fn raised_by(machine: &Machine, daemon: &str) -> String {
    if daemon == "sshd" {
        let files = machine.glob(&["/etc/security/limits.conf", "/etc/security/limits.d/*.conf"]);
        let raises = |file: &String| LIMITS.matches(&machine.all_text(&[file]));
        return files.into_iter().find(raises).unwrap_or_default();
    }
    let is_raised = daemon == "dockerd" && ULIMITS.matches(&machine.all_text(&[DOCKER]));
    if is_raised { DOCKER.to_owned() } else { String::new() }
}

/// Returns one process for each daemon. If a daemon has several processes, the process with the lowest number is
/// returned, because it is usually the oldest. Only root's processes count, because every user can give a process the
/// name slurmd. Both the real and the effective user must be root, because a program with the set-user-ID bit changes
/// only its effective user.
fn daemons(machine: &Machine) -> Rc<IndexMap<String, String>> {
    machine.once(compute_daemons)
}

fn compute_daemons(machine: &Machine) -> IndexMap<String, String> {
    let mut found = IndexMap::new();
    let mut processes = machine.glob(&["/proc/[0-9]*"]);
    processes.sort_by_key(|process| number_of(base(process)).unwrap_or_default());
    for process in processes {
        let name = machine.text(&format!("{process}/comm"));
        if DAEMONS.contains(&name.as_str()) && !found.contains_key(&name) && is_of_root(machine, &process) {
            found.insert(name, process);
        }
    }
    found
}

fn is_of_root(machine: &Machine, process: &str) -> bool {
    OF_ROOT.matches(&machine.all_text(&[format!("{process}/status")]))
}

/// Returns how much memory the daemon may lock. If the daemon does not run, its unit has the limit. An empty text if
/// this machine has no such daemon.
fn memory_limit(machine: &Machine, daemon: &str) -> String {
    if let Some(process) = daemons(machine).get(daemon) {
        return locked_memory(machine, process);
    }
    let unit = |directory: &&str| format!("{directory}/systemd/system/{daemon}.service");
    let patterns = DIRECTORIES.iter().map(unit).flat_map(|unit| [unit.clone(), format!("{unit}.d/*.conf")]);
    let patterns: Vec<String> = patterns.collect();
    let files = machine.glob(&patterns.iter().map(String::as_str).collect::<Vec<_>>());
    if files.is_empty() {
        return String::new();
    }
    let units = machine.all_text(&files);
    let said = SETTING.every(&units).last().filter(|said| !said.is_empty());
    format!("{}, by its unit", said.unwrap_or(DEFAULT))
}
