//! The receivers of the client-driven controls, `cdbe_client.h`, `cdbev2_client.h` and `dcic_client.h`.

use ranpace_cc::{OptionError, Options, RadioHint, Received, ReceiverHalf, ReceiverReport};
use ranpace_units::{Span, Time};

use crate::driven::{Words, encode};

mirror! {
    /// Data that arrived.
    pub struct Arrival[ranpace_arrival_layout] {
        /// Nanoseconds.
        pub now: u64,
        /// Payload.
        pub bytes: u32,
        /// Packets that were merged.
        pub segments: u32,
        /// The sender's timestamp in ticks.
        pub stamp: u32,
        /// By echoed timestamps; 0: none.
        pub rtt_us: u32,
    }
}

mirror! {
    /// What a feed says.
    pub struct Hint[ranpace_dcic_hint_layout] {
        at: u64,
        bits: u32,
        slot_ns: u32,
        prbs: u32,
        cell: u16,
        cqi: u8,
        layers: u8,
        has_dci: u8,
        has_cqi: u8,
        unused: [u8; 6],
    }
}

mirror! {
    /// CDBE's.
    pub struct CdbeClientSettings[ranpace_cdbe_client_settings_layout] {
        window: u64,
        tick_us: u32,
        every: u32,
        literal: u8,
        gap_unit: u8,
        unused: [u8; 6],
    }
}

mirror! {
    /// CDBEv2's.
    pub struct Cdbev2ClientSettings[ranpace_cdbev2_client_settings_layout] {
        tw: u64,
        every: u32,
        literal: u32,
    }
}

mirror! {
    /// DCIC's and CQIC-S's.
    pub struct DcicClientSettings[ranpace_dcic_client_settings_layout] {
        estimator: u32,
        every: u32,
    }
}

/// States, which only C reads; a test compares their sizes.
type CdbeClient = Words<14>;
type Cdbev2Client = Words<7>;
type DcicClient = Words<11>;

unsafe extern "C" {
    fn ranpace_cdbe_client_on_data(
        c: *mut CdbeClient,
        settings: *const CdbeClientSettings,
        arrival: *const Arrival,
    );
    fn ranpace_cdbe_client_report(c: *mut CdbeClient, settings: *const CdbeClientSettings) -> u64;
    fn ranpace_cdbev2_client_on_data(
        c: *mut Cdbev2Client,
        settings: *const Cdbev2ClientSettings,
        arrival: *const Arrival,
    );
    fn ranpace_cdbev2_client_report(c: *mut Cdbev2Client) -> u64;
    fn ranpace_dcic_client_on_start(c: *mut DcicClient, now: u64);
    fn ranpace_dcic_client_on_hint(
        c: *mut DcicClient,
        settings: *const DcicClientSettings,
        hint: *const Hint,
        now: u64,
    );
    fn ranpace_dcic_client_report(c: *mut DcicClient, settings: *const DcicClientSettings, now: u64) -> u64;
}

/// The report in the option that the kernel writes; `None` for none.
fn written(rate: u64) -> Option<ReceiverReport> {
    assert_ne!(rate, u64::MAX, "what was announced to be written is not what was");
    (rate > 0).then(|| encode(rate)).and_then(|option| ReceiverReport::new(&option[2..]))
}

fn arrival(received: &Received) -> Arrival {
    Arrival {
        now: received.now.as_nanos(),
        bytes: u32::try_from(received.bytes.get()).unwrap_or(u32::MAX),
        segments: 1,
        stamp: received.sent_at.as_millis() as u32, // wraps, as timestamps do
        rtt_us: received.rtt.map_or(0, |rtt| u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX)),
    }
}

fn every(options: &mut Options) -> Result<u32, OptionError> {
    Ok(options.number("report-every", 1.0, 1e6, 1.0)? as u32)
}

/// CDBE's receiver.
#[derive(Debug)]
pub struct KernelCdbeClient {
    settings: CdbeClientSettings,
    state: CdbeClient,
}

impl KernelCdbeClient {
    /// As the options say.
    ///
    /// # Errors
    ///
    /// An option with a value that it cannot have.
    pub fn read(options: &mut Options) -> Result<Self, OptionError> {
        let settings = CdbeClientSettings {
            window: options.span("window", Span::ZERO)?.as_nanos(),
            tick_us: 1000,
            every: every(options)?,
            literal: options.choice("fence", &[("next_arrival", 0), ("literal", 1)])?,
            gap_unit: options.choice("gap_unit", &[("ws", 0), ("s", 1), ("ms", 2)])?,
            unused: [0; 6],
        };
        Ok(Self { settings, state: CdbeClient::default() })
    }
}

