//! Scheduling requests, buffer status reports and grants of one user.

use std::collections::VecDeque;

use super::config::{AccessConfig, BSR_BYTES};

/// Most blocks that are tracked: more than any HARQ has under way. Only a caller that never reports the fate of blocks
/// reaches it.
const MOST_BLOCKS: usize = 512;

/// State of a granted block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its slot is in the future.
    Granted,
    /// It was sent and is not decoded yet.
    Sent,
    /// Decoded, lost, or never sent.
    Over,
}

/// A granted block.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// The slot in which it is first sent: identifies it, and orders reports.
    slot: u64,
    /// Bytes of queued data that it was granted; 0 once it is lost.
    bytes: u32,
    /// Bytes left waiting behind it, if it carries a report.
    report: Option<u32>,
    state: State,
}

/// The base station's knowledge of one user's uplink buffer, and the user's side of providing it.
///
/// The base station's estimate is the last report, minus its grants for slots later than the one in which the report was
/// formed. A lost block gives back its bytes; if nothing is then known or under way, the base station grants as for a
/// request (ours: it knows that a block is missing). The device sends a request when it has data that the base station was not
/// told of; when it was told, but sent no grant for [`AccessConfig::bsr_retransmission`]; and again after
/// [`AccessConfig::sr_prohibit`]. Requests and grants are never lost, only blocks are.
///
/// In each slot the caller calls, in this order: [`Self::on_slot`], blocks decoded or lost, grants, blocks sent. It does not
/// report retransmissions.
#[derive(Clone, Debug)]
pub struct Access {
    config: AccessConfig,
    /// Opportunities are slots whose remainder modulo the period is this.
    offset: u64,
    /// Granted blocks in order of slots, from the first that is not over.
    blocks: VecDeque<Block>,
    /// Number of these in [`State::Granted`].
    granted: usize,

    // State of the device.
    /// Its last report left data waiting, and its buffer has not been empty since, so it expects a grant.
    told: bool,
    /// It expects a grant until this slot: retxBSR-Timer.
    trusts_until: u64,
    /// periodicBSR-Timer runs until this slot.
    next_report: u64,
    /// sr-ProhibitTimer runs until this slot.
    next_request: u64,
    /// With [`AccessConfig::ideal_reports`]: bytes waiting in the last slot, and the reports under way with the slots in which they
    /// were sent.
    waited: u32,
    ideal: VecDeque<(u64, u32)>,

    // State of the base station.
    /// When the request arrived that no grant has answered yet.
    requested: Option<u64>,
    /// A block is missing, and nothing else is known.
    missing: bool,
    /// The last report in bytes.
    reported: u32,
    /// Slot in which this report was formed; grants for later slots are not included in it.
    formed: Option<u64>,
    /// Bytes of those grants, without lost blocks.
    spent: u64,
}

impl Access {
    /// The initial state: nothing waits and nothing is known. `user` determines the offset of its opportunities, so that users with
    /// consecutive numbers are spread over the period.
    pub fn new(config: &AccessConfig, user: u32) -> Self {
        Self {
            config: *config,
            offset: u64::from(user) % config.sr_period.max(1),
            blocks: VecDeque::with_capacity(16),
            granted: 0,
            told: false,
            trusts_until: 0,
            next_report: 0,
            next_request: 0,
            waited: 0,
            ideal: VecDeque::new(),
            requested: None,
            missing: false,
            reported: 0,
            formed: None,
            spent: 0,
        }
    }

    /// The device has `backlog` bytes to send, headers and RLC's status reports included, at the beginning of slot `tti`.
    /// Returns whether it sends a scheduling request in this slot: the base station does not know of its data, no
    /// grant is under way, no request was sent recently, and the slot is an opportunity. Must be called in each slot while
    /// something waits, except for slots before [`Self::next_slot`]. Grants whose slot passed unused become void.
    #[inline]
    pub fn on_slot(&mut self, tti: u64, backlog: u32) -> bool {
        if self.granted > 0 {
            self.void_before(tti);
        }
        if self.config.ideal_reports {
            self.tell(tti, backlog);
            return false;
        }
        if backlog == 0 {
            self.told = false;
            return false;
        }
        if self.granted > 0 || tti < self.first_opportunity(tti) {
            return false;
        }
        self.requested.get_or_insert(tti);
        self.next_request = tti.saturating_add(self.config.sr_prohibit);
        true
    }

    /// Ideal reports: a report is sent when the backlog grows, or when data waits and nothing else is under way for it. Reports sent
    /// [`AccessConfig::sr_to_grant`] ago become known.
    fn tell(&mut self, tti: u64, backlog: u32) {
        let quiet = self.granted == 0 && self.ideal.is_empty() && self.known_backlog() == 0;
        if backlog > self.waited || (backlog > 0 && quiet) {
            self.ideal.push_back((tti, backlog));
        }
        self.waited = backlog;
        while let Some(&(told, bytes)) = self.ideal.front()
            && told.saturating_add(self.config.sr_to_grant) <= tti
        {
            (self.reported, self.spent) = (self.config.levels.read(bytes), 0);
            self.ideal.pop_front();
        }
    }

