// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Names the processes and pods that have GPU memory registered, and so keep the module loaded.
//!
//! This takes more rights than loading a module does: the node's process numbers (hostPID), the capability
//! `CAP_SYS_ADMIN` for the module's list, and for the pods' names /var/log/pods, whose directories kubelet names
//! `NAMESPACE_NAME_UID`.
use std::fmt::{self, Display, Formatter};
use std::process::Stdio;

use serde_json::Value;

use crate::node::Node;
use crate::program::said;

const LOGS: &str = "/var/log/pods";
/// The most processes that a text names.
const MOST: usize = 8;
/// The digits of a pod's UID, between its signs.
const UID: [usize; 5] = [8, 4, 4, 4, 12];

/// A process with registrations. `pod` is NAMESPACE/NAME, or the pod's UID, or empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub process: u64,
    pub command: String,
    pub pod: String,
    pub registrations: usize,
}

impl Display for Owner {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "process {} ({})", self.process, self.command)?;
        if !self.pod.is_empty() {
            write!(to, " of pod {}", self.pod)?;
        }
        write!(to, " has {} registration{}", self.registrations, if self.registrations == 1 { "" } else { "s" })
    }
}

/// Returns the processes with registrations, or nothing if this pod may not know them.
pub fn owners(node: &Node) -> Vec<Owner> {
    let (is_known, list) = said(&["nvpm", "regions", "--json"], Stdio::null());
    if is_known { listed(node, &list) } else { Vec::new() }
}

/// Returns the owners in a list of `nvpm regions`, which has the registrations of a process one after another. Orphans
/// keep no module.
fn listed(node: &Node, list: &str) -> Vec<Owner> {
    let list: Value = serde_json::from_str(list).unwrap_or_default();
    let mut found: Vec<Owner> = Vec::new();
    for one in list.get("registrations").and_then(Value::as_array).into_iter().flatten() {
        let text = |name| one.get(name).and_then(Value::as_str).unwrap_or_default();
        let Some(process) = one.get("process").and_then(Value::as_u64) else { continue };
        if text("state") == "orphaned" {
            continue;
        }
        match found.last_mut() {
            Some(last) if last.process == process => last.registrations += 1,
            _ => found.push(Owner {
                process,
                command: text("command").to_owned(),
                pod: pod_of(node, process),
                registrations: 1,
            }),
        }
    }
    found
}

/// Returns the pod of a process, or an empty string if the process belongs to none.
fn pod_of(node: &Node, process: u64) -> String {
    let groups = node.text(&format!("/proc/{process}/cgroup"));
    let Some(uid) = uid_in(&groups) else { return String::new() };
    let logs = node.path(LOGS).read_dir().into_iter().flatten().flatten();
    let names = logs.filter_map(|log| log.file_name().into_string().ok());
    let named = |log: String| {
        let (namespace, name) = log.strip_suffix(&uid)?.strip_suffix('_')?.rsplit_once('_')?;
        (!namespace.is_empty() && !name.is_empty()).then(|| format!("{namespace}/{name}"))
    };
    names.filter_map(named).min().unwrap_or(uid)
}

/// Returns the UID of a pod in the path of a control group. systemd's driver writes `_` for `-`.
fn uid_in(groups: &str) -> Option<String> {
    groups.match_indices("pod").find_map(|(at, word)| {
        let uid = groups.get(at + word.len()..)?.get(..UID.iter().sum::<usize>() + UID.len() - 1)?.replace('_', "-");
        let lengths = uid.split('-').map(str::len);
        let is_hex = |letter: u8| matches!(letter, b'0'..=b'9' | b'a'..=b'f' | b'-');
        (lengths.eq(UID) && uid.bytes().all(is_hex)).then_some(uid)
    })
}

