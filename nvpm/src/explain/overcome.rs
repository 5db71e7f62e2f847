// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Collects the lines that say that something succeeded, and finds the failures that such a later line has overcome: a
//! retry that worked, or a module that was loaded in place of another.
use std::collections::BTreeSet;
use std::sync::OnceLock;

use regex::bytes::Regex;

use crate::explain::failure::is_bad;
use crate::explain::pattern::expression;
use crate::explain::scan::Hit;

const MOST: usize = 512;
const SUCCESS: &str =
    r"(?i:\b(?:succeeded|success(?:ful(?:ly)?)?|recovered|restored|passed|ok|loaded|(?:re)?connected to)\b)";
/// A line with such a word before the success does not say that something succeeded.
const TAKEN_BACK: &str = r"(?i:\b(?:not|no|never|if|unless|must|should|would|could|can|whether|until|wait\w*|to be|please|without|only|when|once)\b)";
/// A transfer through host memory is no success of one by GPUDirect RDMA.
const OTHER_WAY: &str = r"(?i:\bhost\b|\bsysmem|\bcpu\b|\bsystem memory|fall(?:ing)? ?back|\bcopy|\bsocket\b|\btcp\b)";
const AGAIN: &str =
    r"(?i:\bretry(?:ing)?\b|\battempt #?\d|\bwaiting for\b|\bwaits? (?:for|until)\b|\btry(?:ing)? (?:again|next)\b)";
const LOADING: &str = r"(?i:modprobe|insmod|insert|load|not found in directory|\bModule\b)";
const OF_GPU: &str = r"(?i:gpu|cuda|vram|device memory|dma-?buf)";
/// Names of functions, modules and devices. The names of source files stand in lines that have nothing in common.
const NAME: &str = r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)+";
const DEVICE: &str = r"\b(?:mlx[45]_(?:bond_)?\d+|[a-z_]+_?\d+|\d{1,3}(?:\.\d{1,3}){3})\b";

/// A line that says that something succeeded.
#[derive(Clone)]
pub struct Done {
    pub order: usize,
    pub file: usize,
    pub line: usize,
    pub host: String,
    pub text: String,
}

/// The lines of a log that say so, as far as they are kept.
#[derive(Default)]
pub struct Overcome {
    done: Vec<Done>,
}

fn regex(place: usize) -> Option<&'static Regex> {
    const PATTERNS: [&str; 8] = [SUCCESS, TAKEN_BACK, OTHER_WAY, AGAIN, LOADING, OF_GPU, NAME, DEVICE];
    static SLOTS: [OnceLock<Option<Regex>>; 8] = [const { OnceLock::new() }; 8];
    SLOTS.get(place)?.get_or_init(|| PATTERNS.get(place).and_then(|pattern| expression(pattern))).as_ref()
}

fn has(place: usize, text: &str) -> bool {
    regex(place).is_some_and(|found| found.is_match(text.as_bytes()))
}

fn words(place: usize, text: &str) -> BTreeSet<String> {
    let found = regex(place).into_iter().flat_map(|regex| regex.find_iter(text.as_bytes()));
    found.map(|word| name_of(&String::from_utf8_lossy(word.as_bytes()))).collect()
}

/// Returns a name as the kernel writes it. The two peer-memory modules stand in for each other.
fn name_of(name: &str) -> String {
    let name = name.to_ascii_lowercase().replace('-', "_");
    if ["nv_peer_mem", "nvidia_peermem"].contains(&name.as_str()) { "peermem".to_owned() } else { name }
}

/// Returns whether a line says that something succeeded.
pub fn is_success(line: &str) -> bool {
    // An expression takes more time to make than most logs take to read.
    let small = line.to_ascii_lowercase();
    if !["ok", "succe", "recover", "restor", "passed", "loaded", "connected to"].iter().any(|word| small.contains(word))
    {
        return false;
    }
    let Some(found) = regex(0).and_then(|success| success.find(line.as_bytes())) else { return false };
    let before = line.get(..found.start()).unwrap_or_default();
    !has(1, before) && !is_bad(line)
}

impl Overcome {
    pub fn add(&mut self, done: Done) {
        if self.done.len() < MOST {
            self.done.push(done);
        }
    }

    /// Returns the later line by which a failure was overcome. PART is the part of the line that says what failed.
    pub fn of(&self, hit: &Hit, part: &str) -> Option<&Done> {
        if self.done.is_empty() {
            return None;
        }
        let names = words(6, part);
        let fits = |done: &&Done| {
            done.order > hit.last
                && hit.sources.iter().all(|source| source.host == done.host)
                && (is_retry(hit, done) || is_same(hit, &names, done))
        };
        self.done.iter().find(fits)
    }
}

/// Returns whether a failure says that the program goes on trying.
fn is_retry(hit: &Hit, done: &Done) -> bool {
    has(3, &hit.text) && !has(2, &done.text)
}

/// Returns whether a success is of the same function, module or device as a failure.
fn is_same(hit: &Hit, names: &BTreeSet<String>, done: &Done) -> bool {
    let is_loaded = done.text.to_ascii_lowercase().contains("loaded");
    let (failed, worked) = (words(7, &hit.text), words(7, &done.text));
    names.intersection(&words(6, &done.text)).next().is_some()
        && (!is_loaded || has(4, &hit.text))
        && (!has(5, &hit.text) || has(5, &done.text) || is_loaded)
        && !has(2, &done.text)
        && (failed.is_empty() || worked.is_empty() || failed.intersection(&worked).next().is_some())
        && (hit.count == 1 || worked.is_empty())
}