    /// Bytes that the base station would grant in slot `tti`, 0 for none: its estimate of the backlog and a report,
    /// or [`AccessConfig::first_grant`] if a request is due and this is more.
    #[inline]
    pub fn wanted(&self, tti: u64) -> u32 {
        let due = self.request_due().is_some_and(|due| due <= tti);
        let known = match self.known_backlog() {
            0 => 0,
            bytes => bytes.saturating_add(BSR_BYTES),
        };
        if due { known.max(self.config.first_grant).max(1) } else { known }
    }

    /// The base station's estimate of the device's backlog in bytes, beyond what it has granted.
    pub fn known_backlog(&self) -> u32 {
        // At most `reported`, so the cast does not truncate.
        u64::from(self.reported).saturating_sub(self.spent) as u32
    }

    /// The base station granted a block of new data of this size in slot `tti`; it will be sent after
    /// [`AccessConfig::grant_to_pusch`].
    pub fn on_grant(&mut self, tti: u64, bytes: u32) {
        self.on_grant_for(tti, bytes, tti.saturating_add(self.config.grant_to_pusch));
    }

    /// Like [`Self::on_grant`], for a block sent in slot `pusch`, if not every slot is an uplink slot.
    pub fn on_grant_for(&mut self, tti: u64, bytes: u32, pusch: u64) {
        self.requested = None;
        self.missing = false;
        // TS 36.321 clause 5.4.5: a grant for new data restarts retxBSR-Timer.
        self.trusts_until = tti.saturating_add(self.config.bsr_retransmission);
        self.insert(Block { slot: pusch, bytes, report: None, state: State::Granted });
        self.granted += 1;
        if self.is_after_report(pusch) {
            self.spent += u64::from(bytes);
        }
    }

    /// Returns whether the block sent in slot `tti` must carry a report even without padding, if `left` bytes wait after it. To be called
    /// before the block is filled; if so, [`BSR_BYTES`] of it must stay free. A report is due if anything is left and the base
    /// station was not told of any data, the period is over, or there is no other grant (ours: otherwise the base station might
    /// not learn of newer data).
    pub fn is_report_due(&self, tti: u64, left: u32) -> bool {
        let last = self.granted <= 1;
        !self.config.ideal_reports
            && left > 0
            && (last || !self.told || tti >= self.next_report || tti >= self.trusts_until)
    }

    /// The device sends a block of new data in slot `tti`; `left` bytes wait after it, and `padding` is whether at least
    /// [`BSR_BYTES`] of it are unused. Returns whether the block carries a report: always with padding, otherwise if
    /// [`Self::is_report_due`].
    pub fn on_pusch(&mut self, tti: u64, left: u32, padding: bool) -> bool {
        self.void_before(tti);
        let aboard = !self.config.ideal_reports && (padding || self.is_report_due(tti, left));
        let report = aboard.then_some(left);
        let here = |block: &&mut Block| block.slot == tti && block.state == State::Granted;
        if let Some(block) = self.blocks.iter_mut().find(here) {
            (block.report, block.state) = (report, State::Sent);
            self.granted -= 1;
        } else {
            // Sent without a grant for this slot, so the base station does not know it until it arrives.
            self.insert(Block { slot: tti, bytes: 0, report, state: State::Sent });
        }
        if aboard {
            self.told = true;
            self.next_report = tti.saturating_add(self.config.bsr_period);
            self.trusts_until = tti.saturating_add(self.config.bsr_retransmission);
        }
        if left == 0 {
            // Later data finds an empty buffer, which triggers a new report by TS 36.321 clause 5.4.5.
            self.told = false;
        }
        self.waited = left;
        aboard
    }

    /// The block first sent in slot `sent` was decoded, so the base station learns its report. Blocks may be decoded
    /// in any order: a report older than the known one, or an unknown block, has no effect.
    pub fn on_block_decoded(&mut self, sent: u64) {
        let Some(at) = self.find(sent) else { return };
        self.over(at, true);
    }

    /// The block first sent in slot `sent` was lost for good.
    pub fn on_block_lost(&mut self, sent: u64) {
        let Some(at) = self.find(sent) else { return };
        self.over(at, false);
    }

    /// Like [`Self::on_block_decoded`], for callers that kept the report and not the slot: the oldest block under way with
    /// this report (bytes left, or none) counts as decoded, or else the oldest of all. Equal reports may be confused;
    /// callers that know the slot should pass it.
    pub fn on_decoded(&mut self, tti: u64, report: Option<u32>) {
        let sent = |block: &Block| block.state == State::Sent && block.slot <= tti;
        let same = self.blocks.iter().position(|block| sent(block) && block.report == report);
        if let Some(at) = same.or_else(|| self.blocks.iter().position(sent)) {
            self.over(at, true);
        }
    }

