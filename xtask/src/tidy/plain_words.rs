//! Words for people, counted in comments and documents: a thread, a file or a lock is a thing, and a sentence
//! about it has the thing's name as its subject. A table has the crates that say such words too often.

use std::collections::BTreeMap;

use super::tree::{File, Finding, Tree};
use crate::source::{RustSource, words};

/// The words. A line's code, text in backticks and names of that kind (`The Who`) do not count.
const PEOPLE: &[&str] = &[
    "who",
    "whoever",
    "whom",
    "whose",
    "somebody",
    "someone",
    "anybody",
    "anyone",
    "nobody",
    "everybody",
    "everyone",
];

/// The word that things may have, if it comes after one: "a CPU whose queue is empty".
const OF_THINGS: &str = "whose";

/// Words that are no thing: a `whose` after one of these asks for a person, or for a name that is missing.
const NO_THINGS: &[&str] = &[
    "a", "after", "and", "as", "asks", "at", "before", "but", "by", "for", "from", "in", "into",
    "is", "knows", "no", "not", "of", "on", "or", "out", "over", "say", "says", "see", "shows",
    "tell", "tells", "than", "that", "the", "through", "to", "under", "upon", "where", "with",
];

/// How many of them a thousand words may have.
const PER_THOUSAND: f64 = 0.5;

/// How many places a message shows.
const SHOWN: usize = 12;

/// What has more than the limit, with how many there are. The numbers may only become less; a row goes once
/// the limit holds.
const TABLE: &[(&str, usize)] = &[];

/// Texts of one crate, or of one folder at the root.
#[derive(Default)]
struct Prose<'a> {
    words: usize,
    /// Each word for people: the file, the line from 1, the word.
    people: Vec<(&'a File, usize, &'a str)>,
}

/// Rule "plain-words": at most [`PER_THOUSAND`] of [`PEOPLE`] in the comments and documents of a crate, but
/// for [`TABLE`].
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    against(tree, TABLE)
}

fn against(tree: &Tree, table: &[(&str, usize)]) -> Vec<Finding> {
    let mut all: BTreeMap<&str, Prose> = BTreeMap::new();
    for file in &tree.files {
        if let Some(name) = home(&file.path) {
            read(file, all.entry(name).or_default());
        }
    }
    let mut findings = Vec::new();
    let mut say = |name: &str, message: String| {
        findings.push(Finding {
            place: name.to_owned(),
            line: 0,
            message,
        });
    };
    for (name, _) in table.iter().filter(|(name, _)| !all.contains_key(name)) {
        let message = "has a row in xtask/src/tidy/plain_words.rs and no text";
        say(name, message.to_owned());
    }
    for (name, prose) in &all {
        let count = prose.people.len();
        let limit = limit(prose.words);
        let row = table.iter().find(|(of, _)| of == name);
        let most = row.map_or(limit, |(_, count)| *count);
        if count > most {
            let shown = shown(&prose.people);
            let text = prose.words;
            say(
                name,
                format!("{count} words for people in {text} words, at most {most}: {shown}"),
            );
        } else if row.is_some() && count <= limit {
            let message = format!("{count} words for people: delete its row in plain_words.rs");
            say(name, message);
        } else if row.is_some() && count < most {
            let message = format!("{count} words for people: lower its row in plain_words.rs");
            say(name, message);
        }
    }
    findings
}

/// How many words for people a text of this many words may have.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the words of a repository are few, and none are less than none"
)]
fn limit(words: usize) -> usize {
    (words as f64 * PER_THOUSAND / 1000.0) as usize
}

/// The row that a file belongs to: its crate, its folder at the root, or `docs` for a document at the root.
/// Captured data is no text of the project's.
fn home(path: &str) -> Option<&str> {
    let is_text = path.ends_with(".rs") || path.ends_with(".md");
    if !is_text || path.contains("testdata/") {
        return None;
    }
    let in_crates = path.strip_prefix("crates/").unwrap_or(path);
    Some(in_crates.split_once('/').map_or("docs", |(name, _)| name))
}

/// Adds the words of a file's comments, or of a document.
fn read<'a>(file: &'a File, prose: &mut Prose<'a>) {
    match &file.rust {
        Some(source) => read_comments(file, source, prose),
        None => read_document(file, prose),
    }
}

fn read_comments<'a>(file: &'a File, source: &'a RustSource, prose: &mut Prose<'a>) {
    for remark in source.remarks() {
        let mut text = Text::default();
        for line in remark.first..=remark.last {
            text.read(file, line + 1, &source.lines[line].comment, prose);
        }
    }
}

/// A document's paragraphs. Blocks of code between fences are left out.
fn read_document<'a>(file: &'a File, prose: &mut Prose<'a>) {
    let mut text = Text::default();
    let mut is_fenced = false;
    for (index, line) in file.text.lines().enumerate() {
        let begun = line.trim();
        if begun.starts_with("```") {
            is_fenced = !is_fenced;
            text = Text::default();
        } else if begun.is_empty() {
            text = Text::default();
        } else if !is_fenced {
            text.read(file, index + 1, line, prose);
        }
    }
}

/// One comment or paragraph while its lines are read.
#[derive(Default)]
struct Text<'a> {
    /// Whether a backtick has opened code that goes on.
    in_code: bool,
    /// The word before, unless a sentence has begun since.
    before: Option<&'a str>,
}

