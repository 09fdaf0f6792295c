//! `ranpace fetch`: downloads that are measured.

#[cfg(feature = "fetch")]
mod figures;
#[cfg(feature = "fetch")]
mod plan;
#[cfg(feature = "fetch")]
mod radio;
#[cfg(feature = "fetch")]
mod report;

#[cfg(feature = "fetch")]
use std::path::PathBuf;

#[cfg(feature = "fetch")]
use ranpace_cc::Algorithm;
#[cfg(feature = "fetch")]
use ranpace_fetch::Http;
#[cfg(feature = "fetch")]
use ranpace_fetch::target::Target;
#[cfg(feature = "fetch")]
use ranpace_fetch::trust::Fingerprint;
#[cfg(feature = "fetch")]
use ranpace_units::{Bytes, Span};

use crate::failure::Failure;

/// Download over HTTP/3 or HTTP/1.1, repeatedly and in parallel, and measure: handshake, first byte, end, goodput
///
/// Each download has a connection of its own. Downloads of one URL run `--parallel` at a time, and the URLs take turns, so that
/// they meet the same network. What arrives is thrown away, unless `--save` keeps it: a file has its name only when it is whole, and what a
/// broken download left is gone on from.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:\n  \
    ranpace fetch https://server:4433/file --pin 3f0a...              a server with a certificate of its own\n  \
    ranpace fetch https://server/film.mp4 --save .                    keep it; the same command goes on after a break\n  \
    ranpace fetch https://server:4433/1MB --repeat 20 --parallel 4 --ca ca.pem --out results/\n  \
    ranpace fetch https://s:4433/1MB https://s:4434/1MB --label CUBIC --label MELD --repeat 20 --insecure\n  \
    ranpace fetch https://s:4433/1MB https://s:4433/1MB --http 3 --http 1.1 --repeat 20 --insecure\n  \
    ranpace fetch https://s:4433/10MB --reports cdbev2 --insecure     the receiver measures, and the server's cdbev2 follows\n\n\
    docs/fetch.md says more.")]
pub struct Fetch {
    /// What to download: https, or http without TLS
    #[cfg(feature = "fetch")]
    #[arg(value_name = "URL", required = true)]
    urls: Vec<Target>,
    /// Protocol: 3 (over QUIC) or 1.1 (over TCP); once for all URLs, or once for each in their order [default: 3, http: 1.1]
    #[cfg(feature = "fetch")]
    #[arg(long, value_name = "VERSION", value_parser = http)]
    http: Vec<Http>,
    /// Name in the table, once for each URL in their order [default: the URL]
    #[cfg(feature = "fetch")]
    #[arg(long, value_name = "TEXT")]
    label: Vec<String>,
    /// Downloads of each URL, one after the other
    #[cfg(feature = "fetch")]
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    repeat: u32,
    /// Downloads of a URL at the same time
    #[cfg(feature = "fetch")]
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    parallel: u32,
    /// Congestion control of what this end sends: of `ranpace list cc` over QUIC, one of the kernel's over TCP
    #[cfg(feature = "fetch")]
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    /// Measure as the receiver of this client-driven control, and report to the server, if it has that control: cdbe, cdbev2, dcic,
    /// cqic-s or quic-cqic
    #[cfg(feature = "fetch")]
    #[arg(long, value_name = "CONTROL")]
    reports: Option<Algorithm>,
    /// What this device's modem says, for dcic, cqic-s and quic-cqic: a named pipe or a growing file of lines as
    /// `ranpace emulate --hints` writes them, or - for standard input
    #[cfg(feature = "fetch")]
    #[arg(long, value_name = "FILE", requires = "reports")]
    radio: Option<PathBuf>,
    /// The device in these lines [default: any]
    #[cfg(feature = "fetch")]
    #[arg(long, value_name = "NAME", requires = "radio")]
    user: Option<String>,
    /// Believe the certificate with this SHA-256 fingerprint, and no other
    #[cfg(feature = "fetch")]
    #[arg(long, value_name = "FINGERPRINT", conflicts_with_all = ["ca", "insecure"])]
    pin: Option<Fingerprint>,
    /// Believe certificates of the authorities in this PEM file, and no others
    #[cfg(feature = "fetch")]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    ca: Option<PathBuf>,
    /// Believe any certificate: the server may be anybody
    #[cfg(feature = "fetch")]
    #[arg(long)]
    insecure: bool,
    /// Folder for the files, named as in the URLs; an older file of the name is replaced when the new one is whole
    #[cfg(feature = "fetch")]
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Data that may be on their way, by QUIC's flow control
    #[cfg(feature = "fetch")]
    #[arg(long, value_name = "SIZE", default_value = "2MB")]
    window: Bytes,
    /// Longest silence of a server
    #[cfg(feature = "fetch")]
    #[arg(long, value_name = "TIME", default_value = "30s")]
    timeout: Span,
    /// Folder for the figures (fetch.json) and the report (report.html)
    #[cfg(feature = "fetch")]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the figures as one JSON document
    #[cfg(feature = "fetch")]
    #[arg(long)]
    json: bool,
    /// What would be done
    #[cfg(not(feature = "fetch"))]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<std::ffi::OsString>,
}

#[cfg(feature = "fetch")]
fn http(text: &str) -> Result<Http, String> {
    match text {
        "3" => Ok(Http::Three),
        "1.1" => Ok(Http::One),
        _ => Err("expected 3 or 1.1".to_owned()),
    }
}

#[cfg(not(feature = "fetch"))]
impl Fetch {
    /// Says how to get the command.
    pub fn run(self) -> Result<(), Failure> {
        drop(self.words);
        Err(Failure::asked(
            "this ranpace was built without `ranpace fetch`, so that its first build is short; `make install` builds it whole",
        ))
    }
}

#[cfg(feature = "fetch")]
impl Fetch {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let (json, out) = (self.json, self.out.clone());
        let store = out.map(|out| ranpace_lab::Store::open(&out, "fetch")).transpose();
        let store = store.map_err(Failure::asked)?;
        let plan = plan::Plan::of(self)?;
        let done = plan.run()?;
        let rows: Vec<figures::Row> = done.all.iter().map(figures::Row::of).collect();
        if json {
            crate::output::json(&rows)?;
        } else {
            crate::output::line(figures::table(&rows).to_string())?;
        }
        if let Some(store) = store {
            store.write_json("fetch.json", &rows)?;
            let page = report::page(&done, &rows, &crate::common::command_line()).map_err(Failure::ours)?;
            let report = store.write("report.html", page.as_bytes())?;
            crate::output::say(&format!("report: {}", report.display()));
        }
        done.outcome()
    }
}
