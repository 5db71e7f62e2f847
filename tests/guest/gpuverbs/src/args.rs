// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The command line: what a command takes is a table, from which both the
//! parser and the usage text work.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::failure::Failure;

/// One option: `--name VALUE`, or `--name` alone where there is no value.
pub struct Opt {
    name: &'static str,
    value: Option<&'static str>,
    required: bool,
    help: &'static str,
}

impl Opt {
    pub const fn required(name: &'static str, value: &'static str, help: &'static str) -> Self {
        Self {
            name,
            value: Some(value),
            required: true,
            help,
        }
    }

    pub const fn optional(name: &'static str, value: &'static str, help: &'static str) -> Self {
        Self {
            name,
            value: Some(value),
            required: false,
            help,
        }
    }

    pub const fn flag(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            value: None,
            required: false,
            help,
        }
    }
}

pub struct Command {
    pub name: &'static str,
    pub summary: &'static str,
    /// In groups, because several commands share some.
    pub options: &'static [&'static [Opt]],
    pub run: fn(&Args) -> Result<(), Failure>,
}

impl Command {
    fn option(&self, name: &str) -> Option<&'static Opt> {
        self.options
            .iter()
            .flat_map(|group| group.iter())
            .find(|option| option.name == name)
    }

    pub fn usage(&self) -> String {
        let all = || self.options.iter().flat_map(|group| group.iter());
        let form = |option: &Opt| match option.value {
            Some(value) => format!("--{} {value}", option.name),
            None => format!("--{}", option.name),
        };
        let mut text = format!("Usage: gpuverbs {}", self.name);
        for option in all().filter(|option| option.required) {
            let _ = write!(text, " {}", form(option));
        }
        if all().any(|option| !option.required) {
            text.push_str(" [OPTION]...");
        }
        let _ = writeln!(text, "\n{}.\n", self.summary);
        let width = all().map(|option| form(option).len()).max().unwrap_or(0);
        for option in all() {
            let _ = writeln!(text, "  {:width$}  {}", form(option), option.help);
        }
        text.push_str(
            "\nSizes and offsets: 65536, 0x10000, 64K, 3M+17 (K, M, G are powers of 1024).\n",
        );
        text
    }

    /// The words after the command's name.
    pub fn parse(&self, words: &[String]) -> Result<Args, Failure> {
        let mut values = BTreeMap::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(text) = word.strip_prefix("--") else {
                return Err(usage(format!("'{word}' is not an option")));
            };
            let (name, attached) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (text, None),
            };
            let Some(option) = self.option(name) else {
                return Err(usage(format!("{} has no option --{name}", self.name)));
            };
            let value = match (option.value, attached) {
                (None, None) => String::new(),
                (None, Some(_)) => return Err(usage(format!("--{name} takes no value"))),
                (Some(_), Some(value)) => value,
                (Some(form), None) => words
                    .next()
                    .ok_or_else(|| usage(format!("--{name} needs a value: --{name} {form}")))?
                    .clone(),
            };
            if values.insert(option.name, value).is_some() {
                return Err(usage(format!("--{name} is given twice")));
            }
        }
        for option in self.options.iter().flat_map(|group| group.iter()) {
            if option.required && !values.contains_key(option.name) {
                let form = option.value.unwrap_or_default();
                return Err(usage(format!("--{} {form} is missing", option.name)));
            }
        }
        Ok(Args { values })
    }
}

/// What the command line said.
pub struct Args {
    values: BTreeMap<&'static str, String>,
}

impl Args {
    pub fn flag(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// A size, an offset or any other number.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match number(text) {
            Some(number) => Ok(Some(number)),
            None => Err(usage(format!(
                "--{name}: '{text}' is not a number below 2^64"
            ))),
        }
    }

    /// A number that the command cannot do without.
    pub fn required(&self, name: &str) -> Result<u64, Failure> {
        self.number(name)?
            .ok_or_else(|| usage(format!("--{name} is missing")))
    }

    /// One of several words; the first when the option is not given.
    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<T, Failure> {
        let text = self.text(name).unwrap_or(choices[0].0);
        if let Some((_, meaning)) = choices.iter().find(|(word, _)| *word == text) {
            return Ok(*meaning);
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        Err(usage(format!(
            "--{name}: '{text}' is none of {}",
            words.join(", ")
        )))
    }
}

