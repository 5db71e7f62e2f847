// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints the answer for people, in 12 lines at most: the command to type first, the cause, the line that shows it, and
//! what to do.
use crate::explain::answer::{Answer, Kind};
use crate::explain::failure::is_bad;
use crate::explain::judge::{Aside, Found, NO_CASE, NOTICE_HERE};
use crate::explain::prefixes::hosts_of;
use crate::explain::scan::Hit;
use crate::explain::table::Sure;
use crate::explain::wording::{counted, plain, sentence, stopped};
use crate::text::{clean, wrapped};

const HEIGHT: usize = 12;
/// The width if the output is no terminal.
const WIDTH: usize = 100;
/// Lines of a sentence.
const MOST_LINES: usize = 3;
const MOST_SHOWN: usize = 3;
const INDENT: &str = "  ";
const NOTHING_KNOWN: &str = "nvpm knows no line of this log, and no line looks like a failure. That does not say that \
                             all is well.";
const NOT_SAID: &str = "No line is a failure, and no line says whether GPUDirect RDMA is used. NCCL's channels say it \
                        (/GDRDMA, with NCCL_DEBUG=INFO), and UCX with UCX_PROTO_INFO=y.";
const ROUTINE: &str = "No line names a cause. Programs print these lines and go on:";
const NOTHING_WRONG: &str = "No line is a failure. These lines say that nothing is wrong:";
const OVERCOME: &str = "No failure is left: the first of these lines failed, and the second says that it worked later.";
const ELSEWHERE: &str = "nvpm does not know this; what it was elsewhere:";
const NO_CAUSE: &str = "No cause: these lines follow from a failure that is not in this log.";

pub struct Screen<'a> {
    answer: &'a Answer<'a>,
    width: usize,
    /// Changes a line of the log before it is printed.
    quoted: &'a dyn Fn(&str) -> String,
}

impl<'a> Screen<'a> {
    pub fn new(answer: &'a Answer<'a>, width: usize, quoted: &'a dyn Fn(&str) -> String) -> Self {
        Self { answer, width: if width == 0 { WIDTH } else { width.max(40) }, quoted }
    }

    pub fn brief(&self) -> Vec<String> {
        let mut lines = self.lines();
        lines.truncate(HEIGHT);
        lines
    }

    /// Returns the answer, and every message that was found, with the reason if it shows no cause.
    pub fn everything(&self) -> Vec<String> {
        let mut lines = self.lines();
        for found in &self.answer.verdict.causes {
            lines.push(String::new());
            lines.extend(self.sentence(&format!("{} ({}):", plain(found.says()), sure_word(found.sure())), 9, ""));
            for proof in &found.proofs {
                lines.extend(self.message(proof.variant.message, &proof.hit));
            }
        }
        for (title, asides) in [("Follows", &self.answer.verdict.follows), ("Aside", &self.answer.verdict.aside)] {
            for one in asides {
                lines.push(format!("{title}: {}:", one.why));
                lines.extend(self.message(one.variant.message, &one.hit));
            }
        }
        for hit in self.answer.unknown() {
            lines.push("Not known:".to_owned());
            lines.extend(self.line(hit, 0));
        }
        lines.iter().map(|line| clean(line)).collect()
    }

    /// Returns a sentence in at most MOST lines.
    fn sentence(&self, text: &str, most: usize, start: &str) -> Vec<String> {
        let mut lines = wrapped(text, self.width, start, INDENT);
        if lines.len() > most {
            lines.truncate(most);
            if let Some(last) = lines.last_mut() {
                let room = self.width.saturating_sub(4);
                *last = format!("{} ...", last.chars().take(room).collect::<String>());
            }
        }
        lines
    }

    fn place(&self, hit: &Hit) -> String {
        let files = &self.answer.scan.files;
        match files.get(hit.file) {
            Some(name) if files.len() > 1 => format!("{}:{}", (self.quoted)(name), hit.line),
            _ => format!("line {}", hit.line),
        }
    }

    /// Returns a line of the log with its place. If the line is too long, it is cut before START, where the message
    /// begins, and divided.
    fn line(&self, hit: &Hit, start: usize) -> Vec<String> {
        let place = format!("{}: ", self.place(hit));
        let whole = (self.quoted)(&hit.text);
        let room = self.width.saturating_sub(place.len() + INDENT.len());
        let shown = if whole.chars().count() <= room || start == 0 {
            whole
        } else {
            format!("... {}", (self.quoted)(hit.text.get(start..).unwrap_or_default()))
        };
        self.sentence(&format!("{place}{shown}"), MOST_LINES, INDENT)
    }

    fn message(&self, message: usize, hit: &Hit) -> Vec<String> {
        let start = self.answer.scan.known.range(message, &hit.text).map_or(0, |range| range.start);
        self.line(hit, start)
    }

