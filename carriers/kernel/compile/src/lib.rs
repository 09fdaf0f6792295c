//! Compiles programs of eBPF, for build scripts of packages that depend on libbpf-sys.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Compiles `bpf/*.bpf.c` of the package that is built into its `OUT_DIR`, as `*.bpf.o`.
///
/// # Panics
///
/// If that fails, as a build script does: cargo shows what it says.
#[expect(clippy::print_stdout, reason = "cargo reads what a build script prints")]
pub fn compile() {
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    // bpf_helpers.h and its like come with libbpf.
    let libbpf = env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    for entry in fs::read_dir("bpf").expect("the folder of the programs") {
        let source = entry.expect("a file of the folder of the programs").path();
        if source.to_string_lossy().ends_with(".bpf.c") {
            compile_one(&source, Path::new(&libbpf), &out);
        }
    }
}

fn compile_one(source: &Path, libbpf: &Path, out: &Path) {
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let object = out.join(source.file_name().expect("a file has a name")).with_extension("o");
    let mut command = Command::new(&clang);
    command.args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", "-I"]).arg(libbpf);
    // Debian keeps <asm/types.h> in the folder of the architecture.
    if let Ok(machine) = env::var("CARGO_CFG_TARGET_ARCH") {
        command.arg(format!("-I/usr/include/{machine}-linux-gnu"));
    }
    let done = command.arg("-c").arg(source).arg("-o").arg(&object).status();
    match done {
        Ok(status) if status.success() => strip(&clang, &object),
        Ok(status) => panic!("{} could not compile {}: {status}", clang.display(), source.display()),
        Err(error) => panic!(
            "the feature `bpf` needs clang to compile {} ({error}): install clang, libelf-dev and zlib1g-dev, name another clang in \
             CLANG, or build without the feature",
            source.display()
        ),
    }
}

/// Removes clang's own debug information, which is nine tenths of an object and which nothing reads: the kernel and libbpf read BTF.
/// Where llvm-strip is not installed the objects, and the binary that contains them, only are larger.
fn strip(clang: &OsStr, object: &Path) {
    let clang = Path::new(clang);
    // clang-19's is llvm-strip-19, in the same folder.
    let name = clang.file_name().unwrap_or_default().to_string_lossy().replace("clang", "llvm-strip");
    let strip = clang.with_file_name(name);
    match Command::new(&strip).arg("--strip-debug").arg(object).status() {
        Ok(status) => {
            assert!(status.success(), "{} could not strip {}: {status}", strip.display(), object.display())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => panic!("{} could not be started: {error}", strip.display()),
    }
}
