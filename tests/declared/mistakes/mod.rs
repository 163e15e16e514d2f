//! Goal: a user who makes one of the commonest mistakes reads what the guide to safety says that they will.
//! Method: the programs of the guide; their texts stand in it, and so does what they panic with, word for
//! word.

mod early;
mod guard;
mod inside;
mod order;

/// The mistakes in the order of the guide: the program's file, its text and itself.
const PROGRAMS: [(&str, &str, fn()); 4] = [
    ("order.rs", include_str!("order.rs"), order::main),
    ("early.rs", include_str!("early.rs"), early::main),
    ("guard.rs", include_str!("guard.rs"), guard::main),
    ("inside.rs", include_str!("inside.rs"), inside::main),
];

/// What a program panics with, as if it were `src/main.rs`, without the line that says what the file is.
fn said(file: &str, program: fn()) -> String {
    let payload = std::panic::catch_unwind(program).expect_err("it is a mistake");
    let text = payload.downcast::<String>().expect("it is an error's text");
    let path = format!("tests/declared/mistakes/{file}:");
    let mut parts = text.split(&path);
    let mut said = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (line, rest) = part.split_once(':').expect("a column follows");
        let line: u32 = line.parse().expect("a line is a number");
        said += &format!("src/main.rs:{}:{rest}", line - 1);
    }
    said
}

#[test]
fn the_guide_says_what_is_said() {
    let mut guide = include_str!("../../../docs/guide/safety.md");
    for (file, text, program) in PROGRAMS {
        let (_, text) = text.split_once('\n').expect("the first line is ours");
        let text = text.replace("pub(super) fn main", "fn main");
        let shown = format!("```rust,should_panic\n{text}```\n\n```text\n");
        let (_, rest) = guide.split_once(&shown).unwrap_or_else(|| {
            panic!("the guide does not show {file}, or in another place:\n{shown}");
        });
        let (answer, rest) = rest.split_once("```\n").expect("it has an end");
        let answer = answer.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(answer, said(file, program), "{file}");
        guide = rest;
    }
}
