//! The static library with no names for linkers but those of its header.
//!
//! The compiler's has some 2600: Rust's own library is in it, and other static libraries that were written in
//! Rust have it, too. A program that links two of them would get duplicate definitions, or the functions of
//! one with the data of the other. So all objects that the header's functions need are put together into one,
//! in which every other name is local, as it is in the shared library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::context::{Context, host};
use crate::dist::{BUILD_SILENCE, RUN_SILENCE, at};
use crate::process;
use crate::wine;

/// What the names of all functions of the header begin with.
pub(super) const OURS: &str = "pl_";

/// What the compiler adds for optimizing across crates, which a linker for C cannot.
const FOR_THE_COMPILER: [&str; 2] = [".llvmbc", ".llvmcmd"];

/// The tools of a C compiler, by which it links for the target.
pub(super) struct Binutils<'a> {
    context: &'a Context,
    compiler: String,
}

impl<'a> Binutils<'a> {
    /// Those of the compiler that cargo links with: what CARGO_TARGET_TRIPLE_LINKER says, or `cc` if it is
    /// for the same processors.
    pub(super) fn of(context: &'a Context, target: Option<&str>) -> Result<Binutils<'a>, String> {
        let host = host()?;
        let target = target.unwrap_or(&host);
        let variable = target.replace('-', "_").to_uppercase();
        let variable = format!("CARGO_TARGET_{variable}_LINKER");
        let processor = |triple: &str| triple.split('-').next().map(str::to_owned);
        let compiler = match std::env::var(&variable) {
            Ok(linker) => linker,
            Err(_) if target == super::windows::TARGET => wine::GCC.to_owned(),
            Err(_) if processor(target) == processor(&host) => "cc".to_owned(),
            Err(_) => {
                return Err(format!(
                    "the static library takes ld, objcopy and ar for {target}: \
                     name its C compiler in {variable}"
                ));
            }
        };
        Ok(Binutils { context, compiler })
    }

    pub(super) fn tool(&self, name: &str) -> Result<Command, String> {
        let mut ask = self.context.command(&self.compiler);
        ask.arg(format!("-print-prog-name={name}"));
        let path = process::done(ask, RUN_SILENCE, &self.compiler)?;
        Ok(self.context.command(path.trim()))
    }

    /// Makes `to` of the static library `from`.
    pub(super) fn with_own_symbols_only(&self, from: &Path, to: &Path) -> Result<(), String> {
        let names = self.defined(from)?;
        let ours: Vec<&str> = names
            .iter()
            .map(String::as_str)
            .filter(|name| name.starts_with(OURS))
            .collect();
        if ours.is_empty() {
            return Err(format!("{} defines no {OURS} function", from.display()));
        }
        let (all, local) = (to.with_extension("all.o"), to.with_extension("o"));
        let list = to.with_extension("names");
        fs::write(&list, ours.join("\n")).map_err(|error| at(&list, error))?;
        let mut together = self.tool("ld")?;
        together.args(["-r", "--gc-sections", "-o"]).arg(&all);
        for name in &ours {
            together.args(["-u", name]);
        }
        together.arg(from);
        process::done(together, BUILD_SILENCE, "ld -r")?;
        let mut hide = self.tool("objcopy")?;
        for section in FOR_THE_COMPILER {
            hide.args(["-R", section]);
        }
        hide.arg(format!("--keep-global-symbols={}", list.display()));
        process::done(with(hide, [&all, &local]), BUILD_SILENCE, "objcopy")?;
        if to.exists() {
            fs::remove_file(to).map_err(|error| at(to, error))?;
        }
        let mut pack = self.tool("ar")?;
        pack.arg("crsD");
        process::done(with(pack, [to, &local]), BUILD_SILENCE, "ar")?;
        for path in [&all, &local, &list] {
            fs::remove_file(path).map_err(|error| at(path, error))?;
        }
        Ok(())
    }

    /// The names that a library defines for linkers.
    pub(super) fn defined(&self, library: &Path) -> Result<Vec<String>, String> {
        let mut ask = self.tool("nm")?;
        // Objects for the compiler alone have none, and say so.
        ask.args(["--defined-only", "--extern-only", "--format=posix"]);
        let listed = process::done(with(ask, [library]), BUILD_SILENCE, "nm")?;
        Ok(names_of(&listed))
    }
}

fn with<P: AsRef<Path>, const N: usize>(mut command: Command, paths: [P; N]) -> Command {
    command.args(paths.map(|path| PathBuf::from(path.as_ref())));
    command
}

/// The names in what `nm` lists: `NAME TYPE VALUE SIZE`. Lines of other kinds name members of an archive, or
/// are warnings.
fn names_of(listed: &str) -> Vec<String> {
    let name = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        words.next().filter(|kind| kind.len() == 1)?;
        Some(name.to_owned())
    };
    listed.lines().filter_map(name).collect()
}

/// Checks that a library has no other names.
pub(super) fn check(names: &[String]) -> Result<(), String> {
    if names.is_empty() {
        return Err("the static library defines nothing".to_owned());
    }
    let strange: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !name.starts_with(OURS))
        .collect();
    match strange.first() {
        None => Ok(()),
        Some(first) => Err(format!(
            "the static library has {} names that are not of its header, such as {first}",
            strange.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: names are read, and nothing else. Method: a listing with a member's line and a warning.
    #[test]
    fn names_are_read() {
        let listed = "lib.a[one.o]:\npl_wait T 0000000000000010 20\nnm: two.o: no symbols\n\
                      rust_eh_personality T 0 1c\n";
        assert_eq!(names_of(listed), ["pl_wait", "rust_eh_personality"]);
    }

    /// Goal: a strange name is found, and so is a library without any. Method: one of each.
    #[test]
    fn strange_names_are_found() {
        let named = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            check(&names)
        };
        assert_eq!(named(&["pl_wait", "pl_flush"]), Ok(()));
        assert!(named(&[]).is_err());
        let why = named(&["pl_wait", "rust_eh_personality"]).unwrap_err();
        assert!(why.contains("1 names") && why.contains("rust_eh"), "{why}");
    }
}
