//! Compiles `native/*.c`, which include the headers of `../bpf/arithmetic`. They are for Linux: `linux/types.h`.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let headers = "../bpf/arithmetic";
    let sources = files("native", "c");
    for file in sources.iter().chain(&files(headers, "h")).chain(&files("native", "h")) {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    println!("cargo:rerun-if-changed=native");
    println!("cargo:rerun-if-changed={headers}");
    cc::Build::new()
        .files(sources)
        .include(headers)
        .include("native")
        .opt_level(2)
        .warnings_into_errors(true)
        .extra_warnings(true)
        // Undefined behaviour ends the program: a shift too far, a signed overflow, an index out of range. No library is needed.
        .flag("-fsanitize=undefined")
        .flag("-fsanitize-undefined-trap-on-error")
        .compile("ranpace_arithmetic");
}

/// The files of a folder with this extension, in order.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap_or_else(|error| panic!("{folder}: {error}")).path())
        .filter(|path| Path::extension(path).is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}
