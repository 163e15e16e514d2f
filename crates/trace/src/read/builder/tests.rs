//! Tests of the builder.
