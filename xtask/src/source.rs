//! A Rust file taken apart into code and comments, line by line: enough for the house rules, which
//! look for words, comments and the extent of items, and far less than a parser.
//!
//! The text inside strings is blanked, so that a word in a message is no word of the program.

/// One Rust file.
pub(crate) struct RustSource {
    pub(crate) lines: Vec<Line>,
}

/// One line of it. `code` and `comment` have no character in common.
#[derive(Default)]
pub(crate) struct Line {
    /// The code, with comments left out and the insides of strings and characters blanked.
    pub(crate) code: String,
    /// The text of comments on this line, documentation included.
    pub(crate) comment: String,
    /// Whether the line belongs to an item under `#[cfg(test)]`.
    pub(crate) test: bool,
}

/// A function's name and extent, from the line of `fn` to that of its last brace; lines from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// A comment: lines that follow each other and hold nothing else, or what stands behind code.
pub(crate) struct Remark {
    /// Its first and its last line, from 0.
    pub(crate) first: usize,
    pub(crate) last: usize,
    /// Its words, without the marks of a comment and without ends of lines.
    pub(crate) text: String,
}

impl RustSource {
    /// Takes the text apart. Total: any text gives some answer.
    pub(crate) fn new(text: &str) -> RustSource {
        let mut lexer = Lexer {
            rest: text,
            lines: vec![Line::default()],
        };
        while !lexer.rest.is_empty() {
            lexer.step();
        }
        let mut source = RustSource { lines: lexer.lines };
        source.mark_tests();
        source
    }

    /// Functions with a body, in order of their first line.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            let mut words = words(&line.code).peekable();
            while let Some((column, word)) = words.next() {
                // `fn` without a name behind it is a function pointer type.
                let (true, Some((at, name))) = (word == "fn", words.peek()) else {
                    continue;
                };
                if !line.code[column + 2..*at].trim().is_empty() {
                    continue;
                }
                if let Some(last) = self.end_of_body(index, column) {
                    let name = (*name).to_owned();
                    functions.push(Function {
                        name,
                        first: index + 1,
                        last: last + 1,
                    });
                }
            }
        }
        functions
    }

    /// All comments, in order.
    pub(crate) fn remarks(&self) -> Vec<Remark> {
        let mut remarks: Vec<Remark> = Vec::new();
        let mut goes_on = false;
        for (index, line) in self.lines.iter().enumerate() {
            let text = line.comment.trim();
            let stands_alone = line.code.trim().is_empty();
            if text.is_empty() {
                goes_on = false;
                continue;
            }
            let text = text.trim_start_matches(['/', '!', '*']).trim();
            match remarks.last_mut() {
                Some(remark) if goes_on && stands_alone => {
                    remark.last = index;
                    remark.text.push(' ');
                    remark.text.push_str(text);
                }
                _ => remarks.push(Remark {
                    first: index,
                    last: index,
                    text: text.to_owned(),
                }),
            }
            goes_on = stands_alone;
        }
        remarks
    }

    fn mark_tests(&mut self) {
        let is_test = |line: &Line| {
            let code = line.code.trim_start();
            code.starts_with("#[cfg(test)]") || code.starts_with("#[cfg(all(test")
        };
        for first in 0..self.lines.len() {
            if is_test(&self.lines[first]) && !self.lines[first].test {
                let last = self
                    .end_of_item(first, 0)
                    .map_or(first + 1, |(last, _)| last);
                for line in self.lines.iter_mut().take(last + 1).skip(first) {
                    line.test = true;
                }
            }
        }
    }

    /// The line on which the body of the item that starts at (line, column) ends. `None` if it has none.
    fn end_of_body(&self, line: usize, column: usize) -> Option<usize> {
        let (last, has_body) = self.end_of_item(line, column)?;
        has_body.then_some(last)
    }

    /// The line on which the item that starts at (line, column) ends, and whether it has a body: from its
    /// first brace outside brackets to the matching one, or at its semicolon.
    fn end_of_item(&self, line: usize, column: usize) -> Option<(usize, bool)> {
        let mut brackets = 0;
        let mut braces = 0;
        for (index, text) in self.lines.iter().enumerate().skip(line) {
            let code = if index == line {
                &text.code[column..]
            } else {
                &text.code
            };
            for character in code.chars() {
                match character {
                    '(' | '[' if braces == 0 => brackets += 1,
                    ')' | ']' if braces == 0 => brackets -= 1,
                    ';' if braces == 0 && brackets == 0 => return Some((index, false)),
                    '{' if brackets == 0 => braces += 1,
                    '}' if brackets == 0 => {
                        braces -= 1;
                        if braces <= 0 {
                            return Some((index, true));
                        }
                    }
                    _ => {}
                }
            }
        }
        None
    }
}

/// Identifiers and keywords in a line of code, each with the byte where it starts.
pub(crate) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_of_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        at += code[at..].find(is_of_word)?;
        let length = code[at..]
            .find(|c| !is_of_word(c))
            .unwrap_or(code.len() - at);
        let word = (at, &code[at..at + length]);
        at += length;
        Some(word)
    })
}

struct Lexer<'a> {
    rest: &'a str,
    lines: Vec<Line>,
}

/// Where characters go.
#[derive(Clone, Copy)]
enum Part {
    Code,
    Blank,
    Comment,
}

