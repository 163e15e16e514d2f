//! The inputs that fuzzing begins with, and those that it has found: all of it again, without a fuzzer.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use super::{TARGETS, misuse};

/// The most that one file of the corpus, and one target's folder, may hold.
const FILE_BYTES: u64 = 16 << 10;
const FOLDER_BYTES: u64 = 128 << 10;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

/// The names in a folder, in their order.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    entries.map(|entry| name(entry.unwrap())).collect()
}

/// Goal: no input that is known makes a parser or reader panic, and inputs are understood as they were meant.
/// Method: each file of the corpus, and every beginning of it up to 300 bytes, given to its target.
#[test]
fn the_corpus_is_read_without_a_panic() {
    for target in TARGETS {
        let folder = fuzz().join("corpus").join(target.name);
        let files = names(&folder);
        assert!(!files.is_empty(), "{} has no corpus", target.name);
        for file in files {
            let bytes = fs::read(folder.join(&file)).unwrap();
            println!("{}/{file}", target.name);
            (target.feed)(&bytes);
            let beginnings = (0..bytes.len().min(300)).map(|end| &bytes[..end]);
            beginnings.for_each(target.feed);
        }
    }
}

/// Goal: every target has a program for the fuzzer, is in its manifest, and has a corpus; there are no
/// others; and the corpus stays small. Method: compare the folders with the table.
#[test]
fn targets_programs_and_corpora_are_the_same() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|t| t.name.to_owned()).collect();
    let programs = names(&fuzz().join("fuzz_targets")).into_iter();
    let programs: BTreeSet<String> = programs
        .map(|name| name.strip_suffix(".rs").unwrap_or(&name).to_owned())
        .collect();
    assert_eq!(programs, targets);
    assert_eq!(names(&fuzz().join("corpus")), targets);
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for target in TARGETS {
        let (name, folder) = (target.name, fuzz().join("corpus").join(target.name));
        assert!(manifest.contains(&format!(
            "\nname = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n"
        )));
        let program = fuzz().join(format!("fuzz_targets/{name}.rs"));
        let program = fs::read_to_string(program).unwrap();
        assert!(
            program.contains(&format!("fuzzing::{name}(bytes)")),
            "{name}"
        );
        let sizes = names(&folder).into_iter().map(|file| {
            let bytes = fs::metadata(folder.join(&file)).unwrap().len();
            assert!(bytes <= FILE_BYTES, "{name}/{file} has {bytes} bytes");
            bytes
        });
        assert!(sizes.sum::<u64>() <= FOLDER_BYTES, "{name}");
    }
}

/// Goal: in C no order of calls, right or wrong, does anything but what the header says. Method: random calls
/// against a model, each a status that follows from what was called before; numbers of other job systems, of
/// what is gone and of nothing among their arguments. A seed that fails is said, with how many of its bytes
/// are enough.
#[test]
fn calls_of_c_in_any_order_are_as_the_model_says() {
    for seed in 1..=1500_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bytes: Vec<u8> = (0..400)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 24) as u8
            })
            .collect();
        let fails = |length: &usize| catch_unwind(|| misuse(&bytes[..*length])).is_err();
        if fails(&bytes.len()) {
            let enough = (0..=bytes.len()).find(fails);
            panic!("seed {seed} fails, and so do {enough:?} of its bytes");
        }
    }
}
