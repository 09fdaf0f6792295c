//! Scheduling requests, buffer status reports and grants of one user.

use std::collections::VecDeque;

use super::config::{AccessConfig, BSR_BYTES};

/// Blocks that are kept in mind, at most: more than any HARQ has under way. Only a caller that never says what became of
/// them gets here.
const MOST_BLOCKS: usize = 512;

/// What became of a granted block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its slot is to come.
    Granted,
    /// It was sent and is not decoded yet.
    Sent,
    /// Decoded, lost, or never sent.
    Over,
}

/// A granted block.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// In which it is sent first: its name, and the order of reports.
    slot: u64,
    /// What it carries of what waits, in bytes; none if it was lost.
    bytes: u32,
    /// What waited behind it, if it carries a report.
    report: Option<u32>,
    state: State,
}

/// What a base station knows of one user's uplink buffer, and what the user does to have it know.
///
/// The base station counts with the last report, less what it granted for later slots than that in which the report was
/// formed; a lost block gives back what it had taken, and where nothing is known then, the base station grants as upon a
/// request (ours: it knows that a block is missing). The device asks when it has data of which the base station was not
/// told; when it was told, but no grant came for [`AccessConfig::bsr_retransmission`]; and again after
/// [`AccessConfig::sr_prohibit`]. Requests and grants are never lost, only blocks are.
///
/// Of a slot, the caller tells in this order: [`Self::on_slot`], blocks decoded or lost, grants, blocks sent. A block sent
/// again is none of its business.
#[derive(Clone, Debug)]
pub struct Access {
    config: AccessConfig,
    /// Opportunities are the slots with this remainder of the period.
    offset: u64,
    /// Granted blocks in order of slots, from the first one that is not over.
    blocks: VecDeque<Block>,
    /// Of these, whose slots are to come.
    granted: usize,

    // What the device knows.
    /// Its last report left data waiting, and it has not been empty since: it trusts that a grant comes.
    told: bool,
    /// Until this slot: retxBSR-Timer.
    trusts_until: u64,
    /// periodicBSR-Timer runs until this slot.
    next_report: u64,
    /// sr-ProhibitTimer runs until this slot.
    next_request: u64,
    /// With [`AccessConfig::ideal_reports`]: what waited in the last slot, and the reports on their way with the slots of
    /// their sending.
    waited: u32,
    ideal: VecDeque<(u64, u32)>,

    // What the base station knows.
    /// When the request arrived that no grant has answered yet.
    requested: Option<u64>,
    /// A block is missing, and nothing else is known.
    missing: bool,
    /// What the last report said, in bytes.
    reported: u32,
    /// Blocks of later slots were granted knowing, or not yet knowing, this report.
    formed: Option<u64>,
    /// Bytes of these, without lost ones.
    spent: u64,
}

impl Access {
    /// Nothing waits and nothing is known. `user` gives the offset of its opportunities, so that users with following
    /// numbers are spread over the period.
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

    /// The device has so many bytes to send, headers and RLC's status reports included, at the beginning of slot `tti`.
    /// Returns whether it sends a scheduling request in this slot: it has data of which the base station does not know, no
    /// grant is under way, it has not just asked, and the slot is an opportunity. To be called in each slot while
    /// something waits, but slots before [`Self::next_slot`] may be left out. Grants whose slot has passed unused are void.
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

    /// Reports beside blocks: what was added is told, or what waits while nothing else is under way for it; and what was told
    /// [`AccessConfig::sr_to_grant`] ago is known from now on.
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

    /// What the base station would grant in slot `tti`, in bytes, 0 for nothing: what it believes to wait, and a report;
    /// or [`AccessConfig::first_grant`] once a request's time has come, if that is more.
    #[inline]
    pub fn wanted(&self, tti: u64) -> u32 {
        let due = self.request_due().is_some_and(|due| due <= tti);
        let known = match self.known_backlog() {
            0 => 0,
            bytes => bytes.saturating_add(BSR_BYTES),
        };
        if due { known.max(self.config.first_grant).max(1) } else { known }
    }

    /// What the base station believes to wait at the device, in bytes, beyond what it has granted.
    pub fn known_backlog(&self) -> u32 {
        // At most what was reported, hence no cut.
        u64::from(self.reported).saturating_sub(self.spent) as u32
    }

    /// The base station granted a block of new data of so many bytes in slot `tti`; it will be sent after
    /// [`AccessConfig::grant_to_pusch`].
    pub fn on_grant(&mut self, tti: u64, bytes: u32) {
        self.on_grant_for(tti, bytes, tti.saturating_add(self.config.grant_to_pusch));
    }

    /// As [`Self::on_grant`], for a block that will be sent in slot `pusch`: where not every slot is one of the uplink.
    pub fn on_grant_for(&mut self, tti: u64, bytes: u32, pusch: u64) {
        self.requested = None;
        self.missing = false;
        // TS 36.321 clause 5.4.5: a grant for new data starts retxBSR-Timer again.
        self.trusts_until = tti.saturating_add(self.config.bsr_retransmission);
        self.insert(Block { slot: pusch, bytes, report: None, state: State::Granted });
        self.granted += 1;
        if self.is_after_report(pusch) {
            self.spent += u64::from(bytes);
        }
    }

