// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Writes one page for a browser. The page is a single file that loads nothing, runs no script, and can be read without
//! colours, on paper, and with a screen reader.
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nvpm_foreign::ending::{Removal, outlive_full_files, undisturbed};

use crate::show::release::release;
use crate::show::utc;
use crate::text::clean;

/// A border marks each level that needs attention, because a colour alone tells nothing on paper.
const STYLE: &str = include_str!("page.css");
/// The SHA-256 of the style, by which the browser knows it. `tests/compare/test_page.py` compares the two.
const DIGEST: &str = "/dcYCbfMCN73+7VRa79I4cfRIvDa7HI/QsZYe6oBAjM=";
/// A longer text from a node is cut, so that one node does not fill the page.
const LONGEST: usize = 300;
/// The lowest share of the usual rate for each level of a cell. Level 0 is as it should be.
const LEVELS: [f64; 4] = [0.95, 0.8, 0.5, 0.25];
const MARKS: [&str; 5] = ["", "", "▼", "▼▼", "▼▼▼"];
const MEANING: [&str; 5] =
    ["at least 95 %", "80 % or more", "▼ below 80 %", "▼▼ below 50 %", "▼▼▼ below 25 %, or failed"];

/// HTML. The texts in it that come from the nodes of the fleet are escaped, so they contain no tags.
#[derive(Clone)]
pub struct Markup(pub String);

/// Returns a text that comes from a node as HTML without tags.
pub fn escaped(text: &str) -> String {
    let said = clean(text);
    let (begin, end) = match said.char_indices().nth(LONGEST) {
        Some((place, _)) => (said.get(..place).unwrap_or_default(), " …"),
        None => (said.as_str(), ""),
    };
    let mut found = String::with_capacity(begin.len());
    for letter in begin.chars() {
        match letter {
            '&' => found.push_str("&amp;"),
            '<' => found.push_str("&lt;"),
            '>' => found.push_str("&gt;"),
            '"' => found.push_str("&quot;"),
            '\'' => found.push_str("&#x27;"),
            _ => found.push(letter),
        }
    }
    found + end
}

fn attribute(name: &str, value: &str) -> String {
    if value.is_empty() { String::new() } else { format!(" {name}=\"{value}\"") }
}

pub fn element(tag: &str, text: &str, class: &str) -> Markup {
    Markup(format!("<{tag}{}>{}</{tag}>", attribute("class", class), escaped(text)))
}

/// Returns a row of numbers. Each has a text below it and a class.
pub fn tiles(found: &[(usize, &str, &str)]) -> Markup {
    let item = |(number, text, class): &(usize, &str, &str)| {
        format!("<li class=\"{class}\"><b>{number}</b>{}</li>", escaped(text))
    };
    Markup(format!("<ul class=\"tiles\">{}</ul>", found.iter().map(item).collect::<String>()))
}

pub fn table(caption: &str, head: &[String], rows: &[Markup], class: &str) -> Markup {
    let columns: Vec<String> = head.iter().map(|name| format!("<th scope=\"col\">{}</th>", escaped(name))).collect();
    let rows: String = rows.iter().map(|row| row.0.as_str()).collect();
    Markup(format!(
        "<div class=\"wide\"><table{}><caption>{}</caption><thead><tr>{}</tr></thead><tbody>\n{rows}</tbody>\
         </table></div>\n",
        attribute("class", class),
        escaped(caption),
        columns.concat()
    ))
}

/// Returns a row whose head, which is escaped already, also belongs to the rows below, in all SPAN rows.
pub fn row(head: &str, cells: &[Markup], span: usize) -> Markup {
    let rows = if span > 1 { attribute("rowspan", &span.to_string()) } else { String::new() };
    let cells: String = cells.iter().map(|cell| cell.0.as_str()).collect();
    Markup(format!("<tr><th scope=\"row\"{rows}>{head}</th>{cells}</tr>\n"))
}

/// Returns the level of a share of the usual rate. A pair that failed has no share.
fn level(share: Option<f64>) -> usize {
    share.and_then(|share| LEVELS.iter().position(|least| share >= *least)).unwrap_or(LEVELS.len())
}

