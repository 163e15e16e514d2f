//! Goal: `include/paceline.h` is what the functions of the library say. Method: make it anew of the sources,
//! and compare. `PACELINE_BLESS=1` writes it.

use std::path::Path;
use std::{env, fs};

/// The header, made of the sources.
fn made() -> String {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config =
        cbindgen::Config::from_file(crate_folder.join("cbindgen.toml")).expect("it is valid");
    let builder = cbindgen::Builder::new().with_crate(crate_folder);
    let bindings = builder.with_config(config).generate();
    let mut text = Vec::new();
    bindings.expect("the sources are Rust").write(&mut text);
    let text = String::from_utf8(text).expect("comments are UTF-8");
    // What rustdoc calls a section is a line for readers of C.
    text.replace(" * # Safety\n *", " * Requires:")
}

#[test]
fn the_header_is_made_of_the_sources() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/paceline.h");
    let made = made();
    if env::var_os("PACELINE_BLESS").is_some() {
        fs::write(&path, &made).expect("the header can be written");
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    let differs = there.lines().zip(made.lines()).position(|(a, b)| a != b);
    assert!(
        there == made,
        "{} is not what the sources say, from line {:?} on; \
         PACELINE_BLESS=1 cargo test -p paceline-capi --test header writes it",
        path.display(),
        differs.map(|line| line + 1)
    );
}
