//! The test kit's own tests, one module for each world. A world that finds nothing wrong proves
//! nothing, so each comes with planted bugs that it must find.

mod counted;
mod loom;
