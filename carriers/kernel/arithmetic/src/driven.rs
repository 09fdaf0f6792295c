//! The senders of the client-driven controls, `cdbe.h`, `cdbev2.h` and `dcic.h`, with the guard of `guard.h` between them and
//! the kernel's CUBIC.

use ranpace_cc::cdbe::server::{Growth, Restart};
use ranpace_cc::cdbe::server_params;
use ranpace_cc::cdbev2::DrainReference;
use ranpace_cc::cdbev2::filter::Compensation;
use ranpace_cc::cdbev2::machine::DrainDepth;
use ranpace_cc::cdbev2::settings::{OneWay, Recovery, Settings};
use ranpace_cc::{
    Ack, Congestion, CongestionControl, Context, LossBased, LossResponse, OptionError, Options,
    ReceiverReport, Sample, Sent, Signal, Window,
};
use ranpace_units::Span;

use crate::engine::{Engine, Flat};
use crate::flow::{self, Flow};
use crate::parent;

/// Words of a state that only C reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Words<const N: usize>([u64; N]);

impl<const N: usize> Default for Words<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

mirror! {
    /// One event.
    pub struct Event[ranpace_event_layout] {
        /// The connection.
        pub flow: Flow,
        /// The acknowledgement, of a sample and of an acknowledgement.
        pub ack: flow::Ack,
        /// What happened.
        pub kind: u32,
        /// Of a report: bytes a second.
        pub rate: u64,
        /// Of a loss: segments.
        pub lost: u32,
        /// Written: what the parent has to do.
        pub parent: u32,
    }
}

mirror! {
    /// Whether there is a guard.
    pub struct GuardSettings[ranpace_guard_settings_layout] {
        /// The control has the window always.
        pub off: u32,
        unused: u32,
    }
}

mirror! {
    /// DCIC's.
    pub struct DcicSettings[ranpace_dcic_settings_layout] {
        guard: GuardSettings,
        unit: u32,
        unused: u32,
    }
}

mirror! {
    /// CDBE's and CQIC-S's.
    pub struct CdbeSettings[ranpace_cdbe_settings_layout] {
        guard: GuardSettings,
        unit: u32,
        tick_us: u32,
        startup: u32,
        drain_cap: u32,
        min_window: u64,
        growth_alpha: u8,
        restart_after_limit: u8,
        after_drain: u8,
        unused: [u8; 5],
    }
}

mirror! {
    /// CDBEv2's.
    pub struct Cdbev2Settings[ranpace_cdbev2_settings_layout] {
        guard: GuardSettings,
        /// Of STEADY's random times.
        pub seed: u64,
        interval_us: u32,
        k: u32,
        deep_after: u32,
        deep: u8,
        compensation: u8,
        reference: u8,
        recovery: u8,
        no_fair_quit: u8,
        thres1_rtt: u8,
        unused: [u8; 2],
        tick_us: u32,
    }
}

mirror! {
    /// DCIC, and one event of it.
    pub struct DcicCall[ranpace_dcic_call_layout] {
        settings: DcicSettings,
        state: Words<93>,
        event: Event,
    }
}

mirror! {
    /// CDBE or CQIC-S, and one event of it.
    pub struct CdbeCall[ranpace_cdbe_call_layout] {
        settings: CdbeSettings,
        state: Words<108>,
        event: Event,
    }
}

mirror! {
    /// CDBEv2, and one event of it.
    pub struct Cdbev2Call[ranpace_cdbev2_call_layout] {
        settings: Cdbev2Settings,
        state: Words<118>,
        event: Event,
    }
}

unsafe extern "C" {
    fn ranpace_dcic_step(call: *mut DcicCall);
    fn ranpace_cdbe_step(call: *mut CdbeCall);
    fn ranpace_cdbev2_step(call: *mut Cdbev2Call);
    fn ranpace_report_encode(option: *mut u8, rate: u64);
    fn ranpace_report_decode(option: *const u8) -> u64;
}

/// The kernel's clock of timestamps, microseconds.
const TICK_US: u32 = 1000;

/// The kinds of `driven.h`.
const START: u32 = 0;
const REPORT: u32 = 1;
const SAMPLE: u32 = 2;
const LOSS: u32 = 3;
const TIMEOUT: u32 = 4;
const MARK: u32 = 5;
const ACK: u32 = 6;
const RECOVERED: u32 = 7;
const SPURIOUS: u32 = 8;
const IDLE: u32 = 9;
/// What the parent has to do.
const PARENT_ANSWERS: u32 = 1;
const PARENT_BEGINS: u32 = 2;
const PARENT_HAS: u32 = 4;

