//! Finding out what a machine is.
