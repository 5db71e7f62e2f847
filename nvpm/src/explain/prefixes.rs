// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Splits a line of a log into its prefixes and the message, and says which host and process printed the line.
//! Programs, starters of programs and collectors of logs each add a prefix.
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use regex::bytes::{Captures, Regex};

use crate::explain::pattern::expression;

/// Each item is a form of prefix. A line can have several of them in any order.
const ITEMS: &[&str] = &[
    r"(?:> ?)+", // a quotation in Markdown
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?\]?:?",
    r"\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?",
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ",
    r"(?P<log_host>[\w.-]+) kernel:",
    r"\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\]", // dmesg -T
    r"\[ *\d+\.\d+\]",                                               // dmesg, UCX
    r"\[\d+,(?P<mpi_rank>\d+)\]<std\w+>:",                           // mpirun --tag-output
    r"\[[\w.-]+@\d+,(?P<prte_rank>\d+)\]<std\w+>:",                  // mpirun of Open MPI 5
    r"\[(?:rank|Rank )(?P<torch_rank>\d+)\]:?",
    r"\[default\d+\]:",  // torchrun, with a number that each node counts anew
    r"[\w./-]+ +\| ",    // docker compose
    r"\[pod/[\w./-]+\]", // kubectl --prefix
    r"\((?P<worker>[A-Za-z][\w ]*) ?pid=\d+(?:, ip=[\d.]+)?\)", // Ray, vLLM
    r"(?P<nccl_host>[A-Za-z0-9][\w.-]*):(?P<nccl_pid>\d+):\d+ \[(?P<nccl_gpu>-?\d+)\]",
    r"\[(?P<ucx_host>[A-Za-z0-9][\w.-]*):(?P<ucx_pid>\d+)(?::\d+)*\]",
];
/// Labels stand before another prefix only: the number of a task of `srun --label`, a host of `pdsh` and `clush`.
const LABELS: &str = r"^\s*(?:(?P<task>\d+): (?:\[|\S+:\d+:\d+ \[|[IWEF]\d{4} )|(?P<label>[A-Za-z][A-Za-z-]{0,62}\d[A-Za-z0-9.-]{0,252}): (?:\[|\d+:|\S+:\d+:\d+ \[))";
const ANSI: &str = r"\x1b\[[0-9;?]*[A-Za-z]";
/// Names before a colon that are devices or programs, and no hosts.
const NO_HOST: &str = r"^(?:mlx\d|nvidia\d*|ib\d|eth\d|gpu\d$|cuda\d|libfabric|rank\d|hfi\d|nvme)";
const MOST_KNOWN: usize = 16_384;
pub const MOST_SOURCES: usize = 4096;

/// The program that printed a line. Unknown parts are empty. A process is named by its number, and by its GPU if NCCL
/// prints the GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    pub host: String,
    pub process: String,
    pub rank: String,
}

/// Returns the hosts that the sources name.
pub fn hosts_of<'a>(sources: impl IntoIterator<Item = &'a Rc<Source>>) -> BTreeSet<String> {
    sources.into_iter().map(|one| one.host.clone()).filter(|host| !host.is_empty()).collect()
}

pub struct Prefixes {
    ansi: Option<Regex>,
    labels: Option<Regex>,
    items: Option<Regex>,
    no_host: Option<Regex>,
    nobody: Rc<Source>,
    /// Most prefixes without a time occur again and again.
    known: HashMap<Vec<u8>, Rc<Source>>,
    /// All sources that were seen, as far as they are kept.
    pub sources: BTreeSet<Rc<Source>>,
}

impl Prefixes {
    pub fn new() -> Self {
        Self {
            ansi: expression(ANSI),
            labels: expression(LABELS),
            items: expression(&format!(r"^(?:\s*(?:{}))+ *", ITEMS.join("|"))),
            no_host: expression(NO_HOST),
            nobody: Rc::new(Source::default()),
            known: HashMap::new(),
            sources: BTreeSet::new(),
        }
    }

