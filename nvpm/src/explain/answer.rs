// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Chooses the kind of answer, and describes the log: its programs, ranks and nodes.
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::explain::failure::is_of_build;
use crate::explain::judge::{FINE_HERE, Found, NO_CASE, Proof, Verdict};
use crate::explain::node::Node;
use crate::explain::prefixes::{Source, hosts_of};
use crate::explain::scan::{Hit, Scan};
use crate::explain::table::{FACTS, fact_named};
use crate::explain::values::filled;
use crate::explain::wording::counted;

/// The answer names this number of programs at most.
const MOST_PROGRAMS: usize = 4;
/// The answer names these facts, because they describe the machine.
const MACHINES: &[(&str, &str)] = &[
    ("amd", "AMD GPUs"),
    ("efa", "EFA"),
    ("gb10", "DGX Spark"),
    ("geforce", "GeForce"),
    ("jetson", "Jetson"),
    ("other_gpu", "accelerators of another maker"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A cause is certain or probable.
    Cause,
    /// Causes are possible, and no more.
    Perhaps,
    /// All failures follow from one that is not in the log.
    Follows,
    /// Lines look like failures, and are not known; or no line is known, which says nothing.
    Unknown,
    /// No line is a failure, and a line that is known says that something went well.
    Nothing,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Cause => "cause",
            Self::Perhaps => "perhaps",
            Self::Follows => "follows",
            Self::Unknown => "unknown",
            Self::Nothing => "nothing",
        }
    }

    pub fn code(self) -> u8 {
        match self {
            Self::Cause => 3,
            Self::Perhaps | Self::Follows | Self::Unknown => 4,
            Self::Nothing => 0,
        }
    }
}

pub struct Answer<'a> {
    pub scan: &'a Scan,
    pub verdict: &'a Verdict,
    /// The facts of this node. None if another node has written the log.
    pub node: Option<&'a Node>,
}

impl Answer<'_> {
    pub fn kind(&self) -> Kind {
        if self.verdict.is_answer() {
            return Kind::Cause;
        }
        let unknown = self.unknown();
        if !self.verdict.causes.is_empty() {
            Kind::Perhaps
        } else if unknown.iter().any(|hit| hit.is_topic) {
            Kind::Unknown
        } else if !self.verdict.follows.is_empty() {
            Kind::Follows
        } else if unknown.is_empty() && self.went_well() {
            Kind::Nothing
        } else {
            Kind::Unknown
        }
    }

    /// Returns whether the log has a sign of success. A log without one may be that of another program, or may end
    /// before the failure.
    fn went_well(&self) -> bool {
        self.scan.success.is_used()
            || self.verdict.overcome.is_some()
            || self.verdict.aside.iter().any(|one| one.why == FINE_HERE)
    }

    /// Returns lines that look like failures and that the tables do not explain, or explain only under conditions that
    /// do not hold in this log. Lines about GPUDirect RDMA come first.
    pub fn unknown(&self) -> Vec<&Hit> {
        let mut explained: BTreeSet<usize> =
            self.verdict.causes.iter().flat_map(|found| &found.proofs).map(|proof| proof.hit.order).collect();
        explained.extend(self.verdict.follows.iter().map(|one| one.hit.order));
        let no_case = self.verdict.aside.iter().filter(|one| one.why == NO_CASE);
        let mut hits = self.scan.unknown();
        hits.extend(
            no_case
                .map(|one| &one.hit)
                .filter(|hit| !explained.contains(&hit.order) && crate::explain::failure::is_bad(&hit.text)),
        );
        hits.sort_by_key(|hit| (!hit.is_topic, hit.order));
        hits.dedup_by_key(|hit| hit.order);
        hits
    }

    /// Returns the command that is to be typed first, with values of the line that shows the cause.
    pub fn first_command(&self, found: &Found) -> Option<String> {
        let in_container = self.is_container();
        let of_pod = in_container && !found.about().pod.is_empty();
        let best = found.best()?;
        let named = self.scan.known.names(best.variant.message, &best.hit.text);
        let commands = if of_pod { found.about().pod } else { found.first_command() };
        let command =
            filled(commands, &best.hit.text, &named).or_else(|| filled(found.about().first, &best.hit.text, &named))?;
        Some(placed(command, in_container))
    }

    /// Returns where to look if no cause is known. Nothing on the node explains what compilers, package managers and
    /// schedulers say.
    pub fn look(&self) -> Option<String> {
        let unknown = self.unknown().into_iter().filter(|hit| hit.is_topic);
        let follows = self.verdict.follows.iter().map(|one| &one.hit);
        let helps = unknown.chain(follows).any(|hit| !is_of_build(&hit.text));
        helps.then(|| placed("nvpm status".to_owned(), self.is_container()))
    }

    /// Returns whether a container has written the log. Docker names a container by twelve digits.
    fn is_container(&self) -> bool {
        let is_id = |host: &String| host.len() == 12 && host.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.scan.facts.has_named("container") || hosts_of(self.scan.sources()).iter().any(is_id)
    }

    /// Returns what is known of the log as a whole: programs, ranks and nodes.
    pub fn log(&self) -> String {
        let facts = &self.scan.facts;
        let mut parts: Vec<String> = Vec::new();
        for (place, fact) in FACTS.iter().enumerate().filter(|(_, fact)| fact.is_version) {
            if let Some(versions) = facts.versions.get(&place).filter(|_| parts.len() < MOST_PROGRAMS) {
                let shown: Vec<&str> = versions.iter().take(2).map(String::as_str).collect();
                parts.push(format!("{} {}", fact.words, shown.join(" and ")));
            }
        }
        parts.extend(
            MACHINES.iter().filter(|(name, _)| facts.has(fact_named(name))).map(|(_, words)| (*words).to_owned()),
        );
        let (nodes, ranks) = (self.nodes(), self.ranks());
        if ranks > 0 && nodes > 0 && (nodes > 1 || facts.nodes > 0) {
            parts.push(format!("{} on {}", counted(ranks, "rank"), counted(nodes, "node")));
        } else if ranks > 0 || nodes > 1 {
            parts.push(if ranks > 0 { counted(ranks, "rank") } else { counted(nodes, "node") });
        }
        parts.join(", ")
    }

    /// Returns the number of nodes that the log names.
    pub fn nodes(&self) -> usize {
        self.scan.facts.nodes.max(hosts_of(self.scan.sources()).len())
    }

    /// Returns the number of ranks that the log names.
    pub fn ranks(&self) -> usize {
        let ranks: BTreeSet<&str> =
            self.scan.sources().iter().map(|one| one.rank.as_str()).filter(|rank| !rank.is_empty()).collect();
        self.scan.facts.ranks.max(ranks.len())
    }

    fn rank_of<'a>(&'a self, source: &'a Source) -> &'a str {
        if !source.rank.is_empty() {
            return &source.rank;
        }
        let known = self.scan.facts.rank_of.get(&(source.host.clone(), source.process.clone()));
        known.map_or("", |(rank, _)| rank)
    }

    fn ranks_of<'a>(&'a self, sources: &'a BTreeSet<Rc<Source>>) -> Vec<&'a str> {
        let ranks: BTreeSet<&str> =
            sources.iter().map(|one| self.rank_of(one)).filter(|rank| !rank.is_empty()).collect();
        let mut ranks: Vec<&str> = ranks.into_iter().collect();
        ranks.sort_by_key(|rank| rank.parse::<usize>().unwrap_or(0));
        ranks
    }

    /// Returns which hosts and ranks printed a line, if they are not all hosts and ranks of the log.
    pub fn who(&self, hit: &Hit) -> String {
        let mut texts = Vec::new();
        let (ranks, all_ranks) = (self.ranks_of(&hit.sources), self.ranks_of(self.scan.sources()));
        if !ranks.is_empty() && ranks.len() < all_ranks.len() {
            let word = if ranks.len() == 1 { "rank" } else { "ranks" };
            let all = self.scan.facts.ranks.max(all_ranks.len());
            texts.push(format!("only on {word} {} of {all}", some_of(&ranges(&ranks))));
        }
        let (hosts, all_hosts) = (hosts_of(&hit.sources), hosts_of(self.scan.sources()));
        let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
        if !hosts.is_empty() && hosts.len() < all_hosts.len() {
            let others = counted(all_hosts.len() - hosts.len(), "other node");
            texts.push(format!("only on {}, and not on {others}", some_of(&names)));
        } else if hosts.len() > 1 {
            texts.push(format!("on all {} nodes", hosts.len()));
        }
        texts.join("; ")
    }

    /// Returns the further causes that are certain, and do not follow from the first one.
    pub fn others(&self) -> Vec<&Found> {
        let Some(first) = self.verdict.causes.first() else { return Vec::new() };
        let lines: BTreeSet<usize> = first.proofs.iter().map(|proof: &Proof| proof.hit.order).collect();
        let follows = |one: &Found| {
            one.about().late
                || one.about().because.contains(&first.cause)
                || one.proofs.iter().any(|proof| lines.contains(&proof.hit.order))
        };
        let sure = |one: &&Found| one.sure() == crate::explain::table::Sure::Certain && !follows(one);
        self.verdict.causes.iter().skip(1).filter(sure).collect()
    }
}

