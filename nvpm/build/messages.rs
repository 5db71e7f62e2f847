// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the files of messages, and the lists of cases that several messages share.
use crate::blocks::{Block, Field, File, word_of};
use crate::causes::Cause;
use crate::check::{Mistakes, Place};
use crate::errno_names::{ERRORS, Errors};
use crate::facts::{Fact, Kind, place_of};
use crate::keys::keys;
use crate::placeholder::{NAMED, Piece, pieces};

pub enum Condition {
    Errors(Errors),
    Line(String),
    Fact(usize),
    Version(usize, String, String),
    Variable(String, String),
    Named(String, String),
}

#[derive(Default)]
pub struct Case {
    pub cause: usize,
    pub sure: &'static str,
    pub when: Vec<Condition>,
    pub unless: Vec<Condition>,
    pub says: String,
    pub todo: String,
    pub here: String,
    pub first: String,
}

#[derive(Default)]
pub struct Message {
    pub text: String,
    pub section: usize,
    pub general: bool,
    pub kind: &'static str,
    pub from: String,
    pub note: String,
    pub todo: String,
    pub never: Vec<Condition>,
    pub cases: Vec<Case>,
    /// The message in the source's own format, or as users met it.
    pub formats: Vec<String>,
}

pub struct Tables {
    pub sections: Vec<(String, String)>,
    pub messages: Vec<Message>,
}

/// A case is a bit in a set of 128.
const MOST_CASES: usize = 128;
/// A shorter text is in too many lines.
const SHORTEST: usize = 4;
const SURE: &[(&str, &str)] = &[("certain", "Certain"), ("probable", "Probable"), ("possible", "Possible")];
const SIGNS: &[(&str, &str)] = &[("<=", "UpTo"), (">=", "From"), ("<", "Before"), (">", "After"), ("=", "Same")];

struct Reader<'a> {
    lists: &'a File,
    causes: &'a mut Vec<Cause>,
    facts: &'a [Fact],
    kinds: &'a [Kind],
    mistakes: &'a mut Mistakes,
}

pub fn of_files(
    files: &[(bool, File)],
    lists: &File,
    causes: &mut Vec<Cause>,
    facts: &[Fact],
    kinds: &[Kind],
    mistakes: &mut Mistakes,
) -> Tables {
    let mut reader = Reader { lists, causes, facts, kinds, mistakes };
    let mut tables = Tables { sections: Vec::new(), messages: Vec::new() };
    for list in &lists.blocks {
        if !files.iter().any(|(_, file)| file.blocks.iter().any(|block| names_list(block, &list.head))) {
            reader.mistakes.add(&list.place, format!("no message has the cases {}", list.head));
        }
    }
    for (section, (general, file)) in files.iter().enumerate() {
        tables.sections.push((file.title.clone(), file.intro.clone()));
        for block in &file.blocks {
            if tables.messages.iter().any(|one| one.text == block.head) {
                reader.mistakes.add(&block.place, "this message stands twice");
            }
            tables.messages.push(Message { section, general: *general, ..reader.message(block) });
        }
    }
    tables
}

fn names_list(block: &Block, list: &str) -> bool {
    block.fields.iter().any(|field| word_of(&field.text).0 == "cases" && word_of(word_of(&field.text).1).0 == list)
}

/// Returns whether a case of a message may be certain: a public thread confirms it, or the text itself says the cause,
/// as each message of this package does.
fn may_be_certain(block: &Block) -> bool {
    let field = |word: &str| block.fields.iter().find(|field| word_of(&field.text).0 == word);
    let from = field("from").map(|field| field.text.as_str());
    field("seen").is_some() || field("itself").is_some() || from.is_none_or(|from| from.contains('#'))
}

fn doubted(case: Case) -> Case {
    if case.sure == "Certain" { Case { sure: "Probable", ..case } } else { case }
}

