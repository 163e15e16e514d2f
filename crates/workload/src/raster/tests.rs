//! Tests of the whole way from points to boxes, against slow and simple versions of it.
