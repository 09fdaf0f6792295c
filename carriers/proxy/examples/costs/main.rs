//! Measures what `ranpace proxy` costs, beside plain forwarding, HAProxy, and the least that a transparent relay does by copies and by
//! splice(2), all in the same run. The figures are in docs/performance.md.
//!
//! As root, with HAProxy installed: `cargo run --release -p ranpace-proxy --features kernel --example costs [transfer | connections |
//! memory | windows]`; all of it takes two minutes. A last line has all figures as JSON. Client, proxy and server are processes of their
//! own in network namespaces; CPU time is that of their threads, in which the kernel's work for packets is counted where it happens.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod relay;
#[cfg(target_os = "linux")]
#[path = "../../tests/rig/mod.rs"]
mod rig;
#[cfg(target_os = "linux")]
mod subjects;
#[cfg(target_os = "linux")]
mod windows;

#[cfg(target_os = "linux")]
fn main() {
    use std::time::Duration;

    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| words[place].parse::<u64>().unwrap();
    let server = || (rig::SERVER[0], rig::PORT).into();
    // The processes that the benchmark starts are this program, too.
    match words.first().map(String::as_str) {
        Some("proxy_process") => rig::run_proxy(),
        Some("relay-splice") => relay::run(relay::Way::Splice),
        Some("relay-copy") => relay::run(relay::Way::Copy),
        Some("serve") => ends::serve(),
        Some("download") => ends::download(server(), number(1), number(2)),
        Some("connect") => ends::connect(server(), number(1) as usize, Duration::from_secs(number(2))),
        Some("hold") => ends::hold(server(), number(1) as usize, number(2) as u8),
        wanted => subjects::measure(wanted),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: needs Linux");
}
