//! The paths in a Rust file: what it imports, and the paths in its code.

use crate::source::RustSource;

/// A path's names in order: `["crate", "kernel", "FULL"]`.
pub(super) type Path = Vec<String>;

/// One name that a `use` brings, or a glob.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// Ends in `*` if it is a glob.
    pub(super) path: Path,
    alias: Option<String>,
    pub(super) line: usize,
    /// Whether it is a re-export, `pub` in any form.
    pub(super) is_passed_on: bool,
    /// Whether the file's code says the name again.
    pub(super) is_used: bool,
}

impl Import {
    pub(super) fn is_glob(&self) -> bool {
        self.path.last().is_some_and(|last| last == "*")
    }

    /// The name it has in this file.
    pub(super) fn name(&self) -> Option<&String> {
        let own = self.path.last().filter(|_| !self.is_glob());
        self.alias.as_ref().or(own)
    }
}

/// A word, or a piece of punctuation, with its line from 1.
#[derive(Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// Imports and paths of a file's code outside of tests.
pub(super) fn imports_and_paths(source: &RustSource) -> (Vec<Import>, Vec<(Path, usize)>) {
    let tokens = tokens(source);
    let mut imports = Vec::new();
    let mut paths = Vec::new();
    let mut said = std::collections::BTreeSet::new();
    let mut at = 0;
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    while at < tokens.len() {
        let line = tokens[at].line;
        // `use<'a>` is a bound.
        if text(at) == "use" && text(at + 1) != "<" {
            let is_passed_on = is_public(&tokens[..at]);
            let mut reader = UseTree {
                tokens: &tokens[..],
                at: at + 1,
                found: Vec::new(),
            };
            reader.read(&mut Vec::new());
            at = reader.at;
            imports.extend(reader.found.into_iter().map(|(path, alias)| Import {
                path,
                alias,
                line,
                is_passed_on,
                is_used: false,
            }));
            continue;
        }
        let mut path = Vec::new();
        let is_begin = is_word(text(at)) && !(at > 0 && [":", "."].contains(&text(at - 1)));
        // `pub(in crate::a)` limits visibility, and uses nothing.
        let is_visibility = at > 0 && text(at - 1) == "in" && at > 1 && text(at - 2) == "(";
        while is_word(text(at)) {
            said.insert(text(at));
            path.push(text(at).to_owned());
            if text(at + 1) == ":" && text(at + 2) == ":" && is_word(text(at + 3)) {
                at += 3;
            } else {
                break;
            }
        }
        at += 1;
        if path.len() > 1 && is_begin && !is_visibility {
            paths.push((path, line));
        }
    }
    for import in &mut imports {
        import.is_used = import.name().is_some_and(|name| said.contains(&name[..]));
    }
    (imports, paths)
}

/// Reads `a::{b, c::{self, d as e}, f::*};`.
struct UseTree<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    found: Vec<(Path, Option<String>)>,
}

impl UseTree<'_> {
    fn text(&self) -> &str {
        self.tokens.get(self.at).map_or(";", |token| token.text)
    }

    /// One branch, up to the comma, brace or semicolon behind it.
    fn read(&mut self, before: &mut Path) {
        let length = before.len();
        loop {
            match self.text() {
                "{" => {
                    self.at += 1;
                    while !["}", ";"].contains(&self.text()) {
                        self.read(before);
                        if self.text() == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    break;
                }
                ":" => self.at += 1,
                "," | "}" | ";" => {
                    self.leaf(before.clone(), None);
                    break;
                }
                "as" => {
                    self.at += 1;
                    let alias = self.text().to_owned();
                    self.at += 1;
                    self.leaf(before.clone(), Some(alias));
                    break;
                }
                name => {
                    let name = name.to_owned();
                    before.push(name);
                    self.at += 1;
                }
            }
        }
        before.truncate(length);
    }

    fn leaf(&mut self, mut path: Path, alias: Option<String>) {
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if !path.is_empty() {
            self.found.push((path, alias));
        }
    }
}

/// Whether these tokens end in `pub`, or in `pub(…)`.
fn is_public(before: &[Token<'_>]) -> bool {
    let last = before.last().map_or("", |token| token.text);
    let open = before.iter().rposition(|token| token.text == "(");
    match (last, open) {
        ("pub", _) => true,
        (")", Some(open)) => open > 0 && before[open - 1].text == "pub",
        _ => false,
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn tokens(source: &RustSource) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (index, line) in source
        .lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !line.test)
    {
        let mut rest = line.code.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let length = word.unwrap_or(rest.len()).max(first.len_utf8());
            let (text, behind) = rest.split_at(length);
            tokens.push(Token {
                text,
                line: index + 1,
            });
            rest = behind.trim_start();
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, Vec<String>) {
        let (imports, paths) = imports_and_paths(&RustSource::new(text));
        let shown = |import: &Import| {
            let path = import.path.join("::");
            let name = import.name().map_or("", |name| name);
            match (import.is_passed_on, import.is_used) {
                (true, false) => format!("{path} passed on as {name}"),
                (true, true) => format!("{path} passed on as {name} and used"),
                (false, _) => format!("{path} as {name}"),
            }
        };
        let paths = paths.iter().map(|(path, _)| path.join("::"));
        (imports.iter().map(shown).collect(), paths.collect())
    }

    /// Goal: every name of an import is found. Method: nested braces over several lines, `self`, `as`, globs.
    #[test]
    fn imports_are_taken_apart() {
        let text = "use a::{\n    b,\n    c::{self, D as E},\n};\nuse super::*;\nuse f;\n";
        let expected = [
            "a::b as b",
            "a::c as c",
            "a::c::D as E",
            "super::* as ",
            "f as f",
        ];
        assert_eq!(read(text).0, expected);
    }

    /// Goal: re-exports are told apart, those that the file uses too. Method: three forms of `pub`.
    #[test]
    fn re_exports_are_told_apart() {
        let text =
            "pub use a::B;\npub(crate) use c::D;\npub(in crate::x) use e::F;\nfn f(x: D) {}\n";
        let expected = [
            "a::B passed on as B",
            "c::D passed on as D and used",
            "e::F passed on as F",
        ];
        assert_eq!(read(text).0, expected);
    }

    /// Goal: paths of code are found, other things are not. Method: a call, a type in brackets, a field, a
    /// visibility, a test, text.
    #[test]
    fn paths_of_code_are_found() {
        let text = "pub(in crate::x) fn f(v: Vec<crate::a::B>) -> u8 {\n    super::g(self.x, \"y::z\")\n}\n\
                    #[cfg(test)]\nmod tests {\n    use crate::t::T;\n}\n";
        assert_eq!(
            read(text),
            (
                Vec::new(),
                vec!["crate::a::B".to_owned(), "super::g".to_owned()]
            )
        );
    }
}
