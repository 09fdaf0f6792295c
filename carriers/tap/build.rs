//! Compiles bpf/*.bpf.c for the virtual machine of the kernel, where the feature `bpf` is on.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    if env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    // bpf_helpers.h and its like come with libbpf.
    let libbpf = env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    for entry in fs::read_dir("bpf").expect("the folder of the programs") {
        let source = entry.expect("a file of the folder of the programs").path();
        if source.to_string_lossy().ends_with(".bpf.c") {
            compile(&source, Path::new(&libbpf), &out);
        }
    }
}

fn compile(source: &Path, libbpf: &Path, out: &Path) {
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
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{} could not compile {}: {status}", clang.display(), source.display()),
        Err(error) => panic!(
            "the feature `bpf` needs clang to compile {} ({error}): install clang, libelf-dev and zlib1g-dev, name another clang in \
             CLANG, or build without the feature",
            source.display()
        ),
    }
}
