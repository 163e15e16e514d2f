//! Programs in C and C++: compiling them against the header and the library that this test was built with.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

/// A language, as a compiler is told of it.
pub(crate) struct Language {
    /// The variable that may name another compiler, and the usual one.
    pub(crate) compiler: (&'static str, &'static str),
    pub(crate) standard: &'static str,
    pub(crate) flags: &'static [&'static str],
}

pub(crate) fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where cargo has put the library: beside the test.
fn library_folder() -> PathBuf {
    let test = env::current_exe().expect("a test has a file");
    test.parent().expect("in a folder").to_owned()
}

fn folder_of(file: &Path) -> &Path {
    file.parent().expect("it is in a folder")
}

/// The folder of [`library_folder`] goes before those of the environment: cargo names the one there that the
/// last `cargo build` has left, which may be older than this test.
const OWN_LIBRARY_FIRST: &[&str] = if cfg!(target_os = "linux") {
    &["-Wl,--disable-new-dtags"]
} else {
    &[]
};

impl Language {
    fn compiler(&self) -> String {
        let (variable, usual) = self.compiler;
        env::var(variable).unwrap_or_else(|_| usual.to_owned())
    }

    /// Compiles a program of one file without a warning. It has the file's name from now on.
    pub(crate) fn compiled(&self, file: &Path, folder: &Path) -> PathBuf {
        let program = folder.join(file.file_stem().expect("it has a name"));
        let out = self.tried(file, &program);
        let said = String::from_utf8_lossy(&out.stderr);
        let file = file.display();
        assert!(out.status.success(), "{file} does not compile:\n{said}");
        program
    }

    /// What comes of compiling a program of one file.
    pub(crate) fn tried(&self, file: &Path, program: &Path) -> Output {
        let compiler = self.compiler();
        let libraries = library_folder();
        Command::new(&compiler)
            .arg(format!("-std={}", self.standard))
            .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1"])
            .args(self.flags)
            // Places in texts are those of no machine.
            .arg(format!(
                "-fmacro-prefix-map={}/=",
                folder_of(file).display()
            ))
            .arg("-I")
            .arg(crate_folder().join("include"))
            .arg("-I")
            .arg(crate_folder().join("include/enkits"))
            .arg("-o")
            .arg(program)
            .arg(file)
            .arg("-L")
            .arg(&libraries)
            .args(["-lpaceline_c", "-pthread"])
            .arg(format!("-Wl,-rpath,{}", libraries.display()))
            .args(OWN_LIBRARY_FIRST)
            .output()
            .unwrap_or_else(|error| panic!("{compiler}: {error}: this compiler is needed"))
    }

    /// Compiles an example, runs it, and compares what it prints with the text beside it.
    /// `PACELINE_BLESS=1` writes that.
    pub(crate) fn run_example(&self, name: &str, arguments: &[String]) {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let file = crate_folder().join("examples").join(name);
        let program = self.compiled(&file, folder.path());
        let arguments = arguments
            .iter()
            .map(|text| text.replace("{folder}", &folder.path().display().to_string()));
        let out = Command::new(&program).args(arguments).output();
        let out = out.expect("it was just compiled");
        let printed = String::from_utf8_lossy(&out.stdout).into_owned();
        let said = String::from_utf8_lossy(&out.stderr);
        let beside = file.with_file_name(format!("{name}.out"));
        if env::var_os("PACELINE_BLESS").is_some() {
            fs::write(&beside, &printed).expect("it can be written");
        }
        let expected = fs::read_to_string(&beside).expect("each example has its text");
        assert_eq!(printed, expected, "{name} printed this, and: {said}");
        assert!(out.status.success() && said.is_empty(), "{name}: {said}");
    }
}