/// Returns a text about the owners; their number if their names are unknown.
pub fn who(references: u64, found: &[Owner]) -> String {
    if found.is_empty() {
        return format!(
            "{references} references to the module are held; with the rights of owners.yaml, this pod names the processes \
             and their pods"
        );
    }
    let mut names: Vec<String> = found.iter().take(MOST).map(ToString::to_string).collect();
    if found.len() > MOST {
        names.push("and others".to_owned());
    }
    names.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Files;

    const POD: &str = "3b0bd2a1-6f0c-4f0e-9d52-0d6f2c9e7a11";

    fn list(registrations: &[(u64, &str, &str)]) -> String {
        let one = |(process, command, state): &(u64, &str, &str)| {
            format!("{{\"process\": {process}, \"command\": \"{command}\", \"state\": \"{state}\"}}")
        };
        format!("{{\"registrations\": [{}]}}", registrations.iter().map(one).collect::<Vec<_>>().join(", "))
    }

    fn held(node: &Node) -> Owner {
        let found = listed(node, &list(&[(4711, "python3", "mapped"), (4711, "python3", "mapped")]));
        let [owner] = <[Owner; 1]>::try_from(found).unwrap();
        owner
    }

    /// Control groups have the names of systemd's driver, or of the driver cgroupfs.
    #[test]
    fn a_pod() {
        let systemd = format!("kubepods-burstable-pod{}.slice/cri-containerd-5d1.scope", POD.replace('-', "_"));
        for group in [format!("kubepods.slice/kubepods-burstable.slice/{systemd}"), format!("kubepods/pod{POD}/5d1")] {
            let node = Files::new();
            node.put("/proc/4711/cgroup", &format!("0::/{group}\n"));
            assert_eq!(held(&node).to_string(), format!("process 4711 (python3) of pod {POD} has 2 registrations"));
            // A directory that kubelet has not made.
            node.put(&format!("/var/log/pods/trainer_{POD}/x"), "");
            assert_eq!(held(&node).pod, POD);
            node.put(&format!("/var/log/pods/ml_trainer-0_{POD}/x"), "");
            node.put("/var/log/pods/ml_trainer-1_4b0bd2a1-6f0c-4f0e-9d52-0d6f2c9e7a11/x", "");
            assert_eq!(held(&node).pod, "ml/trainer-0");
        }
    }

    #[test]
    fn no_pod() {
        let node = Files::new();
        assert_eq!(held(&node).to_string(), "process 4711 (python3) has 2 registrations");
        for group in ["/user.slice/user-0.slice/session-1.scope", "/podman", "/pod3b0bd2a1-6f0c", "/pod\u{e4}\u{e4}"] {
            node.put("/proc/4711/cgroup", &format!("0::{group}\n"));
            assert_eq!(held(&node).pod, "");
        }
    }

    #[test]
    fn several() {
        let node = Files::new();
        let found = listed(&node, &list(&[(4, "b c", "mapped"), (5, "a", "mapped"), (6, "x", "orphaned")]));
        let names: Vec<_> = found.iter().map(|one| (one.process, one.command.as_str(), one.registrations)).collect();
        assert_eq!(names, [(4, "b c", 1), (5, "a", 1)]);
        assert_eq!(who(2, &found), "process 4 (b c) has 1 registration; process 5 (a) has 1 registration");
        let several = |count| std::iter::repeat_n(found.clone(), count).flatten().collect::<Vec<_>>();
        let (eight, ten) = (who(8, &several(4)), who(20, &several(5)));
        assert!(eight.matches("process").count() == 8 && !eight.contains("others"));
        assert!(ten.matches("process").count() == 8 && ten.ends_with("; and others"));
    }

    /// Without the capability, the list cannot be opened, and nvpm prints none.
    #[test]
    fn no_rights() {
        for list in ["", "[]", "{}", "{\"registrations\": [1, {}, null]}"] {
            assert_eq!(listed(&Files::new(), list), []);
        }
        assert!(who(3, &[]).starts_with("3 references to the module are held; with the rights of owners.y"));
    }
}