/// The option for a rate in bytes/s.
pub fn encode(rate: u64) -> [u8; 8] {
    let mut option = [0; 8];
    // SAFETY: C writes eight bytes.
    unsafe { ranpace_report_encode(option.as_mut_ptr(), rate) };
    option
}

/// The rate in bytes/s that an option reports; 0 for none.
pub fn decode(option: &[u8; 8]) -> u64 {
    // SAFETY: C reads eight bytes.
    unsafe { ranpace_report_decode(option.as_ptr()) }
}

/// Settings, state and event of a sender.
pub trait Call: Flat + core::fmt::Debug + Send + 'static {
    /// The event that comes.
    fn event(&mut self) -> &mut Event;
    /// Plays it, natively.
    fn step(&mut self);
    /// Whether there is a guard.
    fn guarded(&self) -> bool;
}

macro_rules! call {
    ($($name:ident $step:ident),*) => { $(
        impl Call for $name {
            fn event(&mut self) -> &mut Event {
                &mut self.event
            }

            fn step(&mut self) {
                // SAFETY: C reads and writes this structure alone, whose layout a test compares.
                unsafe { $step(self) };
            }

            fn guarded(&self) -> bool {
                self.settings.guard.off == 0
            }
        }

        // SAFETY: the fields are numbers without gaps between them; a test compares offsets and sizes.
        unsafe impl Flat for $name {}
    )* };
}
call!(DcicCall ranpace_dcic_step, CdbeCall ranpace_cdbe_step, Cdbev2Call ranpace_cdbev2_step);

fn guard(options: &mut Options) -> Result<GuardSettings, OptionError> {
    Ok(GuardSettings { off: u32::from(!options.flag("guard", true)?), unused: 0 })
}

fn unit(options: &mut Options) -> Result<u32, OptionError> {
    options.choice("pkt", &[("headers", 1), ("segment", 0)])
}

/// What the kernel cannot do: its clock and the peer's do not agree.
fn clocks(options: &mut Options, key: &'static str) -> Result<(), OptionError> {
    options.choice(key, &[("pinned", ())])
}

impl DcicCall {
    /// What the options say.
    ///
    /// # Errors
    ///
    /// An option with a value that it cannot have.
    pub fn read(options: &mut Options) -> Result<Self, OptionError> {
        let settings = DcicSettings { guard: guard(options)?, unit: unit(options)?, unused: 0 };
        Ok(Self { settings, ..Self::default() })
    }
}

impl CdbeCall {
    /// CDBE, as the options say.
    ///
    /// # Errors
    ///
    /// An option with a value that it cannot have in the kernel.
    pub fn cdbe(options: &mut Options) -> Result<Self, OptionError> {
        Self::read(options, 0)
    }

    /// CQIC-S, as the options say.
    ///
    /// # Errors
    ///
    /// An option with a value that it cannot have in the kernel.
    pub fn cqic_s(options: &mut Options) -> Result<Self, OptionError> {
        let unit = unit(options)?;
        Self::read(options, unit)
    }

    fn read(options: &mut Options, unit: u32) -> Result<Self, OptionError> {
        clocks(&mut options.clone(), "dsdl")?;
        let params = server_params(options)?;
        let settings = CdbeSettings {
            guard: guard(options)?,
            unit,
            tick_us: TICK_US,
            startup: params.startup,
            drain_cap: params.drain_cap,
            min_window: params.min_window.as_nanos(),
            growth_alpha: (params.growth == Growth::Alpha).into(),
            restart_after_limit: (params.restart == Restart::AfterLimit).into(),
            after_drain: params.after_drain.into(),
            unused: [0; 5],
        };
        Ok(Self { settings, ..Self::default() })
    }
}