    /// Like [`Self::on_block_lost`] for the oldest block under way, which is the right one if all have the same number of attempts.
    pub fn on_lost(&mut self, tti: u64) {
        let sent = |block: &Block| block.state == State::Sent && block.slot <= tti;
        if let Some(at) = self.blocks.iter().position(sent) {
            self.over(at, false);
        }
    }

    /// The next slot, from `tti` on, in which something can happen while the device has `backlog` bytes: a
    /// request, a grant, or a block granted before. [`u64::MAX`] if there is none.
    pub fn next_slot(&self, tti: u64, backlog: u32) -> u64 {
        if self.known_backlog() > 0 {
            return tti;
        }
        let request = self.request_due().map_or(u64::MAX, |due| due.max(tti));
        let block = self.blocks.iter().find(|block| block.state == State::Granted);
        let block = block.map_or(u64::MAX, |block| block.slot.max(tti));
        if self.config.ideal_reports {
            let known =
                self.ideal.front().map_or(u64::MAX, |(told, _)| told.saturating_add(self.config.sr_to_grant));
            let quiet = self.granted == 0 && self.ideal.is_empty();
            let tells = if backlog > self.waited || (backlog > 0 && quiet) { tti } else { u64::MAX };
            return request.min(block).min(known.max(tti)).min(tells);
        }
        let asks = if backlog > 0 && self.granted == 0 { self.first_opportunity(tti) } else { u64::MAX };
        request.min(block).min(asks)
    }

    /// Restarts at another base station, which knows nothing; grants become void. The fate of blocks under way no longer
    /// matters.
    pub fn restart(&mut self) {
        self.blocks.clear();
        self.granted = 0;
        (self.told, self.trusts_until, self.next_report, self.next_request) = (false, 0, 0, 0);
        (self.requested, self.missing) = (None, false);
        (self.reported, self.formed, self.spent) = (0, None, 0);
        self.waited = 0;
        self.ideal.clear();
    }

    /// When the base station answers a request, or grants for a missing block.
    fn request_due(&self) -> Option<u64> {
        if self.missing {
            return Some(0);
        }
        self.requested.map(|at| at.saturating_add(self.config.sr_to_grant))
    }

    /// The first slot, from `tti` on, in which a device with data would send a request.
    fn first_opportunity(&self, tti: u64) -> u64 {
        let trusts_until = if self.told { self.trusts_until } else { 0 };
        let from = tti.max(self.next_request_at()).max(trusts_until);
        let period = self.config.sr_period.max(1);
        let wait = (self.offset + period - from % period) % period;
        from.saturating_add(wait)
    }

    /// When the prohibit time ends; a grant ends it early.
    fn next_request_at(&self) -> u64 {
        if self.requested.is_some() { self.next_request } else { 0 }
    }

    fn is_after_report(&self, slot: u64) -> bool {
        self.formed.is_none_or(|formed| slot > formed)
    }

    /// Inserts in order of slots, nearly always at the end.
    fn insert(&mut self, block: Block) {
        if self.blocks.len() >= MOST_BLOCKS
            && let Some(oldest) = self.blocks.pop_front()
        {
            self.granted -= usize::from(oldest.state == State::Granted);
        }
        let behind = self.blocks.iter().rposition(|other| other.slot <= block.slot);
        self.blocks.insert(behind.map_or(0, |at| at + 1), block);
    }

    /// The block first sent in this slot, if it is still under way.
    fn find(&self, sent: u64) -> Option<usize> {
        self.blocks.iter().position(|block| block.slot == sent && block.state == State::Sent)
    }

    /// Voids unused grants for slots before this one; their bytes still wait.
    fn void_before(&mut self, tti: u64) {
        while self.granted > 0 {
            let stale = |block: &Block| block.state == State::Granted && block.slot < tti;
            let Some(at) = self.blocks.iter().position(stale) else { return };
            self.granted -= 1;
            self.over(at, false);
        }
    }

    fn over(&mut self, at: usize, decoded: bool) {
        let block = &mut self.blocks[at];
        block.state = State::Over;
        let slot = block.slot;
        if !decoded {
            let bytes = std::mem::take(&mut block.bytes);
            if self.is_after_report(slot) {
                self.spent = self.spent.saturating_sub(bytes.into());
            }
        } else if let Some(report) = block.report
            && self.formed.is_none_or(|formed| slot >= formed)
        {
            self.reported = self.config.levels.read(report);
            self.formed = Some(slot);
            self.missing = false;
            let later = self.blocks.iter().filter(|block| block.slot > slot);
            self.spent = later.map(|block| u64::from(block.bytes)).sum();
        }
        while self.blocks.front().is_some_and(|block| block.state == State::Over) {
            self.blocks.pop_front();
        }
        if !decoded && self.blocks.is_empty() && self.known_backlog() == 0 {
            self.missing = true;
        }
    }
}