    /// Whether the block that the device sends in slot `tti` is to carry a report though it has no room to spare, when
    /// `left` bytes wait after it: ask before it is filled, and keep [`BSR_BYTES`] of it free if so. It is, if anything is
    /// left and the base station was not told of any, the period is over, or no other grant is at hand (ours: else the
    /// base station might not hear of what came since).
    pub fn is_report_due(&self, tti: u64, left: u32) -> bool {
        let last = self.granted <= 1;
        !self.config.ideal_reports
            && left > 0
            && (last || !self.told || tti >= self.next_report || tti >= self.trusts_until)
    }

    /// The device sends a block of new data in slot `tti`; `left` bytes wait after it, and `padding` says whether at least
    /// [`BSR_BYTES`] of it are not needed. Returns whether a report is aboard, which is remembered: with padding always,
    /// else if [`Self::is_report_due`] said so.
    pub fn on_pusch(&mut self, tti: u64, left: u32, padding: bool) -> bool {
        self.void_before(tti);
        let aboard = !self.config.ideal_reports && (padding || self.is_report_due(tti, left));
        let report = aboard.then_some(left);
        let here = |block: &&mut Block| block.slot == tti && block.state == State::Granted;
        if let Some(block) = self.blocks.iter_mut().find(here) {
            (block.report, block.state) = (report, State::Sent);
            self.granted -= 1;
        } else {
            // Without a grant for this slot, hence unknown to the base station until it arrives.
            self.insert(Block { slot: tti, bytes: 0, report, state: State::Sent });
        }
        if aboard {
            self.told = true;
            self.next_report = tti.saturating_add(self.config.bsr_period);
            self.trusts_until = tti.saturating_add(self.config.bsr_retransmission);
        }
        if left == 0 {
            // What comes next finds an empty buffer, of which TS 36.321 clause 5.4.5 makes a new report.
            self.told = false;
        }
        self.waited = left;
        aboard
    }

    /// The block first sent in slot `sent` was decoded: the base station knows what its report says. Blocks may be decoded
    /// in any order; an older report than that which is known changes nothing. An unknown block neither.
    pub fn on_block_decoded(&mut self, sent: u64) {
        let Some(at) = self.find(sent) else { return };
        self.over(at, true);
    }

    /// The block first sent in slot `sent` was lost for good.
    pub fn on_block_lost(&mut self, sent: u64) {
        let Some(at) = self.find(sent) else { return };
        self.over(at, false);
    }

    /// As [`Self::on_block_decoded`], where the caller kept the report and not the slot: the oldest block under way with
    /// this report (what was left, or none) counts as decoded, or the oldest of all if there is none. Reports that say the
    /// same may so be taken for each other; who knows the slot does better to give it.
    pub fn on_decoded(&mut self, tti: u64, report: Option<u32>) {
        let sent = |block: &Block| block.state == State::Sent && block.slot <= tti;
        let same = self.blocks.iter().position(|block| sent(block) && block.report == report);
        if let Some(at) = same.or_else(|| self.blocks.iter().position(sent)) {
            self.over(at, true);
        }
    }

    /// As [`Self::on_block_lost`] for the oldest block under way: with the same number of attempts for all, it is the one.
    pub fn on_lost(&mut self, tti: u64) {
        let sent = |block: &Block| block.state == State::Sent && block.slot <= tti;
        if let Some(at) = self.blocks.iter().position(sent) {
            self.over(at, false);
        }
    }

    /// The next slot, `tti` or later, in which something can happen on its own while the device has `backlog` bytes: a
    /// request, a grant, a block granted before. [`u64::MAX`] if there is none.
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

    /// Begins anew, at another base station: it knows nothing, and grants are void. What becomes of blocks under way does
    /// not matter any more.
    pub fn restart(&mut self) {
        self.blocks.clear();
        self.granted = 0;
        (self.told, self.trusts_until, self.next_report, self.next_request) = (false, 0, 0, 0);
        (self.requested, self.missing) = (None, false);
        (self.reported, self.formed, self.spent) = (0, None, 0);
        self.waited = 0;
        self.ideal.clear();
    }

    /// From when on the base station answers a request, or asks for what is missing.
    fn request_due(&self) -> Option<u64> {
        if self.missing {
            return Some(0);
        }
        self.requested.map(|at| at.saturating_add(self.config.sr_to_grant))
    }

    /// The first slot, `tti` or later, in which a device with data would send a request.
    fn first_opportunity(&self, tti: u64) -> u64 {
        let trusts_until = if self.told { self.trusts_until } else { 0 };
        let from = tti.max(self.next_request_at()).max(trusts_until);
        let period = self.config.sr_period.max(1);
        let wait = (self.offset + period - from % period) % period;
        from.saturating_add(wait)
    }

    /// When the prohibit time ends; it ends early with a grant.
    fn next_request_at(&self) -> u64 {
        if self.requested.is_some() { self.next_request } else { 0 }
    }

    fn is_after_report(&self, slot: u64) -> bool {
        self.formed.is_none_or(|formed| slot > formed)
    }

    /// Keeps the order of slots; nearly always at the end.
    fn insert(&mut self, block: Block) {
        if self.blocks.len() >= MOST_BLOCKS
            && let Some(oldest) = self.blocks.pop_front()
        {
            self.granted -= usize::from(oldest.state == State::Granted);
        }
        let behind = self.blocks.iter().rposition(|other| other.slot <= block.slot);
        self.blocks.insert(behind.map_or(0, |at| at + 1), block);
    }

    /// The block first sent in this slot that is still under way.
    fn find(&self, sent: u64) -> Option<usize> {
        self.blocks.iter().position(|block| block.slot == sent && block.state == State::Sent)
    }

    /// Grants for slots before this one were not used: their bytes still wait.
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
