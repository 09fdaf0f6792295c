//! A QUIC flow of the scenario whose ends are programs: its figures are the samples that the sender's program writes to a file
//! ([`ranpace_quic::Sample`], as by `ranpace serve --samples`), which is read while it grows.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

use ranpace_quic::Sample;
use ranpace_units::{Span, Time};

use crate::tcp_info::TcpInfo;

/// The flow.
pub struct Followed {
    path: PathBuf,
    file: Option<File>,
    /// The beginning of a line whose end is not there yet.
    partial: Vec<u8>,
    /// Its control, as in the scenario.
    pub cc: String,
    /// When the first data packet was seen to have left, and the last acknowledgement to have come.
    pub first_sent: Option<Time>,
    pub last_acked: Option<Time>,
    /// What was acknowledged, bytes of QUIC packets.
    pub acked: u64,
    /// Episodes of recovery.
    pub recoveries: u64,
}

impl Followed {
    /// A flow of this control, whose samples will be in this file.
    pub fn new(path: PathBuf, cc: &str) -> Self {
        Self {
            path,
            file: None,
            partial: Vec::new(),
            cc: cc.to_owned(),
            first_sent: None,
            last_acked: None,
            acked: 0,
            recoveries: 0,
        }
    }

    /// The samples that are new.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or a line is no sample. A file that is not there yet is no error.
    pub fn read(&mut self, now: Time) -> io::Result<Vec<Sample>> {
        if self.file.is_none() {
            match File::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                Err(error) => return Err(error),
            }
        }
        if let Some(file) = &mut self.file {
            file.read_to_end(&mut self.partial)?;
        }
        let whole = self.partial.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines: Vec<u8> = self.partial.drain(..whole).collect();
        let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let samples: Vec<Sample> = lines
            .map(|line| serde_json::from_slice(line).map_err(io::Error::other))
            .collect::<Result<_, _>>()?;
        for sample in &samples {
            self.recoveries = sample.recoveries;
            if sample.sent_packets > 0 {
                self.first_sent.get_or_insert(now);
            }
            if sample.acked_bytes > self.acked {
                (self.acked, self.last_acked) = (sample.acked_bytes, Some(now));
            }
        }
        Ok(samples)
    }
}

/// A QUIC sender's figures in the form of the kernel's for TCP. A lost packet counts as retransmitted.
impl From<&Sample> for TcpInfo {
    fn from(sample: &Sample) -> Self {
        let packet = sample.packet_bytes.max(1);
        let short = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let packets = |bytes: f64| (bytes / packet as f64) as u32;
        Self {
            mss: short(packet),
            unacked: short(sample.in_flight_bytes / packet),
            srtt: Span::from_secs_f64(sample.srtt_s.unwrap_or(0.0)),
            min_rtt: None,
            cwnd: packets(sample.cwnd_bytes),
            ssthresh: sample.ssthresh_bytes.map(packets),
            pacing: sample.pacing_bit_s.map(|rate| rate / 8),
            retransmitted: short(sample.lost_packets),
            bytes_acked: sample.acked_bytes,
            segments_sent: short(sample.sent_packets),
            delivered: short(sample.acked_packets),
            bytes_sent: sample.sent_bytes,
            bytes_retransmitted: sample.lost_bytes,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

    use std::io::Write as _;

    use super::*;

    #[test]
    fn samples_are_read_as_the_file_grows_also_if_a_line_comes_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples");
        let mut flow = Followed::new(path.clone(), "cubic");
        assert_eq!(flow.read(Time::from_millis(1)).unwrap(), []);
        let mut file = File::create(path).unwrap();
        let sample = Sample { sent_packets: 3, acked_bytes: 1_000, packet_bytes: 1_440, ..Sample::default() };
        let line = serde_json::to_string(&sample).unwrap() + "\n";
        file.write_all(&line.as_bytes()[..20]).unwrap();
        assert_eq!(flow.read(Time::from_millis(2)).unwrap(), []);
        file.write_all(&line.as_bytes()[20..]).unwrap();
        assert_eq!(flow.read(Time::from_millis(3)).unwrap(), [sample]);
        file.write_all(line.as_bytes()).unwrap();
        assert_eq!(flow.read(Time::from_millis(4)).unwrap().len(), 1);
        let at = Some(Time::from_millis(3));
        assert_eq!((flow.first_sent, flow.last_acked, flow.acked), (at, at, 1_000));
        file.write_all(b"no sample\n").unwrap();
        assert!(flow.read(Time::from_millis(5)).is_err());
    }
}