    /// Returns the source of a line, and the message without prefixes.
    pub fn split<'a>(&mut self, line: &'a [u8]) -> (Rc<Source>, Cow<'a, [u8]>) {
        let line = match &self.ansi {
            Some(ansi) if line.contains(&0x1b) => ansi.replace_all(line, &b""[..]),
            _ => Cow::Borrowed(line),
        };
        let (label, start) = self.label(&line);
        let rest = line.get(start..).unwrap_or_default();
        let end = self.items.as_ref().and_then(|items| items.find(rest)).map_or(0, |found| found.end());
        if start + end == 0 {
            return (Rc::clone(&self.nobody), line);
        }
        let prefix = line.get(..start + end).unwrap_or_default();
        let source = if let Some(known) = self.known.get(prefix) {
            Rc::clone(known)
        } else {
            let found = self.items.as_ref().filter(|_| end > 0).and_then(|items| items.captures(rest));
            let source = Rc::new(self.source_of(found.as_ref(), label));
            if self.sources.len() < MOST_SOURCES {
                self.sources.insert(Rc::clone(&source));
            }
            if self.known.len() < MOST_KNOWN {
                self.known.insert(prefix.to_vec(), Rc::clone(&source));
            }
            source
        };
        let message = match line {
            Cow::Borrowed(line) => Cow::Borrowed(line.get(start + end..).unwrap_or_default()),
            Cow::Owned(mut line) => Cow::Owned(line.split_off(start + end)),
        };
        (source, message)
    }

    /// Returns the label of a line, as a host or a rank, and the place behind it.
    fn label(&self, line: &[u8]) -> (Source, usize) {
        let labels = self.labels.as_ref().filter(|labels| labels.is_match(line));
        let found = labels.and_then(|labels| labels.captures(line));
        let group = |name: &str| found.as_ref().and_then(|found| found.name(name));
        let text = |name: &str| group(name).map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned());
        let end = group("task").or_else(|| group("label")).map_or(0, |text| text.end() + 1);
        let source = Source {
            host: text("label").unwrap_or_default(),
            process: String::new(),
            rank: text("task").unwrap_or_default(),
        };
        (source, end)
    }

    fn source_of(&self, found: Option<&Captures>, label: Source) -> Source {
        let group = |name: &str| {
            let text = found.and_then(|found| found.name(name)).map(|text| text.as_bytes()).unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        };
        let first = |names: &[&str], last: String| {
            names.iter().map(|name| group(name)).find(|text| !text.is_empty()).unwrap_or(last)
        };
        let host = first(&["nccl_host", "ucx_host", "log_host"], label.host);
        let process = match group("nccl_pid") {
            pid if pid.is_empty() => first(&["ucx_pid", "worker"], String::new()),
            pid => format!("{pid}:{}", group("nccl_gpu")),
        };
        let rank = first(&["mpi_rank", "prte_rank", "torch_rank"], label.rank);
        Source { host: self.host_of(host), process, rank }
    }

    /// Domains do not count, because the same host is printed with and without a domain.
    fn host_of(&self, host: String) -> String {
        if self.no_host.as_ref().is_some_and(|names| names.is_match(host.as_bytes())) {
            return String::new();
        }
        if host.chars().all(|letter| letter.is_ascii_digit() || letter == '.') {
            return host;
        }
        host.split('.').next().unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_name_the_source() {
        let mut prefixes = Prefixes::new();
        for (line, host, rank, message) in [
            ("gpu07:4101:4150 [3] net_ib.cc:1295 NCCL WARN x", "gpu07", "", "net_ib.cc:1295 NCCL WARN x"),
            (
                "[1,5]<stderr>:[1700000000.1] [node3.x:99:0] ib_md.c:1 UCX ERROR y",
                "node3",
                "5",
                "ib_md.c:1 UCX ERROR y",
            ),
            ("Nov  3 10:00:00 host9 kernel: mlx5_core z", "host9", "", "mlx5_core z"),
            ("node12: [ 12.3] nvidia w", "node12", "", "nvidia w"),
            ("plain text", "", "", "plain text"),
        ] {
            let (source, rest) = prefixes.split(line.as_bytes());
            assert_eq!((source.host.as_str(), source.rank.as_str()), (host, rank), "{line}");
            assert_eq!(String::from_utf8_lossy(&rest), message);
        }
    }
}