/// Returns a cell of a heat map, with a mark and a border where the share is low.
pub fn heat(share: Option<f64>, text: &str, below: &str) -> Markup {
    let level = level(share);
    let mark = MARKS.get(level).filter(|mark| !mark.is_empty()).map_or(String::new(), |mark| format!("{mark} "));
    let small = if below.is_empty() { String::new() } else { element("small", below, "").0 };
    Markup(format!("<td class=\"h{level}\">{mark}{}{small}</td>", escaped(text)))
}

/// Returns the levels with their meaning, as a share of something.
pub fn legend(of: &str) -> Markup {
    let cell = |(level, text): (usize, &&str)| format!("<td class=\"h{level}\">{}</td>", escaped(text));
    let cells: String = MEANING.iter().enumerate().map(cell).collect();
    Markup(format!(
        "<table class=\"legend\"><tbody><tr><th scope=\"row\">Share of {}</th>{cells}</tr></tbody></table>\n",
        escaped(of)
    ))
}

/// Returns the text of a page. The browser must load nothing, and apply no other style.
pub fn page(title: &str, body: &[Markup]) -> String {
    let body: String = body.iter().map(|part| part.0.as_str()).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'sha256-{DIGEST}'; base-uri 'none'; form-action 'none'\">\n<meta \
         name=\"referrer\" content=\"no-referrer\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<title>{}</title>\n<style>{STYLE}</style></head>\n<body><main>\n{body}</main><footer>Made \
         on {} by nvpm {}.</footer></body></html>\n",
        escaped(title),
        utc::now_for_people(),
        release()
    )
}

/// A new file that only its owner can read. It is made before the page is made, so that the user sees an error at once.
/// An existing file is not overwritten, and no link is followed. The file is deleted unless it was kept, also if a
/// signal ends nvpm.
pub struct NewFile {
    path: PathBuf,
    file: File,
    is_kept: bool,
    _removal: Removal,
}

impl NewFile {
    /// COMMAND is the command that a message about a signal names.
    pub fn new(path: &Path, command: &str) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        undisturbed(|| {
            let file = options.open(path)?;
            let removal = Removal::of(path, &format!("{command}: {}", not_written(path)));
            Ok(Self { path: path.to_owned(), file, is_kept: false, _removal: removal })
        })
    }

    /// Writes the file. A file that would be larger than the user may have gives an error.
    pub fn keep(mut self, data: impl AsRef<[u8]>) -> io::Result<()> {
        outlive_full_files();
        self.file.write_all(data.as_ref())?;
        self.file.sync_all()?;
        self.is_kept = true;
        Ok(())
    }
}

/// Returns what is said of a file that was not kept.
pub fn not_written(path: &Path) -> String {
    format!("{} is not written", path.display())
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_kept {
            // If the file stays, it is empty or cut, and the error was said.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_cut() {
        assert_eq!(escaped("<a href='x'>&\"\x1b"), "&lt;a href=&#x27;x&#x27;&gt;&amp;&quot;?");
        assert_eq!(escaped(&"x".repeat(301)), format!("{} …", "x".repeat(300)));
        assert_eq!(escaped(&"x".repeat(300)).len(), 300);
    }

    #[test]
    fn a_mark_tells_what_the_colour_tells() {
        for (share, expected) in [
            (Some(1.2), "<td class=\"h0\">x</td>"),
            (Some(0.95), "<td class=\"h0\">x</td>"),
            (Some(0.94), "<td class=\"h1\">x</td>"),
            (Some(0.79), "<td class=\"h2\">▼ x</td>"),
            (Some(0.5), "<td class=\"h2\">▼ x</td>"),
            (Some(0.3), "<td class=\"h3\">▼▼ x</td>"),
            (Some(0.1), "<td class=\"h4\">▼▼▼ x</td>"),
            (None, "<td class=\"h4\">▼▼▼ x</td>"),
        ] {
            assert_eq!(heat(share, "x", "").0, expected);
        }
    }

    #[test]
    fn a_share_has_its_level() {
        for (share, expected) in [
            (Some(1.2), 0),
            (Some(0.95), 0),
            (Some(0.949), 1),
            (Some(0.8), 1),
            (Some(0.5), 2),
            (Some(0.25), 3),
            (Some(0.0), 4),
            (None, 4),
        ] {
            assert_eq!(level(share), expected);
        }
    }
}