impl Cdbev2Call {
    /// What the options say; the seed feeds the random lengths of STEADY.
    ///
    /// # Errors
    ///
    /// An option with a value that it cannot have in the kernel.
    pub fn read(options: &mut Options, seed: u64) -> Result<Self, OptionError> {
        let Settings {
            deep,
            deep_after,
            fair_quit,
            compensation,
            reference,
            recovery,
            thres1_rtt,
            one_way,
            k,
            interval,
            ..
        } = Settings::parse(options)?;
        if one_way == OneWay::True {
            clocks(options, "dsdl")?;
        }
        let settings = Cdbev2Settings {
            guard: guard(options)?,
            seed,
            interval_us: u32::try_from(interval.as_micros()).unwrap_or(u32::MAX),
            k: (k * 65_536.0) as u32,
            deep_after,
            deep: match deep {
                DrainDepth::Dual => 0,
                DrainDepth::Single => 1,
                DrainDepth::Off => 2,
            },
            compensation: match compensation {
                Compensation::InFlight => 0,
                Compensation::Bdp => 1,
                Compensation::Off => 2,
            },
            reference: match reference {
                DrainReference::Robust => 0,
                DrainReference::Live => 1,
                DrainReference::Pre => 2,
                DrainReference::Filtered => 3,
                DrainReference::Past => 4,
            },
            recovery: match recovery {
                Recovery::Running => 0,
                Recovery::Assigned => 1,
                Recovery::Last => 2,
            },
            no_fair_quit: (!fair_quit).into(),
            thres1_rtt: thres1_rtt.into(),
            unused: [0; 2],
            tick_us: TICK_US,
        };
        Ok(Self { settings, ..Self::default() })
    }
}

/// A sender of the kernel's over CUBIC of `logic/cc`.
#[derive(Debug)]
pub struct KernelDriven<C> {
    parent: Box<dyn LossBased>,
    call: C,
    engine: Engine<C>,
    /// The window is the parent's.
    plain: bool,
}

impl<C: Call> KernelDriven<C> {
    /// A fresh one.
    pub fn new(call: C) -> Self {
        Self::with_engine(call, Engine::new(C::step))
    }

    /// The same, worked out by somebody else.
    pub fn with_engine(call: C, engine: Engine<C>) -> Self {
        Self { parent: parent("cubic"), plain: call.guarded(), call, engine }
    }

    /// Plays an event; whether the parent answers a congestion, and whether it has begun anew.
    fn step(&mut self, cx: &Context, w: &mut Window, kind: u32) -> (bool, bool) {
        let event = self.call.event();
        event.flow.load(cx, w);
        event.kind = kind;
        let loaded = event.flow;
        self.engine.step(&mut self.call);
        let event = self.call.event();
        let (parent_does, flow) = (event.parent, event.flow);
        flow.store(&loaded, cx, w);
        self.plain = parent_does & PARENT_HAS != 0;
        let begins = parent_does & PARENT_BEGINS != 0;
        if begins {
            // Whole, as the kernel's: the fraction was of the parent that there was before.
            w.cwnd = f64::from(flow.cwnd);
            self.parent = parent("cubic");
            self.parent.on_start(cx, w);
        }
        (parent_does & PARENT_ANSWERS != 0, begins)
    }
}