impl ReceiverHalf for KernelCdbeClient {
    fn on_data(&mut self, received: &Received) {
        // SAFETY: C reads the structures and writes the state, whose layouts and size tests compare.
        unsafe {
            ranpace_cdbe_client_on_data(&raw mut self.state, &raw const self.settings, &arrival(received))
        };
    }

    fn report(&mut self, _: Time) -> Option<ReceiverReport> {
        // SAFETY: as above.
        written(unsafe { ranpace_cdbe_client_report(&raw mut self.state, &raw const self.settings) })
    }
}

/// CDBEv2's receiver.
#[derive(Debug)]
pub struct KernelCdbev2Client {
    settings: Cdbev2ClientSettings,
    state: Cdbev2Client,
}

impl KernelCdbev2Client {
    /// As the options say.
    ///
    /// # Errors
    ///
    /// An option with a value that it cannot have.
    pub fn read(options: &mut Options) -> Result<Self, OptionError> {
        let settings = Cdbev2ClientSettings {
            tw: options.span("tw", Span::from_millis(10))?.as_nanos(),
            every: every(options)?,
            literal: options.choice("est", &[("boundary", 0), ("literal", 1)])?,
        };
        Ok(Self { settings, state: Cdbev2Client::default() })
    }
}

impl ReceiverHalf for KernelCdbev2Client {
    fn on_data(&mut self, received: &Received) {
        // SAFETY: C reads the structures and writes the state, whose layouts and size tests compare.
        unsafe {
            ranpace_cdbev2_client_on_data(&raw mut self.state, &raw const self.settings, &arrival(received))
        };
    }

    fn report(&mut self, _: Time) -> Option<ReceiverReport> {
        // SAFETY: as above.
        written(unsafe { ranpace_cdbev2_client_report(&raw mut self.state) })
    }
}

/// DCIC's and CQIC-S's receiver.
#[derive(Debug)]
pub struct KernelDcicClient {
    settings: DcicClientSettings,
    state: DcicClient,
}

impl KernelDcicClient {
    /// As the options say.
    ///
    /// # Errors
    ///
    /// An option with a value that it cannot have.
    pub fn read(options: &mut Options) -> Result<Self, OptionError> {
        let settings = DcicClientSettings {
            estimator: options.choice("estimator", &[("window", 0), ("per_dci", 1), ("gap", 2)])?,
            every: every(options)?,
        };
        Ok(Self { settings, state: DcicClient::default() })
    }
}

impl ReceiverHalf for KernelDcicClient {
    fn on_start(&mut self, now: Time) {
        // SAFETY: C writes the state, whose size a test compares.
        unsafe { ranpace_dcic_client_on_start(&raw mut self.state, now.as_nanos()) };
    }

    fn on_data(&mut self, _: &Received) {}

    fn wants_radio(&self) -> bool {
        true
    }

    fn wants_quality(&self) -> bool {
        true
    }

    fn on_radio(&mut self, now: Time, hint: &RadioHint) {
        let hint = Hint {
            at: hint.measured_at.as_nanos(),
            bits: hint.tbs_bits.unwrap_or(0),
            slot_ns: u32::try_from(hint.tti.as_nanos()).unwrap_or(u32::MAX),
            prbs: (hint.granted * 256.0) as u32,
            cell: hint.cell,
            cqi: hint.cqi.unwrap_or(0),
            layers: hint.layers,
            has_dci: hint.tbs_bits.is_some().into(),
            has_cqi: hint.cqi.is_some().into(),
            unused: [0; 6],
        };
        // SAFETY: C reads the structures and writes the state, whose layouts and size tests compare.
        unsafe {
            ranpace_dcic_client_on_hint(&raw mut self.state, &raw const self.settings, &hint, now.as_nanos());
        }
    }

    fn report(&mut self, now: Time) -> Option<ReceiverReport> {
        // SAFETY: as above.
        written(unsafe {
            ranpace_dcic_client_report(&raw mut self.state, &raw const self.settings, now.as_nanos())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn ranpace_cdbe_client_size() -> usize;
        fn ranpace_cdbev2_client_size() -> usize;
        fn ranpace_dcic_client_size() -> usize;
    }

    #[test]
    fn states_have_the_sizes_of_c() {
        // SAFETY: these return numbers.
        let sizes =
            unsafe { [ranpace_cdbe_client_size(), ranpace_cdbev2_client_size(), ranpace_dcic_client_size()] };
        assert_eq!(sizes, [size_of::<CdbeClient>(), size_of::<Cdbev2Client>(), size_of::<DcicClient>()]);
    }
}
