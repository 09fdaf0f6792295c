//! Compiles bpf/*.bpf.c for the kernel's virtual machine, where the feature `bpf` is on.

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    #[cfg(feature = "bpf")]
    ranpace_kernel_compile::compile();
}
