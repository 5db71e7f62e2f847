// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints a fleet on one screen: the kinds of nodes, and the odd nodes.
use std::collections::BTreeSet;

use indexmap::IndexMap;

use crate::compare::fleet::{Fleet, Kind, Silent};
use crate::compare::groups::{Group, MISSING, value};
use crate::compare::kinds::{deciding, name_of, value_of};
use crate::compare::names::folded;
use crate::compare::usage::{self, by_state};
use crate::text::wrapped;
use crate::used::usage::Usage;

/// The lines of a screen, its columns, and the columns of a name.
const HEIGHT: usize = 24;
const WIDTH: usize = 100;
const NAME: usize = 14;
/// These features describe nodes that are alike.
const DESCRIBING: &[&str] = &[
    "GPU, model",
    "driver, nvidia",
    "driver, flavour",
    "module, state",
    "module, source",
    "RDMA core, peer memory",
    "RDMA device, firmware",
    "ways",
    "kernel",
];
/// These features decide the kind, so they are no further differences between kinds.
const DECIDING: &[&str] = &["kernel", "driver, nvidia", "RDMA core, built for", "GPU, model"];
/// The kinds that the screen has lines for, also if some nodes are odd; the kinds whose sizes are named.
const MOST_KINDS: usize = 8;
const MOST_BESIDE_ODD: usize = 4;
const MOST_SIZES: usize = 6;
const MOST_OF_GROUP: usize = 5;
/// A list of names in a sentence is cut after these columns.
const LONGEST_LIST: usize = 30;

pub fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Returns the first characters of a text.
fn begin(text: &str, length: usize) -> &str {
    text.char_indices().nth(length).map_or(text, |(place, _)| text.get(..place).unwrap_or(text))
}

fn cut(line: &str) -> String {
    if line.chars().count() <= WIDTH { line.to_owned() } else { format!("{} ...", begin(line, WIDTH - 4)) }
}

/// Returns lines with a name before them. If they are more than MOST, the rest is left out.
fn with_name(name: &str, text: &str, most: usize) -> Vec<String> {
    let first = format!("{name:<width$} ", width = NAME - 1);
    let mut lines = wrapped(text, WIDTH, &first, &" ".repeat(NAME));
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = format!("{} ...", begin(last, WIDTH - 4));
        }
    }
    lines
}

/// Returns lines about nodes. Names that do not fit before the text have a line of their own.
fn about<T: AsRef<str>>(names: &[T], text: &str, most: usize) -> Vec<String> {
    let name = folded(names);
    if name.chars().count() <= NAME - 2 {
        return with_name(&name, text, most);
    }
    let mut lines = vec![cut(&name)];
    lines.extend(with_name("", text, most));
    lines
}

pub fn headline(fleet: &Fleet) -> String {
    let (total, kinds, alike) = (fleet.total(), fleet.kinds.len(), fleet.alike());
    let mut texts = Vec::new();
    if total == 1 && alike == 1 {
        texts.push("1 node: there is no other to compare it with".to_owned());
    } else {
        let (of, within) =
            if kinds > 1 { (format!(" of {kinds} kinds"), " within their kind") } else { (String::new(), "") };
        let are = if alike == 1 { "is" } else { "are" };
        texts.push(format!("{}{of}: {alike} {are} alike{within}", plural(total, "node")));
    }
    let odd = fleet.odd();
    let differ: usize = odd.iter().map(|group| group.nodes.len()).sum();
    if differ > 0 {
        texts.push(format!(
            "{differ} {}, in {}",
            if differ == 1 { "differs" } else { "differ" },
            plural(odd.len(), "way")
        ));
    }
    if !fleet.silent.is_empty() {
        texts.push(format!("{} gave no status", fleet.silent.len()));
    }
    if fleet.missing_count > 0 {
        texts.push(format!("{} {} missing", fleet.missing_count, if fleet.missing_count == 1 { "is" } else { "are" }));
    }
    format!("{}.", texts.join(", "))
}

/// Returns which nodes use GPUDirect RDMA now. The names of those that do, and of those that do nothing, would fill the
/// line.
pub fn used_now(fleet: &Fleet) -> String {
    let text = |(state, nodes): (Usage, Vec<&str>)| match state {
        Usage::Direct | Usage::Idle => format!("{}: {}", usage::text(state), plural(nodes.len(), "node")),
        _ => format!("{}: {}", usage::text(state), shortened(&nodes)),
    };
    by_state(&fleet.usage).into_iter().map(text).collect::<Vec<_>>().join("; ")
}