/// Commands of the node: they ask the kernel, or load modules.
const OF_NODE: &[&str] = &[
    "modprobe",
    "dkms",
    "dmesg",
    "mokutil",
    "modinfo",
    "nvpm",
    "lspci",
    "sysctl",
    "rdma",
    "systemctl",
    "journalctl",
    "lsmod",
    "reboot",
    "df",
];
/// Files that a container does not have, or does not have as the node has them.
const FILES_OF_NODE: &[&str] = &[
    "/lib/modules",
    "/usr/src",
    "/etc/modprobe.d",
    "modules-load.d",
    "/proc/driver",
    "/sys/",
    "/proc/kallsyms",
    "/proc/cmdline",
];

/// Returns a command with the place where it helps, if that is not the place where the log was written.
fn placed(command: String, in_container: bool) -> String {
    let word = command.split(' ').next().unwrap_or_default();
    let of_node = OF_NODE.contains(&word) || FILES_OF_NODE.iter().any(|file| command.contains(file));
    if in_container && of_node && !command.ends_with(')') { format!("{command} (on the node)") } else { command }
}

/// Returns the first names of a list, and how many more there are.
fn some_of<T: AsRef<str>>(names: &[T]) -> String {
    const MOST: usize = 4;
    let shown = names.iter().take(MOST).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if names.len() > MOST { format!("{shown} and {} more", names.len() - MOST) } else { shown }
}

/// Returns sorted numbers as ranges, such as "16-23". Other names stay.
fn ranges(names: &[&str]) -> Vec<String> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for name in names {
        let Ok(number) = name.parse::<usize>() else { return names.iter().map(|name| (*name).to_owned()).collect() };
        match found.last_mut() {
            Some((_, last)) if number == last.saturating_add(1) => *last = number,
            _ => found.push((number, number)),
        }
    }
    let text =
        |(first, last): (usize, usize)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    found.into_iter().map(text).collect()
}
