//! What of an archive is text: headers, examples, guides, licences, what build systems ask for.

use std::fs;
use std::path::Path;

use crate::context::Context;
use crate::dist::{CRATE, System, at, windows};

/// What a program that is linked statically needs of the system.
const SYSTEM_LIBRARIES: &str = "-lpthread -ldl -lm";

/// What people read first in an archive; VERSION stands for its version.
const README: &str = include_str!("archive.md");
const README_FOR_WINDOWS: &str = include_str!("archive-windows.md");

fn readme(system: System) -> &'static str {
    match system {
        System::Linux => README,
        System::Windows => README_FOR_WINDOWS,
    }
}

/// The commands of the archive's README, block by block, for a shell in the archive's folder.
pub(super) fn commands_of_readme(system: System) -> Vec<&'static str> {
    let blocks = readme(system).split("```sh\n").skip(1);
    blocks
        .filter_map(|block| Some(block.split_once("```")?.0))
        .collect()
}

/// The part of a version within which programs need not be linked anew: before 1.0 the first two numbers.
pub(super) fn compatible(version: &str) -> String {
    let mut numbers = version.split('.');
    match (numbers.next(), numbers.next()) {
        (Some("0"), Some(minor)) => format!("0.{minor}"),
        (Some(major), _) => major.to_owned(),
        (None, _) => version.to_owned(),
    }
}

/// Writes all that is text: headers, examples, guides, licences, what build systems ask for.
pub(super) fn write_all(
    context: &Context,
    system: System,
    version: &str,
    folder: &Path,
) -> Result<(), String> {
    let from = context.root.join(CRATE);
    copy_all(
        &from.join("include"),
        &folder.join("include"),
        &["h", "hpp"],
    )?;
    let enkits = "include/enkits";
    copy_all(&from.join(enkits), &folder.join(enkits), &["h"])?;
    let examples = folder.join("share/paceline/examples");
    copy_all(&from.join("examples"), &examples, &["h", "c", "cpp", "out"])?;
    let guides = folder.join("share/doc/paceline");
    fs::create_dir_all(&guides).map_err(|error| at(&guides, error))?;
    for text in [
        "docs/guide/c.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "CHANGELOG.md",
    ] {
        let from = context.root.join(text);
        let name = from.file_name().unwrap_or_default();
        let to = guides.join(name);
        let text = fs::read_to_string(&from).map_err(|error| at(&from, error))?;
        fs::write(&to, in_archive(&text)).map_err(|error| at(&to, error))?;
    }
    let compatible = compatible(version);
    let write = |path: &str, text: String| {
        let path = folder.join(path);
        let above = path.parent().unwrap_or(folder);
        fs::create_dir_all(above).map_err(|error| at(above, error))?;
        fs::write(&path, text).map_err(|error| at(&path, error))
    };
    let (pkg_config, cmake) = match system {
        System::Linux => (pkg_config_file(version), cmake_file(&compatible)),
        System::Windows => (windows::pkg_config_file(version), windows::cmake_file()),
    };
    write("README.md", readme(system).replace("VERSION", version))?;
    write("lib/pkgconfig/paceline.pc", pkg_config)?;
    write("lib/cmake/paceline/paceline-config.cmake", cmake)?;
    write(
        "lib/cmake/paceline/paceline-config-version.cmake",
        cmake_version_file(version, &compatible),
    )
}

/// A guide, with the examples where they are in the archive.
fn in_archive(text: &str) -> String {
    text.replace(
        "](../../crates/capi/examples/",
        "](../../paceline/examples/",
    )
}

fn pkg_config_file(version: &str) -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\n\
         Name: paceline\n\
         Description: a job system for programs with deadlines\n\
         Version: {version}\n\
         Cflags: -I${{prefix}}/include\n\
         Libs: -L${{prefix}}/lib -lpaceline\n\
         Libs.private: {SYSTEM_LIBRARIES}\n"
    )
}

fn cmake_file(compatible: &str) -> String {
    format!(
        "get_filename_component(paceline_folder \"${{CMAKE_CURRENT_LIST_DIR}}/../../..\" ABSOLUTE)\n\
         find_package(Threads REQUIRED)\n\
         if(NOT TARGET paceline::paceline)\n\
         \x20 add_library(paceline::paceline SHARED IMPORTED)\n\
         \x20 set_target_properties(paceline::paceline PROPERTIES\n\
         \x20   IMPORTED_LOCATION \"${{paceline_folder}}/lib/libpaceline.so.{compatible}\"\n\
         \x20   IMPORTED_SONAME libpaceline.so.{compatible}\n\
         \x20   INTERFACE_INCLUDE_DIRECTORIES \"${{paceline_folder}}/include\")\n\
         \x20 add_library(paceline::static STATIC IMPORTED)\n\
         \x20 set_target_properties(paceline::static PROPERTIES\n\
         \x20   IMPORTED_LOCATION \"${{paceline_folder}}/lib/libpaceline.a\"\n\
         \x20   INTERFACE_INCLUDE_DIRECTORIES \"${{paceline_folder}}/include\"\n\
         \x20   INTERFACE_LINK_LIBRARIES \"Threads::Threads;${{CMAKE_DL_LIBS}};m\")\n\
         endif()\n"
    )
}

fn cmake_version_file(version: &str, compatible: &str) -> String {
    // 0.1.2 serves those that ask for 0.1 or 0.1.1, and nothing with other first numbers.
    let pattern = compatible.replace('.', "\\\\.");
    format!(
        "set(PACKAGE_VERSION {version})\n\
         if(PACKAGE_FIND_VERSION MATCHES \"^{pattern}(\\\\.|$)\" AND\n\
         \x20  NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)\n\
         \x20 set(PACKAGE_VERSION_COMPATIBLE TRUE)\n\
         endif()\n\
         if(PACKAGE_FIND_VERSION STREQUAL PACKAGE_VERSION)\n\
         \x20 set(PACKAGE_VERSION_EXACT TRUE)\n\
         endif()\n"
    )
}

/// Copies the files of a folder that have one of these endings.
fn copy_all(from: &Path, to: &Path, endings: &[&str]) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|error| at(to, error))?;
    for entry in fs::read_dir(from).map_err(|error| at(from, error))? {
        let path = entry.map_err(|error| at(from, error))?.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if let (Some(ending), Some(name)) = (ending, path.file_name())
            && endings.contains(&ending)
        {
            fs::copy(&path, to.join(name)).map_err(|error| at(&path, error))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: programs are linked anew when they have to be, and only then. Method: versions before and after
    /// 1.0.
    #[test]
    fn versions_say_what_fits() {
        assert_eq!(compatible("0.1.0"), "0.1");
        assert_eq!(compatible("0.12.3"), "0.12");
        assert_eq!(compatible("1.2.3"), "1");
    }

    /// Goal: the links of the guide lead to files of the archive. Method: the guide, and the examples, all of
    /// which are copied.
    #[test]
    fn the_guides_links_lead_into_the_archive() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let guide = fs::read_to_string(root.join("docs/guide/c.md")).unwrap();
        let guide = in_archive(&guide);
        let links: Vec<&str> = guide
            .split("](")
            .skip(1)
            .filter_map(|rest| Some(rest.split_once(')')?.0))
            .filter(|link| link.contains('/'))
            .collect();
        assert!(links.len() > 10);
        for link in links {
            let name = link.strip_prefix("../../paceline/examples/");
            let name = name.unwrap_or_else(|| panic!("{link} is not in the archive"));
            assert!(
                root.join(CRATE).join("examples").join(name).exists(),
                "{link}"
            );
        }
    }
}