impl<C: Call> CongestionControl for KernelDriven<C> {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.parent.on_start(cx, w);
        self.step(cx, w, START);
    }

    fn on_report(&mut self, cx: &Context, w: &mut Window, report: &ReceiverReport) {
        let Ok(value) = <[u8; 6]>::try_from(report.as_bytes()) else { return };
        let mut option = [254, 8, 0, 0, 0, 0, 0, 0];
        option[2..].copy_from_slice(&value);
        let rate = decode(&option);
        if rate > 0 {
            self.call.event().rate = rate;
            self.step(cx, w, REPORT);
        }
    }

    fn on_sent(&mut self, cx: &Context, w: &mut Window, sent: &Sent) {
        if self.plain {
            self.parent.on_sent(cx, w, sent);
        }
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        if self.plain {
            self.parent.on_sample(cx, w, sample);
        }
        self.call.event().ack = sample.into();
        self.step(cx, w, SAMPLE);
    }

    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        self.call.event().lost = u32::try_from(event.lost).unwrap_or(u32::MAX);
        let kind = match event.kind {
            Signal::Loss => LOSS,
            Signal::Timeout { .. } => TIMEOUT,
            Signal::Ecn => MARK,
        };
        let (answers, begins) = self.step(cx, w, kind);
        if !answers {
            return LossResponse::Own;
        }
        self.parent.on_congestion(cx, w, &Congestion { first: begins || event.first, ..*event })
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        if self.plain {
            self.parent.on_ack(cx, w, ack);
        }
        self.call.event().ack = ack.into();
        self.step(cx, w, ACK);
    }

    fn owns_recovery(&self) -> bool {
        !self.plain
    }

    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        if self.plain {
            self.parent.on_recovered(cx, w);
        }
        self.step(cx, w, RECOVERED);
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        if self.plain {
            self.parent.on_spurious(cx, w, prior);
        }
        self.step(cx, w, SPURIOUS);
    }

    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, idle: Span) {
        if self.plain {
            self.parent.on_idle_restart(cx, w, idle);
        }
        self.step(cx, w, IDLE);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ranpace_cc::bw_report::{Format, parse_option};
    use ranpace_cc::cdbev2::filter;
    use ranpace_units::{Rate, Span};

    use super::*;

    unsafe extern "C" {
        fn ranpace_cdbev2_weight(rtt_us: u32, k: u32, interval_us: u32) -> u64;
        fn ranpace_product_exceeds(a: u64, b: u64, c: u64, d: u64) -> core::ffi::c_int;
        fn ranpace_in_time(rate: u64, ns: u64) -> u64;
    }

    #[test]
    fn an_option_is_eight_bytes_that_logic_cc_reads() {
        for (rate, option, kbit) in [
            (0, [254, 8, 0x52, 0x50, 0, 0, 0, 0], None),
            (1, [254, 8, 0x52, 0x50, 0, 0, 0, 1], Some(1)),
            (2_500_000, [254, 8, 0x52, 0x50, 0, 0, 0x4e, 0x20], Some(20_000)),
            (u64::MAX, [254, 8, 0x52, 0x50, 0xff, 0xff, 0xff, 0xff], Some(u32::MAX)),
        ] {
            assert_eq!(encode(rate), option);
            let read = parse_option(&option);
            assert_eq!(read, kbit.map(|kbit: u32| Rate::from_bits_per_s(1000 * u64::from(kbit))));
        }
        assert_eq!(decode(&[254, 8, 0x52, 0x50, 0xff, 0xff, 0xff, 0xff]), 12_500_000_000, "100 Gbit/s");
        for other in [
            [253, 8, 0x52, 0x50, 0, 0, 0, 1],
            [254, 7, 0x52, 0x50, 0, 0, 0, 1],
            [254, 8, 0x52, 0x51, 0, 0, 0, 1],
        ] {
            assert_eq!(decode(&other), 0, "{other:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn options_travel_both_ways(bytes in 0..12_500_000_000u64, option: [u8; 8]) {
            let theirs = Format::Experiment.encode(Rate::from_bits_per_s(8 * bytes));
            prop_assert_eq!(&encode(bytes)[2..], theirs.as_bytes());
            let known = parse_option(&encode(bytes)).map_or(0, |rate| rate.bits_per_s() / 8);
            prop_assert_eq!(decode(&encode(bytes)), known);
            prop_assert_eq!(decode(&option) == 0, option[0] != 254 || parse_option(&option).is_none());
        }

        #[test]
        fn fixed_point_is_as_exact_as_its_comments_say(
            rtt_us in 1..16_777_215u32, tenths in 5..80u32, interval_us in 1_000..10_000_000u32,
            a in any::<u64>(), b in any::<u64>(), c in any::<u64>(), d in any::<u64>(),
            rate in 0..1u64 << 50, ns in 0..16_777_215_000u64,
        ) {
            let k = tenths * 65_536 / 10;
            // SAFETY: these take and return numbers.
            let weight = unsafe { ranpace_cdbev2_weight(rtt_us, k, interval_us) } as f64 / 2f64.powi(32);
            let exact = filter::filter_weight(
                Span::from_micros(rtt_us.into()), Span::from_micros(interval_us.into()), f64::from(k) / 65_536.0, filter::THRES,
            );
            prop_assert!((weight - exact).abs() < 2f64.powi(-27), "{weight}, {exact}");
            // SAFETY: as above.
            let exceeds = unsafe { ranpace_product_exceeds(a, b, c, d) } != 0;
            prop_assert_eq!(exceeds, u128::from(a) * u128::from(b) > u128::from(c) * u128::from(d));
            // SAFETY: as above.
            prop_assert_eq!(u128::from(unsafe { ranpace_in_time(rate, ns) }), u128::from(rate) * u128::from(ns) / 1_000_000_000);
        }
    }
}