/// Returns a line for each other version of nvpm. Their words are no differences of nodes.
fn versions(fleet: &Fleet) -> Vec<String> {
    let name = |version: &str| if version.is_empty() { "an earlier one".to_owned() } else { version.to_owned() };
    let Some(((usual, _), others)) = fleet.versions.split_first() else { return Vec::new() };
    let mut lines = Vec::new();
    for (version, names) in others {
        lines.extend(about(names, &format!("another nvpm: {}; the others {}", name(version), name(usual)), 2));
    }
    if !others.is_empty() {
        lines.push(format!("{:NAME$}What only the words of two versions tell apart does not count.", ""));
    }
    lines
}

/// Returns for example "12 kinds of 20 nodes" or "2 kinds, of 10 and 9 nodes".
fn sizes(fleet: &Fleet) -> String {
    let counts: Vec<usize> = fleet.kinds.iter().map(|kind| kind.nodes.len()).collect();
    let shown: Vec<String> = counts.iter().take(MOST_SIZES).map(ToString::to_string).collect();
    match (&counts[..], shown.split_last()) {
        ([first, rest @ ..], _) if rest.iter().all(|count| count == first) => {
            format!("{} kinds of {}", counts.len(), plural(*first, "node"))
        }
        (_, Some((last, before))) if counts.len() <= MOST_SIZES => {
            format!("{} kinds, of {} and {last} nodes", counts.len(), before.join(", "))
        }
        _ => format!("{} kinds, of {} nodes and fewer", counts.len(), shown.join(", ")),
    }
}

/// Returns the facts that decide a kind, and how much else differs from the first kind.
fn of_kind(fleet: &Fleet, kind: &Kind, is_first: bool) -> String {
    let keys: Vec<_> = fleet.kinds.iter().map(|one| &one.key).collect();
    let fact = |place: usize| format!("{} {}", name_of(place), value_of(&kind.key, place));
    let text = deciding(&keys).into_iter().map(fact).collect::<Vec<_>>().join(", ");
    let Some(first) = fleet.kinds.first().filter(|_| !is_first) else { return text };
    let names: BTreeSet<&str> = first.norm.keys().chain(kind.norm.keys()).map(|name| &**name).collect();
    let is_other = |name: &&&str| {
        !DECIDING.contains(name)
            && !name.starts_with("selftest")
            && **name != usage::NAME
            && value(&kind.norm, name) != value(&first.norm, name)
    };
    let others = names.iter().filter(is_other).count();
    let more = if others > 0 { plural(others, "other difference") } else { "no other difference".to_owned() };
    format!("{text} ({more} from kind 1)")
}

/// Returns the kinds. If some nodes are odd, the screen has lines for four kinds.
fn kinds(fleet: &Fleet, is_all: bool) -> Vec<String> {
    if fleet.kinds.len() < 2 {
        return Vec::new();
    }
    let mut lines = vec![format!("{}:", sizes(fleet))];
    let is_odd = !fleet.odd().is_empty() || !fleet.silent.is_empty();
    let most = if is_all {
        usize::MAX
    } else if is_odd {
        MOST_BESIDE_ODD
    } else {
        MOST_KINDS
    };
    for (place, kind) in fleet.kinds.iter().enumerate().take(most) {
        let of = of_kind(fleet, kind, place == 0);
        let text = format!("{}: {of}: {}", plural(kind.nodes.len(), "node"), folded(&kind.nodes));
        let name = format!("  kind {}", place + 1);
        if fleet.kinds.len() > 3 && !is_all {
            lines.push(cut(&format!("{name:<NAME$}{text}")));
        } else {
            lines.extend(with_name(&name, &text, if is_all { 101 } else { 2 }));
        }
    }
    if fleet.kinds.len() > most {
        lines.push(format!("  and {} more kinds: nvpm compare --all", fleet.kinds.len() - most));
    }
    lines
}

/// Returns the nodes with the same last words. The words may contain the name of the node, which becomes a star if
/// several nodes have the same words otherwise.
pub fn silent_by_words(fleet: &Fleet) -> Vec<(String, Vec<&str>)> {
    let mut by_words: IndexMap<String, Vec<&Silent>> = IndexMap::new();
    for node in &fleet.silent {
        let is_name = node.name.chars().count() > 2;
        let words = if is_name { node.words.replace(&node.name, "*") } else { node.words.clone() };
        by_words.entry(words).or_default().push(node);
    }
    by_words
        .into_iter()
        .map(|(words, nodes)| {
            let words = if let [one] = nodes[..] { one.words.clone() } else { words };
            (words, nodes.into_iter().map(|node| node.name.as_str()).collect())
        })
        .collect()
}