pub fn usage(text: impl Into<String>) -> Failure {
    Failure::Usage(text.into())
}

/// A sum of numbers, each decimal or 0x…, each with K, M or G behind it or not.
pub fn number(text: &str) -> Option<u64> {
    text.split('+').try_fold(0u64, |sum, term| {
        let (digits, unit) = match term.chars().last()? {
            'k' | 'K' => (&term[..term.len() - 1], 1 << 10),
            'm' | 'M' => (&term[..term.len() - 1], 1 << 20),
            'g' | 'G' => (&term[..term.len() - 1], 1 << 30),
            _ => (term, 1),
        };
        let (digits, radix) = match digits.strip_prefix("0x") {
            Some(hex) => (hex, 16),
            None => (digits, 10),
        };
        // from_str_radix() would take a sign.
        if !digits.chars().all(|digit| digit.is_digit(radix)) {
            return None;
        }
        let value = u64::from_str_radix(digits, radix).ok()?;
        sum.checked_add(value.checked_mul(unit)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: Command = Command {
        name: "test",
        summary: "Tests",
        options: &[
            &[
                Opt::required("length", "SIZE", "how much"),
                Opt::flag("hold", "waits"),
            ],
            &[Opt::optional("op", "OP", "what")],
        ],
        run: |_| Ok(()),
    };

    fn parse(line: &str) -> Result<Args, Failure> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        TEST.parse(&words)
    }

    fn complaint(line: &str) -> String {
        match parse(line) {
            Err(Failure::Usage(text)) => text,
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("'{line}' was accepted"),
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(number("0"), Some(0));
        assert_eq!(number("65536"), Some(65536));
        assert_eq!(number("64K"), Some(65536));
        assert_eq!(number("64k"), Some(65536));
        assert_eq!(number("0x10000"), Some(65536));
        assert_eq!(number("0x10K"), Some(16 * 1024));
        assert_eq!(number("3M+17"), Some(3 * 1024 * 1024 + 17));
        assert_eq!(number("2G"), Some(1 << 31));
        assert_eq!(number("18446744073709551615"), Some(u64::MAX));
    }

    #[test]
    fn not_numbers() {
        for text in [
            "",
            "K",
            "-1",
            "+1",
            "1+",
            "0x",
            "0x+1",
            "1.5M",
            "64KB",
            "ten",
            "1 ",
            "18446744073709551616",
            "17179869184G",
            "18446744073709551615+1",
            "µ",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn values_in_both_spellings() {
        for line in [
            "--length 64K --hold --op read",
            "--op=read --hold --length=64K",
        ] {
            let args = parse(line).unwrap();
            assert_eq!(args.required("length").unwrap(), 65536);
            assert!(args.flag("hold"));
            assert_eq!(args.text("op"), Some("read"));
        }
        assert!(!parse("--length 1").unwrap().flag("hold"));
    }

    #[test]
    fn choices() {
        let choices = [("write", 1), ("read", 2)];
        assert_eq!(
            parse("--length 1").unwrap().choice("op", &choices).unwrap(),
            1
        );
        let args = parse("--length 1 --op read").unwrap();
        assert_eq!(args.choice("op", &choices).unwrap(), 2);
        assert!(parse("--length 1 --op x")
            .unwrap()
            .choice("op", &choices)
            .is_err());
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(complaint(""), "--length SIZE is missing");
        assert_eq!(
            complaint("--length"),
            "--length needs a value: --length SIZE"
        );
        assert_eq!(
            complaint("--length 1 --length 2"),
            "--length is given twice"
        );
        assert_eq!(complaint("--length 1 --hold=yes"), "--hold takes no value");
        assert_eq!(complaint("--length 1 --nope"), "test has no option --nope");
        assert_eq!(complaint("--length 1 extra"), "'extra' is not an option");
    }

    #[test]
    fn usage_names_everything() {
        let text = TEST.usage();
        assert!(text.starts_with("Usage: gpuverbs test --length SIZE [OPTION]...\n"));
        for part in ["--hold ", "--op OP", "how much", "waits", "what"] {
            assert!(text.contains(part), "{part}");
        }
    }
}
