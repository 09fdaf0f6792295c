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

/// Longest recording; it transfers 900 MB at 2 Mbit/s. Ours.
const LONGEST: Span = Span::from_secs(3_600);
/// Largest --window: 100,000 packets of 1500 B are 150 MB.
const MOST_PACKETS: u64 = 100_000;

/// Record a real link by keeping it busy, as the Saturator does (Winstein et al., NSDI 2013)
///
/// The sender keeps enough packets in flight that the link always has a queue (round trips of 750 ms to 3 s), and the receiver
/// records when packets arrive. Start the receiver first, at the far end of the link. A recording transfers as much data as the
/// link can carry. The sender sends only to the receiver that you name, and only after that receiver has answered.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    on the phone's side:    ranpace trace record receive --listen 0.0.0.0:9000 --out drive.down --time 60s\n  \
    on the server's side:   ranpace trace record send --to 203.0.113.5:9000 --time 60s\n\
    For the uplink, exchange the two. Ctrl-C stops either side; the receiver keeps what it has recorded.")]
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
    /// Duration of the recording, from the first packet on
    #[arg(long, value_name = "TIME", default_value = "60s")]
    time: Span,
    /// Longest time to wait for a sender
    #[arg(long, value_name = "TIME", default_value = "10min")]
    wait: Span,
    /// Keep the beginning too, before the link had a queue
    #[arg(long)]
    keep_start: bool,
}

#[derive(clap::Args)]
struct Send {
    /// Address (or name) and port of the receiver
    #[arg(long, value_name = "ADDR:PORT")]
    to: String,
    /// Time for which to send
    #[arg(long, value_name = "TIME", default_value = "60s")]
    time: Span,
    /// Size of a packet in bytes, including the IP header, from 100 to 1500
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u64).range(100..=1500))]
    packet: u64,
    /// Largest number of packets in flight; a link needs its rate x 1 s / 1500 B
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
        // Created first, so that an unwritable path is reported before the recording and not after it.
        let out = OutputFile::create(&self.out)?;
        let stop = interrupt::flag();
        say(&format!(
            "waiting for a sender on {}; run `ranpace trace record send --to ...` at the other end",
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
                    "no sender connected within {}; check that it can reach {}",
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
            say(&format!("{} packets were lost or reordered", recording.lost));
        }
        if recording.saturated_from.is_none() {
            say(
                "note: the round trip never reached 750 ms, so the link had no queue, and this trace shows what the sender \
                 sent, not what the link could carry; give the sender a larger --window",
            );
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted(format!(
                "stopped; the recording until then is in {}",
                self.out.display()
            )));
        }
        Ok(())
    }
}

/// The trace from the time at which the link first had a queue; from the first packet if it never had one, or with `keep_start`.
fn trace_of(recording: &Recording, keep_start: bool) -> Result<Trace, Failure> {
    let from = recording.saturated_from.filter(|_| !keep_start).unwrap_or(0);
    let kept = recording.arrivals.iter().filter(|(ms, _)| *ms >= from).map(|(ms, count)| (ms - from, *count));
    Trace::from_counts(kept)
        .map_err(|error| Failure::asked(format!("the recording is too short for a trace: {error}")))
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
                Err(Failure::Interrupted("stopped; the receiver keeps what it has recorded".to_owned()))
            }
            Ended::Done | Ended::Dismissed => {
                output::line(format!("done: the link to {address} was kept busy"))
            }
            Ended::Nobody => Err(Failure::asked(format!(
                "no answer from {address}; start `ranpace trace record receive` there first, and allow UDP to its port"
            ))),
            Ended::Silence => Err(Failure::asked(format!(
                "{address} sent nothing for 30 s after {:.1} s; the receiver keeps what it has recorded",
                sent as f64 / 1000.0
            ))),
        }
    }
}