impl Reader<'_> {
    fn message(&mut self, block: &Block) -> Message {
        let mut message = Message { text: block.head.clone(), kind: "Cause", ..Message::default() };
        let mut id = "";
        let may_be_certain = may_be_certain(block);
        for field in &block.fields {
            let (word, rest) = word_of(&field.text);
            match word {
                "from" => {
                    let (from, format) = rest.split_once(" | ").unwrap_or((rest, ""));
                    from.clone_into(&mut message.from);
                    message.formats.extend((!format.is_empty()).then(|| format.to_owned()));
                }
                "seen" => message.from = format!("{}; {rest}", message.from),
                "met" => message.formats.push(rest.to_owned()),
                "note" => rest.clone_into(&mut message.note),
                "do" => rest.clone_into(&mut message.todo),
                "id" => id = rest,
                "fine" => message.kind = "Fine",
                "notice" => message.kind = "Notice",
                "follows" => message.kind = "Follows",
                "reason" => message.kind = "Reason",
                "never" => message.never = self.conditions(&field.place, rest).0,
                "itself" => {}
                "cases" => {
                    let cases = self.list(&field.place, rest).into_iter();
                    message.cases.extend(cases.map(|case| if may_be_certain { case } else { doubted(case) }));
                }
                _ => {
                    let case = self.case(field, id);
                    if !may_be_certain && case.as_ref().is_some_and(|case| case.sure == "Certain") {
                        let text = "a certain case needs a thread (seen), or a text that says the cause (itself)";
                        self.mistakes.add(&field.place, text);
                    }
                    message.cases.extend(case);
                }
            }
        }
        self.check(block, &message);
        message
    }

    fn check(&mut self, block: &Block, message: &Message) {
        if keys_of(message, self.kinds).iter().any(|key| key.len() < SHORTEST) {
            self.mistakes.add(&block.place, "this message has too little literal text");
        }
        if message.cases.len() > MOST_CASES {
            self.mistakes.add(&block.place, "this message has too many cases");
        }
        if !["Fine", "Notice"].contains(&message.kind)
            && ["Cause", "Reason"].contains(&message.kind) == message.cases.is_empty()
        {
            self.mistakes.add(&block.place, "a message has cases, or the word fine, notice or follows");
        }
    }

    /// Reads the name of a list of cases, and the conditions that this message adds to each case.
    fn list(&mut self, place: &Place, text: &str) -> Vec<Case> {
        let lists = self.lists;
        let (name, conditions) = word_of(text);
        let Some(list) = lists.blocks.iter().find(|list| list.head == name) else {
            self.mistakes.add(place, format!("data/lists.table has no {name}"));
            return Vec::new();
        };
        let mut cases: Vec<Case> = list.fields.iter().filter_map(|field| self.case(field, "")).collect();
        for case in &mut cases {
            let (when, unless) = self.conditions(place, conditions);
            case.when.extend(when);
            case.unless.extend(unless);
        }
        cases
    }

    /// Reads a case: a cause, how sure it is, and the conditions. The cause `own` is one that only this message has.
    fn case(&mut self, field: &Field, id: &str) -> Option<Case> {
        let (name, rest) = word_of(&field.text);
        let (sure, conditions) = word_of(rest);
        let Some((_, sure)) = SURE.iter().find(|(word, _)| *word == sure) else {
            self.mistakes
                .add(&field.place, format!("a message has no field {name}; a case is CAUSE certain|probable|possible"));
            return None;
        };
        let mut case = Case { sure, ..Case::default() };
        for (place, text) in &field.inner {
            let (word, rest) = word_of(text);
            match word {
                "says" => rest.clone_into(&mut case.says),
                "do" => rest.clone_into(&mut case.todo),
                "here" => rest.clone_into(&mut case.here),
                "first" => rest.clone_into(&mut case.first),
                _ => self.mistakes.add(place, format!("a case has no field {word}")),
            }
        }
        if name == "own" {
            case.cause = self.own_cause(field, id, &mut case);
        } else if let Some(place) = self.causes.iter().position(|cause| cause.key == name) {
            case.cause = place;
        } else {
            self.mistakes.add(&field.place, format!("there is no cause {name}"));
        }
        (case.when, case.unless) = self.conditions(&field.place, conditions);
        Some(case)
    }

    fn own_cause(&mut self, field: &Field, id: &str, case: &mut Case) -> usize {
        if id.is_empty() || case.says.is_empty() {
            self.mistakes.add(&field.place, "a message with its own cause has an id, and the cause says something");
        }
        let first = std::mem::take(&mut case.first);
        self.causes.push(Cause {
            key: id.to_owned(),
            place: field.place.clone(),
            name: id.to_owned(),
            says: std::mem::take(&mut case.says),
            todo: std::mem::take(&mut case.todo),
            first: if first.is_empty() { "nvpm status".to_owned() } else { first },
            here: std::mem::take(&mut case.here),
            is: vec!["subject".to_owned()],
            ..Cause::default()
        });
        self.causes.len() - 1
    }

    /// Reads conditions. A condition that begins with `!` must not hold.
    fn conditions(&mut self, place: &Place, text: &str) -> (Vec<Condition>, Vec<Condition>) {
        let (mut when, mut unless) = (Vec::new(), Vec::new());
        for token in tokens(text) {
            let bare = token.strip_prefix('!').unwrap_or(&token);
            match self.condition(bare) {
                Some(one) if bare.len() < token.len() => unless.push(one),
                Some(one) => when.push(one),
                None => self.mistakes.add(place, format!("there is no condition {token}")),
            }
        }
        (when, unless)
    }

    fn is_version(&self, place: usize) -> bool {
        self.facts.get(place).is_some_and(|fact| fact.is_version)
    }

    fn condition(&self, text: &str) -> Option<Condition> {
        if let Some(names) = text.strip_prefix("errno=") {
            let errors: Option<Vec<Errors>> = names.split(',').map(error_named).collect();
            return errors.map(|found| Condition::Errors(found.iter().fold(0, |all, one| all | one)));
        }
        if let Some(part) = text.strip_prefix("line=") {
            return Some(Condition::Line(part.to_owned())).filter(|_| pieces(part) != [Piece::Any]);
        }
        if let Some(variable) = text.strip_prefix("set=") {
            let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
            return Some(Condition::Variable(name.to_owned(), value.to_owned()));
        }
        if let Some((of, name)) = text.split_once('=').filter(|(of, _)| NAMED.contains(of)) {
            let known = self.kinds.iter().any(|kind| kind.of == of && kind.name == name);
            return known.then(|| Condition::Named(of.to_owned(), name.to_owned()));
        }
        for (sign, word) in SIGNS {
            if let Some((name, version)) = text.split_once(sign) {
                let place = place_of(self.facts, name).filter(|place| self.is_version(*place))?;
                return Some(Condition::Version(place, (*word).to_owned(), version.to_owned()));
            }
        }
        place_of(self.facts, text).filter(|place| !self.is_version(*place)).map(Condition::Fact)
    }
}

