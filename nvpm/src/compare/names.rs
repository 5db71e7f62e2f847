// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Folds and unfolds names of nodes. The folded form is the one that tools for clusters use, such as node[1-3,7].
use indexmap::IndexMap;

/// No fleet has more nodes. A hostile node may print a heading such as n[0-999999999].
pub const MOST: usize = 100_000;
/// A number of a name has at most this number of digits.
const MOST_DIGITS: usize = 18;

/// Returns the names in a text such as node[1-3,7],gpu4. The error says why a text is no list of names.
pub fn unfolded(text: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for word in words(text) {
        let mut made = vec![String::new()];
        for (is_range, part) in parts(word) {
            let choices = if is_range { numbers(part)? } else { vec![part.to_owned()] };
            if !is_range && part.contains(['[', ']']) {
                return Err(format!("{word} is not a list of nodes such as node[1-5,7]"));
            }
            // No further names are made after too many, because a word may have many brackets.
            if names.len() + made.len() * choices.len() > MOST {
                return Err(format!("{word} has more than {MOST} nodes"));
            }
            made = made.iter().flat_map(|begin| choices.iter().map(move |choice| format!("{begin}{choice}"))).collect();
        }
        names.append(&mut made);
    }
    Ok(names)
}

/// Divides a text at its commas and line ends. Commas within brackets do not end a name.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = end_of_word(text);
        let (word, behind) = end.map_or((text, None), |end| (&text[..end], Some(&text[end + 1..])));
        rest = behind;
        Some(word.trim())
    })
    .filter(|word| !word.is_empty())
}

fn end_of_word(text: &str) -> Option<usize> {
    let mut closed_at = 0;
    text.char_indices().find_map(|(place, letter)| match letter {
        '[' if place >= closed_at => {
            let inner = text.get(place + 1..)?;
            let length = inner.find(['[', ']']).filter(|length| inner[*length..].starts_with(']'));
            closed_at = length.map_or(closed_at, |length| place + 1 + length);
            None
        }
        ',' if place >= closed_at => Some(place),
        '\n' => Some(place),
        _ => None,
    })
}

/// Divides a word into ranges of numbers in brackets, and the texts between them.
fn parts(word: &str) -> Vec<(bool, &str)> {
    let mut found = Vec::new();
    let (mut begin, mut from) = (0, 0);
    while let Some(open) = word[from..].find('[').map(|place| from + place) {
        let inner = &word[open + 1..];
        let length = inner.find(|letter: char| !matches!(letter, '0'..='9' | ',' | '-')).unwrap_or(inner.len());
        from = open + 1;
        if length > 0 && inner[length..].starts_with(']') {
            found.extend([(false, &word[begin..open]), (true, &inner[..length])]);
            begin = open + length + 2;
            from = begin;
        }
    }
    found.push((false, &word[begin..]));
    found
}

/// Returns the numbers in a text such as 1-3,7. They keep the width of the first number of their range, as in 08-10.
fn numbers(text: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |digits: &str| {
            let good =
                !digits.is_empty() && digits.len() <= MOST_DIGITS && digits.bytes().all(|one| one.is_ascii_digit());
            digits.parse::<usize>().ok().filter(|_| good)
        };
        let (Some(low), Some(high)) = (number(first), number(last)) else {
            return Err(format!("[{text}] is not a list of numbers such as [1-5,7]"));
        };
        if high < low {
            return Err(format!("[{text}] is not a list of numbers such as [1-5,7]"));
        }
        if high - low + found.len() >= MOST {
            return Err(format!("[{text}] has more than {MOST} numbers"));
        }
        found.extend((low..=high).map(|number| format!("{number:0width$}", width = first.len())));
    }
    Ok(found)
}

/// Returns the names in the short form that tools for clusters use, such as node[1-3,7].
pub fn folded<T: AsRef<str>>(names: &[T]) -> String {
    let mut by_stem: IndexMap<(&str, &str), Vec<&str>> = IndexMap::new();
    for name in names {
        let name = name.as_ref();
        match divided(name) {
            Some((stem, digits, end)) => by_stem.entry((stem, end)).or_default().push(digits),
            None => {
                by_stem.entry((name, "")).or_default();
            }
        }
    }
    let text = |((stem, end), digits): (&(&str, &str), &Vec<&str>)| match &digits[..] {
        [] => (*stem).to_owned(),
        [one] => format!("{stem}{one}{end}"),
        _ => format!("{stem}[{}]{end}", runs(digits).join(",")),
    };
    by_stem.iter().map(text).collect::<Vec<_>>().join(",")
}

/// Divides a name into the text before its last number, the number, and the text behind it.
fn divided(name: &str) -> Option<(&str, &str, &str)> {
    let end = name.rfind(|letter: char| letter.is_ascii_digit())? + 1;
    let begin = name[..end]
        .rfind(|letter: char| !letter.is_ascii_digit())
        .map_or(0, |place| place + name[place..].chars().next().map_or(1, char::len_utf8));
    let begin = begin.max(end.saturating_sub(MOST_DIGITS));
    Some((&name[..begin], &name[begin..end], &name[end..]))
}

/// Returns the ranges of consecutive numbers of the same width.
fn runs(digits: &[&str]) -> Vec<String> {
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    let mut sorted = digits.to_vec();
    sorted.sort_by_key(|text| (text.len(), number(text)));
    let mut found: Vec<(&str, &str)> = Vec::new();
    for text in sorted {
        match found.last_mut() {
            Some((_, last)) if number(last) + 1 == number(text) && last.len() == text.len() => *last = text,
            _ => found.push((text, text)),
        }
    }
    let run = |(first, last): (&str, &str)| if first == last { first.to_owned() } else { format!("{first}-{last}") };
    found.into_iter().map(run).collect()
}

/// Returns the first part of the name of a host. An address stays as it is.
pub fn without_domain(name: &str) -> &str {
    let is_name = name.starts_with(char::is_alphabetic);
    name.split('.').next().filter(|_| is_name).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unfolded() {
        for (text, names) in [
            ("node[1-3,7],gpu4", &["node1", "node2", "node3", "node7", "gpu4"][..]),
            ("n[08-10]", &["n08", "n09", "n10"]),
            ("r[1-2]n[1-2]", &["r1n1", "r1n2", "r2n1", "r2n2"]),
            ("a, b\nc", &["a", "b", "c"]),
            ("", &[]),
        ] {
            assert_eq!(unfolded(text).unwrap(), names, "{text}");
        }
        for text in ["n[", "n[1-", "n[a]", "n[3-1]", "n[0-999999999]", "n[1-1000]m[1-1000]", "n[1-3]]"] {
            assert!(unfolded(text).is_err(), "{text}");
        }
        assert_eq!(unfolded("n[1-100000]").unwrap().len(), MOST);
        assert!(unfolded("n[1-100001]").is_err());
    }

    #[test]
    fn names_are_folded() {
        for (names, text) in [
            (&["node1", "node3", "node2", "node7"][..], "node[1-3,7]"),
            (&["a"], "a"),
            (&["n9", "n10"], "n[9,10]"),
            (&["n09", "n10"], "n[09-10]"),
            (&["rack1-gpu", "rack2-gpu"], "rack[1-2]-gpu"),
            (&["x", "n1", "y"], "x,n1,y"),
        ] {
            assert_eq!(folded(names), text);
        }
    }

    #[test]
    fn an_address_keeps_its_points() {
        assert_eq!(without_domain("alpha.example.org"), "alpha");
        assert_eq!(without_domain("10.0.0.1"), "10.0.0.1");
    }
}
