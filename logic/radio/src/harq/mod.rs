//! Hybrid ARQ: a transport block that could not be decoded is sent again, and its receptions are combined.
//!
//! Source: TS 36.321 clause 5.3.2 and TS 36.213 clause 7 for LTE, TS 38.321 clause 5.3.2 for NR; times of the published
//! experiments in [`HarqConfig`]. A process is stop-and-wait: it sends a block, learns whether it was decoded, and may send
//! again [`HarqConfig::turnaround`] TTIs after the transmission. SINRs add up over the attempts (Chase combining: 3 dB for the
//! second). After the last failure the block is dropped without notice to RLC.
//!
//! ```
//! use ranpace_radio::harq::{Draw, Harq, HarqConfig, Outcome};
//!
//! let mut harq = Harq::new(HarqConfig::LTE);
//! let process = harq.free(0).unwrap();
//! // The block's content goes along; an error is drawn at 10 %, and this draw of 0.05 is one.
//! harq.send(0, process, "block", 12.0, Draw::of(0.05), |_sinr_db| 0.1);
//! assert_eq!(harq.due(7).next(), None);
//! assert_eq!(harq.due(8).next(), Some(process));
//! harq.send_again(8, process, 12.0, Draw::of(0.05), |sinr_db| if sinr_db > 15.0 { 0.0 } else { 0.1 });
//! assert_eq!(harq.outcome(10), None);
//! assert_eq!(harq.outcome(11), Some(Outcome::Decoded("block"))); // three TTIs after it was sent
//! ```

mod config;
mod processes;
#[cfg(test)]
mod tests;

pub use config::HarqConfig;
pub use processes::{Attempt, Draw, Harq, HarqCounters, Outcome, Process, Processes};
