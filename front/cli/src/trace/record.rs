//! `ranpace trace record`.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::Subcommand;
use ranpace_lab::Progress;
use ranpace_lab::trace_tools::OutputFile;
use ranpace_link::Trace;
use ranpace_saturator::{Ended, Recording, SaturatorError, Status, Window, receive, send};
use ranpace_units::Span;

use super::described;
use crate::common::say;
use crate::failure::Failure;
use crate::{interrupt, output};

/// Longest recording. Ours: it costs a gigabyte at 2 Mbit/s.
const LONGEST: Span = Span::from_secs(3_600);
/// Most packets under way that can be asked for: 150 MB.
const MOST_PACKETS: u64 = 100_000;

/// Record a real link by keeping it busy, as the Saturator does (Winstein et al., NSDI 2013)
///
/// The sender keeps so many packets under way that a queue always stands before the link (round trips of 750 ms to 3 s), and
/// the receiver records when packets arrive. Start the receiver first, at the far end of the link. Recording costs as much
/// data as the link can carry. The sender sends only to the receiver that you name, and only after it has answered.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    on the phone's side:    ranpace trace record receive --listen 0.0.0.0:9000 --out drive.down --time 60s\n  \
    on the server's side:   ranpace trace record send --to 203.0.113.5:9000 --time 60s\n\
    For the uplink, exchange the two. Ctrl-C ends either; what was recorded is kept.")]
pub struct Record {
    #[command(subcommand)]
    side: Side,
}

#[derive(Subcommand)]
enum Side {
    /// Wait for a sender, and record what the link delivers
    #[command(
        after_help = "Example:\n  ranpace trace record receive --listen 127.0.0.1:9000 --out loop.down --time 10s"
    )]
    Receive(Receive),
    /// Keep the link to a receiver busy
    #[command(after_help = "Example:\n  ranpace trace record send --to 127.0.0.1:9000 --time 10s")]
    Send(Send),
}

#[derive(clap::Args)]
struct Receive {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR:PORT")]
    listen: SocketAddr,
    /// File to write the trace to; gzipped if its name ends in .gz
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How long to record, from the first packet
    #[arg(long, value_name = "TIME", default_value = "60s")]
    time: Span,
    /// How long to wait for a sender
    #[arg(long, value_name = "TIME", default_value = "10min")]
    wait: Span,
    /// Also keep the beginning, before a queue stood before the link
    #[arg(long)]
    keep_start: bool,
}

#[derive(clap::Args)]
struct Send {
    /// Address (or name) and port of the receiver
    #[arg(long, value_name = "ADDR:PORT")]
    to: String,
    /// How long to send
    #[arg(long, value_name = "TIME", default_value = "60s")]
    time: Span,
    /// Bytes of a packet, IP header included, from 100 to 1500
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u64).range(100..=1500))]
    packet: u64,
    /// Limit of packets under way; a link needs its rate x 1 s / 1500 B
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(Window::LEAST..=MOST_PACKETS))]
    window: u64,
}

impl Record {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match self.side {
            Side::Receive(side) => side.run(),
            Side::Send(side) => side.run(),
        }
    }
}

impl From<SaturatorError> for Failure {
    fn from(error: SaturatorError) -> Self {
        match error {
            SaturatorError::Socket { .. } | SaturatorError::TooLong { .. } => Self::asked(error),
            _ => Self::ours(error),
        }
    }
}

fn checked(time: Span) -> Result<Span, Failure> {
    if time.is_zero() || time > LONGEST {
        return Err(Failure::asked(format!(
            "--time: expected more than 0s and up to {LONGEST}, found {time}"
        )));
    }
    Ok(time)
}

impl Receive {
    fn run(self) -> Result<(), Failure> {
        let time = checked(self.time)?;
        // Told before an hour of recording, not after it.
        let out = OutputFile::create(&self.out)?;
        let stop = interrupt::flag();
        say(&format!(
            "waiting for a sender on {}; `ranpace trace record send --to ...` at the other end",
            self.listen
        ));
        let bar = Progress::new(time.as_millis(), "ms recorded");
        let began = std::time::Instant::now();
        let mut is_late = false;
        let recording = receive(self.listen, time, &mut |status: Status| {
            match status.elapsed {
                Some(elapsed) => {
                    bar.set(elapsed.as_millis());
                    bar.note(format!("{} packets", status.packets));
                }
                None => is_late = began.elapsed().as_nanos() > u128::from(self.wait.as_nanos()),
            }
            !is_late && !stop.load(Ordering::Relaxed)
        })?;
        drop(bar);
        if recording.packets == 0 {
            return Err(if is_late {
                Failure::asked(format!(
                    "no sender came within {}; is {} reachable from there?",
                    self.wait, self.listen
                ))
            } else {
                Failure::Interrupted("nothing was recorded".to_owned())
            });
        }
        let trace = trace_of(&recording, self.keep_start)?;
        out.write_trace(&trace)?;
        output::line(format!("{}: {}", self.out.display(), described(&trace)))?;
        if recording.lost > 0 {
            say(&format!(
                "{} packets did not arrive, or arrived after others that were sent later",
                recording.lost
            ));
        }
        if recording.saturated_from.is_none() {
            say(
                "note: the round trip never reached 750 ms, so no queue stood before the link: this trace says what the \
                 sender sent, not what the link could carry; give the sender a larger --window",
            );
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted(format!(
                "stopped; what was recorded is in {}",
                self.out.display()
            )));
        }
        Ok(())
    }
}

/// The trace from when the link had a queue, or from the first packet if it never had one or the beginning is wanted.
fn trace_of(recording: &Recording, keep_start: bool) -> Result<Trace, Failure> {
    let from = recording.saturated_from.filter(|_| !keep_start).unwrap_or(0);
    let kept = recording.arrivals.iter().filter(|(ms, _)| *ms >= from).map(|(ms, count)| (ms - from, *count));
    Trace::from_counts(kept)
        .map_err(|error| Failure::asked(format!("too little was recorded for a trace: {error}")))
}

impl Send {
    fn run(self) -> Result<(), Failure> {
        let time = checked(self.time)?;
        let resolved = self.to.to_socket_addrs().map_err(|error| {
            Failure::asked(format!(
                "--to: expected ADDR:PORT, such as 203.0.113.5:9000, found {:?}: {error}",
                self.to
            ))
        })?;
        let Some(address) = resolved.into_iter().next() else {
            return Err(Failure::asked(format!("--to: {:?} has no address", self.to)));
        };
        let stop = interrupt::flag();
        let bar = Progress::new(time.as_millis(), "ms sent");
        let ended = send(address, time, self.packet, self.window, &mut |status: Status| {
            if let Some(elapsed) = status.elapsed {
                bar.set(elapsed.as_millis().min(time.as_millis()));
                bar.note(format!("{} packets, round trip {} ms", status.packets, status.rtt.as_millis()));
            }
            !stop.load(Ordering::Relaxed)
        })?;
        let sent = bar.done();
        drop(bar);
        match ended {
            _ if stop.load(Ordering::Relaxed) => {
                Err(Failure::Interrupted("stopped; the receiver keeps what came".to_owned()))
            }
            Ended::Done | Ended::Dismissed => output::line(format!("done: kept the link to {address} busy")),
            Ended::Nobody => Err(Failure::asked(format!(
                "nobody answered at {address}; start `ranpace trace record receive` there first, and let UDP through"
            ))),
            Ended::Silence => Err(Failure::asked(format!(
                "{address} fell silent after {:.1} s and stayed so for 30 s; the receiver keeps what came",
                sent as f64 / 1000.0
            ))),
        }
    }
}
