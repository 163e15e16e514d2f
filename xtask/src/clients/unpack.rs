//! Packages as they are published, unpacked.

use std::fs;
use std::path::{Path, PathBuf};

use super::SILENCE;
use crate::context::Context;
use crate::process;

/// The packages that are fetched: of rayon the versions that `clients/rayon-core` is made for.
const WANTED: [(&str, &str); 6] = [
    ("box2d_sys", "0.2.1"),
    ("boxdd-sys", "0.6.0"),
    ("joltc-sys", "0.3.1+Jolt-5.0.0"),
    ("oxijolt", "1.5.0+jolt-5.6.0"),
    ("rayon", "1.12.0"),
    ("rayon-core", "1.13.0"),
];

/// The folder of this client's files.
pub(super) fn folder(context: &Context) -> PathBuf {
    context.target.join("clients")
}

/// The folder with the unpacked package. Fetches all of them if it is not there.
pub(super) fn unpacked(context: &Context, name: &str) -> Result<PathBuf, String> {
    let version = WANTED.iter().find(|(wanted, _)| *wanted == name);
    let (_, version) = version.ok_or_else(|| format!("{name} is not one of the clients"))?;
    let vendor = folder(context).join("vendor");
    let package = vendor.join(format!("{name}-{version}"));
    if !package.join("Cargo.toml").exists() {
        fetch(context, &vendor)?;
    }
    Ok(package)
}

/// Has cargo fetch and unpack them, as what a package without code depends on.
fn fetch(context: &Context, vendor: &Path) -> Result<(), String> {
    let asks = folder(context).join("fetch");
    let wants = WANTED.map(|(name, version)| format!("{name} = \"={version}\"\n"));
    let manifest = format!(
        "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\n{}",
        wants.concat()
    );
    write(&asks.join("Cargo.toml"), &manifest)?;
    write(&asks.join("src/lib.rs"), "")?;
    let mut command = context.command("cargo");
    command
        .args(["vendor", "--quiet", "--versioned-dirs"])
        .arg(vendor)
        .current_dir(&asks);
    process::done(command, SILENCE, "cargo vendor").map(drop)
}

/// A file with this text, and the folders above it.
pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// The text of a file.
pub(super) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies a folder with all that is in it, over what is there. `wanted` is asked about each file.
pub(super) fn copy(from: &Path, to: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<(), String> {
    let told = |error| format!("{}: {error}", from.display());
    fs::create_dir_all(to).map_err(told)?;
    for entry in fs::read_dir(from).map_err(told)? {
        let path = entry.map_err(told)?.path();
        let there = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &there, wanted)?;
        } else if wanted(&path) {
            fs::copy(&path, &there).map_err(told)?;
        }
    }
    Ok(())
}

/// A fresh copy of a package below this client's folder.
pub(super) fn fresh(context: &Context, package: &Path, name: &str) -> Result<PathBuf, String> {
    let copied = folder(context).join(name);
    if copied.exists() {
        fs::remove_dir_all(&copied).map_err(|error| format!("{}: {error}", copied.display()))?;
    }
    let is_wanted = |path: &Path| path.file_name().is_none_or(|name| name != "Cargo.lock");
    copy(package, &copied, &is_wanted)?;
    Ok(copied)
}
