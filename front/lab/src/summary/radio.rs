//! Figures of cells and of their users.

use ranpace_sim::{CellResult, FeedResult, RadioLinkResult, Series, UserResult};
use ranpace_units::{Bytes, Rate};
use serde::{Deserialize, Serialize};

/// Figures of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellSummary {
    /// Its name.
    pub name: String,
    /// Users that it served at the beginning.
    pub users: usize,
    /// Slots in which somebody was awake.
    pub played_slots: u64,
    /// PRBs of its band.
    pub prbs: u16,
    /// Mean share of them that was used downlink, in those slots.
    pub downlink_prb_share: f64,
    /// The same uplink.
    pub uplink_prb_share: f64,
}

/// Figures of one user of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserSummary {
    /// Its name.
    pub name: String,
    /// The cell that serves it at the end.
    pub cell: Option<String>,
    /// From the base station.
    pub downlink: RadioLinkSummary,
    /// To the base station.
    pub uplink: RadioLinkSummary,
    /// Handovers that were completed.
    pub handovers: u32,
    /// Why nothing can be sent to it or by it at the end.
    pub out_of_service: Option<String>,
}

/// Figures of one direction of a user.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RadioLinkSummary {
    /// Size of all transport blocks sent for the first time, padding included.
    pub scheduled_bytes: u64,
    /// Transport blocks sent for the first time.
    pub blocks: u64,
    /// Transport blocks sent again by HARQ.
    pub retransmissions: u64,
    /// Transport blocks that HARQ gave up.
    pub lost_blocks: u64,
    /// PDUs, or parts of them, that RLC sent again.
    pub rlc_sent_again: u64,
    /// Times that a bearer failed.
    pub bearer_failures: u64,
    /// What its channel at the end would carry if it were alone in the cell.
    pub rate_alone_bit_s: u64,
}

/// What the edge's feed of radio information sent in the measured part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeedSummary {
    /// Bytes on the wire, headers of UDP and IP included.
    pub feed_bytes: u64,
    /// Their rate.
    pub feed_bit_s: u64,
    /// Datagrams; of text, messages.
    pub datagrams: u64,
    /// Reports of a cell.
    pub reports: u64,
    /// Records of a user in them.
    pub records: u64,
}

impl FeedSummary {
    /// Of a run's feed.
    pub fn of(feed: &FeedResult) -> Self {
        Self {
            feed_bytes: feed.bytes.get(),
            feed_bit_s: feed.rate.bits_per_s(),
            datagrams: feed.datagrams,
            reports: feed.reports,
            records: feed.records,
        }
    }

    pub(super) fn to_result(self) -> FeedResult {
        FeedResult {
            bytes: Bytes::new(self.feed_bytes),
            rate: Rate::from_bits_per_s(self.feed_bit_s),
            datagrams: self.datagrams,
            reports: self.reports,
            records: self.records,
        }
    }
}

impl CellSummary {
    pub(super) fn of(cell: &CellResult) -> Self {
        let CellResult { name, users, played_slots, prbs, downlink_prb_share, uplink_prb_share } =
            cell.clone();
        Self { name, users, played_slots, prbs, downlink_prb_share, uplink_prb_share }
    }
    pub(super) fn to_result(&self) -> CellResult {
        let Self { name, users, played_slots, prbs, downlink_prb_share, uplink_prb_share } = self.clone();
        CellResult { name, users, played_slots, prbs, downlink_prb_share, uplink_prb_share }
    }
}

impl UserSummary {
    pub(super) fn of(user: &UserResult) -> Self {
        Self {
            name: user.name.clone(),
            cell: user.cell.clone(),
            downlink: RadioLinkSummary::of(&user.downlink),
            uplink: RadioLinkSummary::of(&user.uplink),
            handovers: user.handovers,
            out_of_service: user.out_of_service.clone(),
        }
    }
    pub(super) fn to_result(&self) -> UserResult {
        UserResult {
            name: self.name.clone(),
            cell: self.cell.clone(),
            downlink: self.downlink.to_result(),
            uplink: self.uplink.to_result(),
            handovers: self.handovers,
            out_of_service: self.out_of_service.clone(),
            series: Series::default(),
        }
    }
}

impl RadioLinkSummary {
    fn of(link: &RadioLinkResult) -> Self {
        Self {
            scheduled_bytes: link.scheduled.get(),
            blocks: link.blocks,
            retransmissions: link.retransmissions,
            lost_blocks: link.lost_blocks,
            rlc_sent_again: link.rlc_sent_again,
            bearer_failures: link.bearer_failures,
            rate_alone_bit_s: link.rate_alone.bits_per_s(),
        }
    }
    fn to_result(self) -> RadioLinkResult {
        RadioLinkResult {
            scheduled: Bytes::new(self.scheduled_bytes),
            blocks: self.blocks,
            retransmissions: self.retransmissions,
            lost_blocks: self.lost_blocks,
            rlc_sent_again: self.rlc_sent_again,
            bearer_failures: self.bearer_failures,
            rate_alone: Rate::from_bits_per_s(self.rate_alone_bit_s),
        }
    }
}