impl Lexer<'_> {
    /// Takes one piece: a comment, a literal, a word, or a character.
    fn step(&mut self) {
        let rest = self.rest;
        if rest.starts_with("//") {
            self.take(rest.find('\n').unwrap_or(rest.len()), Part::Comment);
        } else if rest.starts_with("/*") {
            self.take(block_comment(rest), Part::Comment);
        } else if let Some((open, length)) = string(rest) {
            self.take(open, Part::Code);
            self.take(length - open, Part::Blank);
        } else if let Some(length) = character(rest) {
            self.take(length, Part::Blank);
        } else {
            // Words are taken whole, or the `r` that ends one would start a raw string.
            let word = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            let one = rest.chars().next().map_or(0, char::len_utf8);
            self.take(word.max(one), Part::Code);
        }
    }

    fn take(&mut self, length: usize, part: Part) {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        for character in taken.chars() {
            if character == '\n' {
                self.lines.push(Line::default());
                continue;
            }
            let Some(line) = self.lines.last_mut() else {
                return;
            };
            match part {
                Part::Code => line.code.push(character),
                Part::Blank => line.code.push(' '),
                Part::Comment => line.comment.push(character),
            }
        }
    }
}

/// Bytes of the block comment at the start; they nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// If a string starts here: bytes up to and with its opening quote, and bytes in all.
fn string(text: &str) -> Option<(usize, usize)> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        text.strip_prefix(prefix).is_some_and(|rest| {
            let rest = if prefix.ends_with('r') {
                rest.trim_start_matches('#')
            } else {
                rest
            };
            rest.starts_with('"')
        })
    })?;
    let hashes = text[prefix.len()..]
        .chars()
        .take_while(|c| *c == '#')
        .count();
    let open = prefix.len() + hashes + 1;
    if prefix.ends_with('r') {
        let close = format!("\"{}", "#".repeat(hashes));
        let end = text[open..]
            .find(&close)
            .map_or(text.len(), |at| open + at + close.len());
        return Some((open, end));
    }
    let mut escaped = false;
    for (at, character) in text[open..].char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some((open, open + at + 1)),
            _ => {}
        }
    }
    Some((open, text.len()))
}

/// Bytes of the character literal at the start; `None` for a lifetime.
fn character(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    if let Some(escape) = inner.strip_prefix('\\') {
        let code = escape.chars().next()?.len_utf8();
        return escape[code..].find('\'').map(|at| 2 + code + at + 1);
    }
    let one = inner.chars().next()?.len_utf8();
    inner[one..].starts_with('\'').then_some(1 + one + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let lines: Vec<_> = RustSource::new(text)
            .lines
            .iter()
            .map(|line| line.code.trim_end().to_owned())
            .collect();
        lines.join("\n")
    }

    #[test]
    fn comments_are_no_code() {
        assert_eq!(code("a // b\nc /* d /* e */ f */ g"), "a\nc  g");
        assert_eq!(RustSource::new("a // b").lines[0].comment, "// b");
    }

    #[test]
    fn strings_and_characters_are_blank() {
        assert!(!code(r#"f("unsafe // x", 'y', b'\'', '\u{1F}')"#).contains("unsafe"));
        assert!(code(r##"let x = r#"fn " {"#; y"##).ends_with("; y"));
        assert_eq!(code("\"a\\\"b\" z").trim(), "\"      z");
    }

    #[test]
    fn lifetimes_are_no_characters() {
        assert_eq!(code("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
    }

    #[test]
    fn a_word_that_ends_in_r_starts_no_raw_string() {
        assert_eq!(code("for\"x\" y"), "for\"   y");
    }

    #[test]
    fn functions_have_their_extent() {
        let text = "trait T { fn a(&self); }\nfn b(\n    x: [u8; 4],\n) {\n    if x { y }\n}\n\
                    type P = fn(u8);";
        let expected = Function {
            name: "b".to_owned(),
            first: 2,
            last: 6,
        };
        assert_eq!(RustSource::new(text).functions(), [expected]);
    }

    #[test]
    fn items_for_tests_are_marked() {
        let text = "fn a() {}\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n    fn b() {}\n}\nfn c() {}";
        let marks: Vec<_> = RustSource::new(text)
            .lines
            .iter()
            .map(|line| line.test)
            .collect();
        assert_eq!(marks, [false, true, true, true, true, true, false]);
    }

    /// Goal: lines of one comment are one text. Method: a comment of two lines, one behind code, one after an
    /// empty line.
    #[test]
    fn remarks_are_whole_comments() {
        let text = "/// a\n/// b\nfn f() {} // c\n// d\n\n//! e\n";
        let remarks = RustSource::new(text).remarks();
        let found: Vec<_> = remarks
            .iter()
            .map(|remark| (remark.first, remark.last, &remark.text[..]))
            .collect();
        let expected = [(0, 1, "a b"), (2, 2, "c"), (3, 3, "d"), (5, 5, "e")];
        assert_eq!(found, expected);
    }

    /// Goal: a module for tests in a file of its own is marked. Method: one with a long attribute in between.
    #[test]
    fn declarations_for_tests_are_marked() {
        let text = "#[cfg(test)]\n#[expect(\n    x,\n    reason = \"y\"\n)]\nmod a;\nmod b;\n";
        let source = RustSource::new(text);
        let marks: Vec<_> = source.lines.iter().map(|line| line.test).collect();
        assert_eq!(marks, [true, true, true, true, true, true, false, false]);
    }

    #[test]
    fn any_text_has_an_answer() {
        for text in [
            "",
            "\"",
            "'",
            "/*",
            "r#\"",
            "'\\",
            "fn",
            "#[cfg(test)]",
            "é'é",
        ] {
            RustSource::new(text).functions();
        }
    }
}