/// Returns the set that has only the error with this name, or all errors for `any`.
fn error_named(name: &str) -> Option<Errors> {
    if name == "any" {
        return Some((1 << ERRORS.len()) - 1);
    }
    ERRORS.iter().position(|error| error.0 == name).map(|place| 1 << place)
}

/// Returns texts of which each line with the message has at least one. A message that is only a name of some kind has
/// the beginnings of these names, up to their first underscore.
pub fn keys_of(message: &Message, kinds: &[Kind]) -> Vec<String> {
    let [Piece::Named(of)] = pieces(&message.text)[..] else { return keys(&message.text) };
    let names = kinds.iter().filter(|kind| kind.of == of).flat_map(|kind| &kind.globs);
    let mut found: Vec<String> = names.filter_map(|name| Some(format!("{}_", name.split_once('_')?.0))).collect();
    found.sort();
    found.dedup();
    found
}

/// Divides conditions at blanks, but not within quotation marks, which are taken off.
fn tokens(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut quoted = false;
    for letter in text.chars() {
        match letter {
            '"' => quoted = !quoted,
            ' ' if !quoted => found.push(String::new()),
            _ => found.iter_mut().last().unwrap_or(&mut String::new()).push(letter),
        }
    }
    found.retain(|token| !token.is_empty());
    found
}
