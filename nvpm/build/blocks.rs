// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the form that all files of data have. A line at the margin begins a block, lines below it that are indented by
//! two blanks are its fields, and lines that are indented by four blanks belong to the field above them. A line that
//! begins with `%` is about the file or the blocks below it, and a line that begins with `#` is a comment.
use std::io;

use crate::check::{Mistakes, Place};

pub struct Field {
    pub place: Place,
    pub text: String,
    pub inner: Vec<(Place, String)>,
}

pub struct Block {
    pub place: Place,
    pub head: String,
    pub fields: Vec<Field>,
}

pub struct File {
    pub title: String,
    pub intro: String,
    pub blocks: Vec<Block>,
}

/// Returns the files of a directory in the order of their names, so that the program has the same bytes everywhere.
pub fn files(directory: &str) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        found.push(format!("{directory}/{}", entry?.file_name().to_string_lossy()));
    }
    found.sort();
    Ok(found)
}

pub fn read(path: &str, mistakes: &mut Mistakes) -> io::Result<File> {
    let mut file = File { title: String::new(), intro: String::new(), blocks: Vec::new() };
    for (number, line) in std::fs::read_to_string(path)?.lines().enumerate() {
        let place = Place { file: path.to_owned(), line: number + 1 };
        let text = line.trim();
        if let Some(about) = line.strip_prefix("% ") {
            match about.split_once(' ') {
                Some(("title", rest)) => rest.clone_into(&mut file.title),
                Some(("intro", rest)) => rest.clone_into(&mut file.intro),
                Some(("group", _)) => {}
                _ => mistakes.add(&place, "% is followed by title, intro or group"),
            }
            continue;
        }
        let last = file.blocks.last_mut();
        match line.len() - line.trim_start().len() {
            _ if text.is_empty() || line.starts_with('#') => {}
            0 => file.blocks.push(Block { place, head: text.to_owned(), fields: Vec::new() }),
            2 => match last {
                Some(block) => block.fields.push(Field { place, text: text.to_owned(), inner: Vec::new() }),
                None => mistakes.add(&place, "this field belongs to no block"),
            },
            4 => match last.and_then(|block| block.fields.last_mut()) {
                Some(field) => field.inner.push((place, text.to_owned())),
                None => mistakes.add(&place, "this line belongs to no field"),
            },
            _ => mistakes.add(&place, "a line is indented by two or by four blanks"),
        }
    }
    Ok(file)
}

/// Returns the word of a field, and the rest of the field.
pub fn word_of(text: &str) -> (&str, &str) {
    text.split_once(' ').map_or((text, ""), |(word, rest)| (word, rest.trim()))
}
