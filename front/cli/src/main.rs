//! The ranpace command.
fn main() {}