fn silent(fleet: &Fleet) -> Vec<Vec<String>> {
    let lines = |(words, names): (String, Vec<&str>)| {
        about(&names, &format!("no status: {}", if words.is_empty() { "no output" } else { &words }), 2)
    };
    silent_by_words(fleet).into_iter().map(lines).collect()
}

fn missing(fleet: &Fleet) -> Vec<Vec<String>> {
    let mut blocks = Vec::new();
    if !fleet.missing.is_empty() {
        blocks.push(about(&fleet.missing, "missing: nothing about these nodes was read", 2));
    } else if let Some(expected) = fleet.expected.as_ref().filter(|_| fleet.missing_count > 0) {
        let count = expected.number;
        blocks.push(vec![format!("{count} nodes were expected: --expect with their names says which are missing")]);
    }
    if !fleet.unexpected.is_empty() {
        blocks.push(about(&fleet.unexpected, "not expected, and compared all the same", 2));
    }
    blocks
}

/// Returns lines with the differences of a group. Each difference is printed with the value that the other nodes have.
fn of_group(fleet: &Fleet, group: &Group, most: usize) -> Vec<String> {
    let mut count = if group.nodes.len() > 1 { format!("{} nodes: ", group.nodes.len()) } else { String::new() };
    let mut others = "the others".to_owned();
    if fleet.kinds.len() > 1 {
        others = format!("the others of kind {}", group.kind + 1);
    }
    if !group.like.is_empty() {
        let like = plural(group.like.len(), "node");
        count = format!("{count}as {like} that differ, too ({}), but ", shortened(&group.like));
        "these".clone_into(&mut others);
    }
    let mut lines = Vec::new();
    let mut name = folded(&group.nodes);
    if name.chars().count() > NAME - 2 {
        lines.push(cut(&name));
        name.clear();
    }
    for (feature, its) in &group.differences {
        let usual = value(&group.others, feature);
        let theirs = if usual == MISSING { format!("{others} have none") } else { format!("{others} {usual}") };
        lines.extend(with_name(&name, &format!("{count}{feature}: {its}; {theirs}"), 2));
        name.clear();
        count.clear();
    }
    if lines.len() > most {
        lines.truncate(most - 1);
        lines.push(format!("{:NAME$}and {} differences in all", "", group.differences.len()));
    }
    lines
}

fn shortened<T: AsRef<str>>(names: &[T]) -> String {
    let name = folded(names);
    if name.chars().count() <= LONGEST_LIST { name } else { format!("{} ...", begin(&name, LONGEST_LIST - 4)) }
}

fn alike(fleet: &Fleet) -> Vec<String> {
    let Some(kind) = fleet.kinds.first() else { return Vec::new() };
    let part =
        |name: &&str| kind.norm.get(*name).filter(|value| &***value != MISSING).map(|value| format!("{name}: {value}"));
    with_name("most nodes", &DESCRIBING.iter().filter_map(part).collect::<Vec<_>>().join("; "), 4)
}

/// Returns one screen: the odd nodes first.
pub fn lines(fleet: &Fleet, is_all: bool) -> Vec<String> {
    let mut found = wrapped(&headline(fleet), WIDTH, "", "");
    let mut lines = versions(fleet);
    if !fleet.usage.is_empty() {
        lines.extend(with_name(usage::NAME, &used_now(fleet), 2));
    }
    lines.extend(kinds(fleet, is_all));
    let mut room = if is_all { usize::MAX } else { HEIGHT - 6 };
    if lines.len() > room / 2 {
        lines.truncate(room / 2);
        lines.push("  and more of this: nvpm compare --all".to_owned());
    }
    room -= lines.len();
    found.extend(lines);
    let mut blocks = silent(fleet);
    blocks.extend(missing(fleet));
    let most = if is_all { usize::MAX } else { MOST_OF_GROUP };
    blocks.extend(fleet.odd().into_iter().map(|group| of_group(fleet, group, most)));
    let mut left = blocks.len();
    for block in blocks {
        if block.len() > room {
            break;
        }
        room -= block.len();
        left -= 1;
        found.extend(block);
    }
    if left > 0 {
        found.push(format!("and {left} more groups: nvpm compare --all"));
    }
    if fleet.kinds.len() < 2 {
        found.extend(alike(fleet));
    }
    found
}
