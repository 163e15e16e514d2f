//! A package needs a target besides its tests. The tests are in `main.rs`.
