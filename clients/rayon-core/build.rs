//! Nothing is built. A package with `links` has to have a build script, and `links` is what keeps a program
//! from having both this package and the original.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}