    fn lines(&self) -> Vec<String> {
        let scan = self.answer.scan;
        let name = match &scan.files[..] {
            [one] => (self.quoted)(one),
            files => format!("{} files", files.len()),
        };
        let about = self.answer.log();
        let colon = if about.is_empty() { "" } else { ": " };
        let mut lines = self.sentence(&format!("{name}: {}{colon}{about}", counted(scan.lines, "line")), 2, "");
        match self.answer.kind() {
            Kind::Cause => self.causes(&mut lines),
            Kind::Perhaps => self.perhaps(&mut lines),
            Kind::Follows => self.follows(&mut lines),
            Kind::Unknown => self.unknown(&mut lines),
            Kind::Nothing => self.nothing(&mut lines),
        }
        lines.iter().map(|line| clean(line)).collect()
    }

    fn first(&self, lines: &mut Vec<String>, command: Option<String>) {
        if let Some(command) = command {
            lines.push(format!("First: {}", (self.quoted)(&plain(&command))));
        }
    }

    /// Adds what the log says about the use of GPUDirect RDMA.
    fn used(&self, lines: &mut Vec<String>) {
        for text in self.answer.scan.success.sentences() {
            lines.extend(self.sentence(&stopped(&(self.quoted)(&text)), 2, ""));
        }
    }

    fn causes(&self, lines: &mut Vec<String>) {
        let Some(first) = self.answer.verdict.causes.first() else { return };
        self.first(lines, self.answer.first_command(first));
        self.cause(lines, first);
        self.node(lines, first);
        for other in self.answer.others().into_iter().take(2) {
            let place = other.best().map(|best| self.place(&best.hit)).unwrap_or_default();
            lines.extend(self.sentence(&format!("Also: {} ({place}).", plain(other.says())), 2, ""));
        }
        self.used(lines);
        self.besides(lines);
    }

    fn cause(&self, lines: &mut Vec<String>, found: &Found) {
        let Some(best) = found.best() else { return };
        let ours = found.about().ours || found.about().subject;
        let other = if ours { "" } else { " nv_peer_mem is not the cause." };
        let sure = sure_word(found.sure());
        let says = stopped(&plain(found.says()));
        lines.extend(self.sentence(&format!("Cause ({sure}): {says}{other}"), MOST_LINES, ""));
        lines.extend(self.message(best.variant.message, &best.hit));
        self.repeated(lines, found);
        let note = best.variant.row().note;
        if !note.is_empty() {
            lines.extend(self.sentence(&stopped(&plain(&sentence(note))), 2, INDENT));
        }
        lines.extend(self.sentence(&format!("To do: {}", stopped(&self.todo(found))), MOST_LINES, ""));
    }

    fn todo(&self, found: &Found) -> String {
        let of_node = self.answer.node.and_then(|node| node.advice(found));
        plain(&of_node.unwrap_or_else(|| found.todo().to_owned()))
    }

    /// Adds how often the line is in the log, on which nodes, and how many other messages show the same cause.
    fn repeated(&self, lines: &mut Vec<String>, found: &Found) {
        let Some(best) = found.best() else { return };
        let mut texts = Vec::new();
        if best.hit.count > 1 {
            texts.push(format!("{} like it", counted(best.hit.count, "line")));
        }
        texts.push(self.answer.who(&best.hit));
        let mut others: Vec<usize> = found.proofs.iter().map(|proof| proof.variant.message).collect();
        others.sort_unstable();
        others.dedup();
        if others.len() > 1 {
            texts.push(format!("{} with the same cause", counted(others.len() - 1, "other message")));
        }
        texts.retain(|text| !text.is_empty());
        if !texts.is_empty() {
            lines.extend(self.sentence(&(self.quoted)(&format!("{}.", texts.join("; "))), 1, INDENT));
        }
    }

    /// Adds what this node says about the cause, or which node shows the cause.
    fn node(&self, lines: &mut Vec<String>, found: &Found) {
        if let Some(node) = self.answer.node {
            if let Some((fact, fits)) = node.word(found) {
                let judged = if fits { "That fits." } else { "That speaks against this cause now." };
                lines.extend(self.sentence(&format!("This node: {fact}. {judged}"), 2, ""));
            }
            return;
        }
        let status = plain(found.about().status);
        if !status.is_empty() {
            let hosts = found.best().map(|best| hosts_of(&best.hit.sources)).unwrap_or_default();
            let place = hosts.first().map_or("on the node of the log".to_owned(), |host| format!("on {host}"));
            let text = format!("nvpm status --all {place} shows it: {status}.");
            lines.extend(self.sentence(&(self.quoted)(&text), 1, ""));
        }
    }

    /// Adds where lines stand that look like failures, and that no cause explains.
    fn besides(&self, lines: &mut Vec<String>) {
        let hits = self.answer.unknown();
        if let Some(first) = hits.first() {
            let kinds = counted(hits.len(), "other kind");
            let place = self.place(first);
            let text = if hits.len() == 1 {
                format!("{kinds} of line looks like a failure, and nvpm does not know it ({place}).")
            } else {
                format!("{kinds} of line look like failures, and nvpm does not know them (from {place} on).")
            };
            lines.extend(self.sentence(&text, 1, ""));
        }
    }

