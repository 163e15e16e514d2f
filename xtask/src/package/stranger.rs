//! The package of a stranger, who depends on `paceline` alone, beside the unpacked packages.

use std::fs;
use std::path::Path;

use cargo_metadata::Package;

use super::{PACELINE, snippets, unpacked_name};

/// The stranger's first program, below the root of the workspace.
const PROGRAM: &str = "xtask/stranger/main.rs";

/// The stranger's package, in the folder of that name.
const STRANGER: &str = "stranger";

/// The feature of the stranger's package that switches all features of `paceline` on.
const ALL: &str = "all";

/// Writes a workspace of the unpacked packages and the stranger's into this folder. `used`: `paceline` and
/// the packages that it depends on.
pub(super) fn write(root: &Path, folder: &Path, used: &[&Package]) -> Result<(), String> {
    let paceline = used.iter().find(|package| *package.name == PACELINE);
    let paceline = paceline.ok_or_else(|| format!("there is no package `{PACELINE}`"))?;
    let unpacked = folder.join(unpacked_name(paceline));
    let stranger = folder.join(STRANGER);
    write_file(&folder.join("Cargo.toml"), &workspace(used))?;
    // The versions that are tested here, without looking for newer ones.
    copy(&root.join("Cargo.lock"), &folder.join("Cargo.lock"))?;
    write_file(&stranger.join("Cargo.toml"), &manifest(paceline))?;
    let program = stranger.join("src/main.rs");
    write_file(&program, "")?;
    copy(&root.join(PROGRAM), &program)?;
    let examples = unpacked.join("examples");
    let entries = fs::read_dir(&examples).map_err(failed(&examples))?;
    for entry in entries {
        let path = entry.map_err(failed(&examples))?.path();
        let name = path.file_name().unwrap_or_default();
        let beside = stranger.join("examples").join(name);
        write_file(&beside, "")?;
        copy(&path, &beside)?;
    }
    let mut library = String::from("//! What `paceline` shows its users, as a stranger's own.\n");
    let readme = unpacked.join("README.md");
    let readme = fs::read_to_string(&readme).map_err(failed(&readme))?;
    let mut documents = vec![("readme".to_owned(), readme)];
    for snippets in snippets::in_folder(&unpacked.join("src"))? {
        let name = snippets.file.with_extension("").display().to_string();
        documents.push((name.replace(['/', '\\'], "_"), snippets.text));
    }
    for (name, text) in documents {
        write_file(&stranger.join(format!("docs/{name}.md")), &text)?;
        library.push_str(&format!(
            "\n#[doc = include_str!(\"../docs/{name}.md\")]\npub mod of_{name} {{}}\n"
        ));
    }
    write_file(&stranger.join("src/lib.rs"), &library)
}

/// The workspace's manifest: each unpacked package stands for the published one.
fn workspace(used: &[&Package]) -> String {
    let mut members = format!("\"{STRANGER}\"");
    let mut patch = String::new();
    for package in used {
        let folder = unpacked_name(package);
        members.push_str(&format!(", \"{folder}\""));
        patch.push_str(&format!("{} = {{ path = \"{folder}\" }}\n", package.name));
    }
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{members}]\n\n[patch.crates-io]\n{patch}\n\
         [profile.dev]\ndebug = 0\n"
    )
}

/// The program has the default features of `paceline`, as nearly everybody has. Its feature [`ALL`] has the
/// others, too: the documentation shows what is behind them.
fn manifest(paceline: &Package) -> String {
    let names = paceline.features.keys().filter(|name| *name != "default");
    let features: Vec<String> = names.map(|name| format!("\"{PACELINE}/{name}\"")).collect();
    format!(
        "[package]\nname = \"{STRANGER}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\n{PACELINE} = \"{}\"\n\n[features]\n{ALL} = [{}]\n",
        paceline.version,
        features.join(", ")
    )
}

fn write_file(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .map_err(failed(path))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(failed(from))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}