impl<'a> Text<'a> {
    fn read(&mut self, file: &'a File, line: usize, text: &'a str, prose: &mut Prose<'a>) {
        for (index, piece) in text.split('`').enumerate() {
            if index > 0 {
                self.in_code = !self.in_code;
            }
            if self.in_code {
                // A name in backticks is a thing too.
                self.before = Some("`");
                continue;
            }
            let mut end = 0;
            for (at, word) in words(piece) {
                if piece[end..at].contains(['.', ':', ';', '?', '!', '"', '(', '|']) {
                    self.before = None;
                }
                end = at + word.len();
                prose.words += usize::from(word.starts_with(char::is_alphabetic));
                if self.is_for_people(word) {
                    prose.people.push((file, line, word));
                }
                self.before = Some(word);
            }
            if piece[end..].contains(['.', ':', ';', '?', '!', '"', '(', '|']) {
                self.before = None;
            }
        }
    }

    fn is_for_people(&self, word: &str) -> bool {
        let small = word.to_lowercase();
        if !PEOPLE.contains(&&small[..]) {
            return false;
        }
        let Some(before) = self.before else {
            return true;
        };
        if small != word {
            return false;
        }
        small != OF_THINGS || NO_THINGS.contains(&&before.to_lowercase()[..])
    }
}

/// Some of the places.
fn shown(people: &[(&File, usize, &str)]) -> String {
    let first = people.iter().take(SHOWN);
    let places: Vec<String> = first
        .map(|(file, line, word)| format!("{}:{line} {word}", file.path))
        .collect();
    let shown = places.join(", ");
    match people.len() - places.len() {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    const A: &str = "crates/x/src/a.rs";

    fn found(files: &[(&str, &str)], table: &[(&str, usize)]) -> Vec<String> {
        shown(&against(&Tree::of(files), table))
    }

    /// How many words for people a Rust file has.
    fn count(text: &str) -> usize {
        let tree = Tree::of(&[(A, text)]);
        let mut prose = Prose::default();
        read(&tree.files[0], &mut prose);
        prose.people.len()
    }

    /// Goal: each of the words is found in each kind of comment, with its place. Method: one of them in a
    /// file of few words.
    #[test]
    fn words_for_people_are_found() {
        for word in PEOPLE {
            for mark in ["//", "///", "//!"] {
                let text = format!("//! One.\n{mark} {word} waits\n");
                let words = 3;
                let expected = [format!(
                    "x: 1 words for people in {words} words, at most 0: {A}:2 {word}"
                )];
                assert_eq!(found(&[(A, &text)], &[]), expected);
            }
        }
        assert_eq!(count("fn f() {} // Whoever asks.\n/* and who */\n"), 2);
    }

    /// Goal: what is no such word does not count. Method: code, strings, backticks, blocks of code over
    /// several lines, names, longer words.
    #[test]
    fn other_words_do_not_count() {
        assert_eq!(count("let who = \"nobody\";\n"), 0);
        assert_eq!(count("/// `who` and `nobody\n/// who` here\n"), 0);
        assert_eq!(count("/// ```\n/// who\n/// ```\n/// and who\n"), 1);
        assert_eq!(count("// The Who, by WHO; a whole\n"), 0);
    }

    /// Goal: `whose` counts where it stands for a person. Method: after things, with and without a comma,
    /// after other words, and at the beginning of a sentence.
    #[test]
    fn things_may_have_something() {
        assert_eq!(count("// A CPU whose queue, or an `f`\n// whose end.\n"), 0);
        assert_eq!(count("// One, whose end is there.\n"), 0);
        assert_eq!(count("// The CPU in whose queue it is.\n"), 1);
        assert_eq!(count("// Its end. Whose it is: whose?\n"), 2);
    }

    /// Goal: documents are read, captured data is not, and each text has its row. Method: files at several
    /// places.
    #[test]
    fn documents_are_read() {
        let row = |name, place: &str| {
            format!("{name}: 1 words for people in 2 words, at most 0: {place} who")
        };
        for (path, name) in [
            ("README.md", "docs"),
            ("docs/a.md", "docs"),
            ("tests/tests/a.rs", "tests"),
            ("xtask/src/a.rs", "xtask"),
            ("crates/x/src/a.md", "x"),
        ] {
            let expected = [row(name, &format!("{path}:1"))];
            assert_eq!(found(&[(path, "// and who")], &[]), expected);
        }
        let text = "And\n\n```text\nwho\n```\n`a\n\nwho\n";
        assert_eq!(found(&[("a.md", text)], &[]).len(), 1);
        let others = [("crates/x/testdata/a.md", "who"), ("a.txt", "who")];
        assert!(found(&others, &[]).is_empty());
    }

    /// Goal: the rate is the limit. Method: a text that is just long enough, and one that is a word
    /// shorter.
    #[test]
    fn a_long_text_may_have_some() {
        let enough = format!("// {} who\n", "word ".repeat(1999));
        assert!(found(&[(A, &enough)], &[]).is_empty());
        let short = format!("// {} who\n", "word ".repeat(1998));
        assert_eq!(found(&[(A, &short)], &[]).len(), 1);
    }

    /// Goal: the table allows what is there and no more, and follows it. Method: rows that fit, that are too
    /// small and too large, that are not needed any more, and one for nothing.
    #[test]
    fn the_table_may_only_become_less() {
        let text = "// who and who\n";
        assert!(found(&[(A, text)], &[("x", 2)]).is_empty());
        let more = format!("x: 2 words for people in 3 words, at most 1: {A}:1 who, {A}:1 who");
        assert_eq!(found(&[(A, text)], &[("x", 1)]), [more]);
        let lower = ["x: 2 words for people: lower its row in plain_words.rs"];
        assert_eq!(found(&[(A, text)], &[("x", 3)]), lower);
        let delete = ["x: 0 words for people: delete its row in plain_words.rs"];
        assert_eq!(found(&[(A, "// and\n")], &[("x", 1)]), delete);
        let gone = ["x: has a row in xtask/src/tidy/plain_words.rs and no text"];
        assert_eq!(found(&[], &[("x", 1)]), gone);
    }
}