    fn perhaps(&self, lines: &mut Vec<String>) {
        let Some(first) = self.answer.verdict.causes.first() else { return };
        let Some(best) = first.best() else { return };
        self.first(lines, self.answer.first_command(first));
        let unknown = self.answer.unknown();
        if let Some(hit) = unknown.first().filter(|hit| hit.is_topic && hit.order < best.hit.order) {
            lines.extend(self.line(hit, 0));
        }
        lines.extend(self.message(best.variant.message, &best.hit));
        lines.extend(self.sentence(ELSEWHERE, 1, ""));
        let todo = self.sentence(&format!("To do: {}", stopped(&self.todo(first))), MOST_LINES, "");
        for (place, found) in self.answer.verdict.causes.iter().take(MOST_SHOWN).enumerate() {
            let tell = plain(found.about().tell);
            let tell = if tell.is_empty() { tell } else { format!(" ({tell})") };
            let item = self.sentence(&format!("- {}{tell}.", plain(found.says())), 2, "");
            if place == 0 || lines.len() + item.len() + todo.len() <= HEIGHT {
                lines.extend(item);
            }
        }
        lines.extend(todo);
        self.used(lines);
        self.besides(lines);
    }

    fn follows(&self, lines: &mut Vec<String>) {
        self.first(lines, self.answer.look());
        lines.extend(self.sentence(NO_CAUSE, 1, ""));
        let shown: Vec<_> = self.answer.verdict.follows.iter().take(2).collect();
        for one in &shown {
            lines.extend(self.message(one.variant.message, &one.hit));
        }
        let mut advice: Vec<&str> =
            shown.iter().map(|one| one.variant.row().todo).filter(|text| !text.is_empty()).collect();
        advice.dedup();
        if !advice.is_empty() {
            let text = stopped(&plain(&advice.join("; ")));
            lines.extend(self.sentence(&format!("To do: {text}"), MOST_LINES, ""));
        }
        self.used(lines);
        self.besides(lines);
    }

    fn unknown(&self, lines: &mut Vec<String>) {
        let hits = self.answer.unknown();
        if hits.is_empty() {
            self.used(lines);
            self.routine(lines);
            return;
        }
        self.first(lines, self.answer.look());
        self.used(lines);
        if let Some(text) = self.answer.scan.crash.sentence() {
            lines.extend(self.sentence(&stopped(&text), 2, ""));
        }
        let kinds = counted(hits.len(), "kind");
        let text = format!("These lines look like failures, and nvpm knows none of them ({kinds} of line):");
        lines.extend(self.sentence(&text, 2, ""));
        // The lines about GPUDirect RDMA are chosen, in the order of the log.
        let mut shown: Vec<&&Hit> = hits.iter().take(MOST_SHOWN).collect();
        shown.sort_by_key(|hit| hit.order);
        for hit in shown {
            lines.extend(self.line(hit, 0));
        }
        let node = if self.answer.look().is_some() { "; nvpm status says what is wrong on the node" } else { "" };
        lines.extend(self.sentence(&format!("To do: the first of them is nearest to the cause{node}."), 2, ""));
    }

    /// Adds the routine lines that look like failures, and what they mean.
    fn routine(&self, lines: &mut Vec<String>) {
        let routine: Vec<_> = self.answer.verdict.aside.iter().filter(|one| one.why == NOTICE_HERE).collect();
        let shown: Vec<_> = routine.iter().filter(|one| is_bad(&one.hit.text)).take(MOST_SHOWN).collect();
        let text = match (shown.is_empty(), routine.is_empty()) {
            (false, _) => ROUTINE,
            (true, false) => NOT_SAID,
            (true, true) => NOTHING_KNOWN,
        };
        lines.extend(self.sentence(text, 2, ""));
        for one in shown {
            lines.extend(self.message(one.variant.message, &one.hit));
            let note = plain(&sentence(one.variant.row().note));
            if !note.is_empty() {
                lines.extend(self.sentence(&stopped(&note), 2, INDENT));
            }
        }
    }

    fn nothing(&self, lines: &mut Vec<String>) {
        self.used(lines);
        if let Some((hit, done)) = &self.answer.verdict.overcome {
            lines.push(OVERCOME.to_owned());
            lines.extend(self.line(hit, 0));
            lines.extend(
                self.line(&Hit { file: done.file, line: done.line, text: done.text.clone(), ..hit.clone() }, 0),
            );
            return;
        }
        // A line that does not look like a failure needs no comfort, and that a thing is possible proves nothing.
        let comforts = |one: &&Aside| one.why != NO_CASE && is_bad(&one.hit.text);
        let fine: Vec<_> = self.answer.verdict.aside.iter().filter(comforts).take(MOST_SHOWN).collect();
        if fine.is_empty() && !self.answer.scan.success.sentences().is_empty() {
            return;
        }
        lines.extend(self.sentence(if fine.is_empty() { NOT_SAID } else { NOTHING_WRONG }, 2, ""));
        for one in fine {
            lines.extend(self.message(one.variant.message, &one.hit));
        }
    }
}

pub fn sure_word(sure: Sure) -> &'static str {
    match sure {
        Sure::Certain => "certain",
        Sure::Probable => "probable",
        Sure::Possible => "possible",
    }
}
