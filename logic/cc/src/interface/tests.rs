//! Checks that every wrapper of a control forwards every hook.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use ranpace_phy::LteBandwidth;
use ranpace_rnis::CellInfo;
use ranpace_units::{Span, Time};

use super::*;
use crate::client_driven::bw_report::Format;
use crate::client_driven::guard::Guard;
use crate::testing::testbed::{ack, context, loss, sample};
use crate::{DECORATORS, Options};

/// Records which of its hooks are called.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<BTreeSet<&'static str>>>);

impl Recorder {
    fn note(&self, hook: &'static str) {
        self.0.lock().unwrap().insert(hook);
    }

    fn take(&self) -> BTreeSet<&'static str> {
        core::mem::take(&mut self.0.lock().unwrap())
    }
}

impl CongestionControl for Recorder {
    fn on_start(&mut self, _: &Context, _: &mut Window) {
        self.note("on_start");
    }
    fn on_sent(&mut self, _: &Context, _: &mut Window, _: &Sent) {
        self.note("on_sent");
    }
    fn on_sample(&mut self, _: &Context, _: &mut Window, _: &Sample) {
        self.note("on_sample");
    }
    fn on_congestion(&mut self, _: &Context, _: &mut Window, _: &Congestion) -> LossResponse {
        self.note("on_congestion");
        LossResponse::ReduceTo(2.0)
    }
    fn on_ack(&mut self, _: &Context, _: &mut Window, _: &Ack) {
        self.note("on_ack");
    }
    fn owns_recovery(&self) -> bool {
        self.note("owns_recovery");
        true
    }
    fn ack_every(&self) -> Option<u32> {
        self.note("ack_every");
        Some(7)
    }
    fn ecn(&self) -> EcnUse {
        self.note("ecn");
        EcnUse::Scalable
    }
    fn on_coarse_ecn(&mut self, _: &Context, _: &mut Window) {
        self.note("on_coarse_ecn");
    }
    fn burst(&self) -> Option<Span> {
        self.note("burst");
        Some(Span::SECOND)
    }
    fn wants_packets(&self) -> bool {
        self.note("wants_packets");
        true
    }
    fn on_packet(&mut self, _: &Context, _: &mut Window, _: &Packet) {
        self.note("on_packet");
    }
    fn on_recovered(&mut self, _: &Context, _: &mut Window) {
        self.note("on_recovered");
    }
    fn on_spurious(&mut self, _: &Context, _: &mut Window, _: &Window) {
        self.note("on_spurious");
    }
    fn on_idle_restart(&mut self, _: &Context, _: &mut Window, _: Span) {
        self.note("on_idle_restart");
    }
    fn on_path_change(&mut self, _: &Context, _: &mut Window) {
        self.note("on_path_change");
    }
    fn next_deadline(&self) -> Option<Time> {
        self.note("next_deadline");
        Some(Time::from_secs(9))
    }
    fn on_deadline(&mut self, _: &Context, _: &mut Window) {
        self.note("on_deadline");
    }
    fn on_report(&mut self, _: &Context, _: &mut Window, _: &ReceiverReport) {
        self.note("on_report");
    }
    fn wants_radio(&self) -> bool {
        self.note("wants_radio");
        true
    }
    fn on_radio(&mut self, _: &Context, _: &mut Window, _: &RadioHint) {
        self.note("on_radio");
    }
    fn on_pep(&mut self, _: &Context, _: &mut Window, _: &PepReport) {
        self.note("on_pep");
    }
    fn believes_gaps(&self, now: Time) -> Option<Time> {
        self.note("believes_gaps");
        Some(now)
    }
    fn on_allocation(&mut self, _: &Context, _: &mut Window, _: Option<Allocation>) {
        self.note("on_allocation");
    }
    fn set_target(&mut self, _: Span) -> bool {
        self.note("set_target");
        true
    }
    fn memory(&self) -> Option<PathMemory> {
        self.note("memory");
        Some(PathMemory { min_rtt: Span::SECOND, cell: None, since: Time::ZERO })
    }
    fn recall(&mut self, _: PathMemory) {
        self.note("recall");
    }
    fn inspect(&self, _: &mut dyn FnMut(&'static str, f64)) {
        self.note("inspect");
    }
}

impl LossBased for Recorder {
    fn recalc_ssthresh(&mut self, _: &Context, _: &Window) -> f64 {
        self.note("recalc_ssthresh");
        2.0
    }
    fn epoch_start(&self) -> Option<Time> {
        self.note("epoch_start");
        Some(Time::ZERO)
    }
}

/// The hooks of a trait, read from its source, without those that return a decorator's inner control.
fn hooks(name: &str) -> BTreeSet<&'static str> {
    let source = include_str!("control.rs");
    let begin = source.find(&format!("pub trait {name}:")).unwrap();
    let definition = &source[begin..begin + source[begin..].find("\n}").unwrap()];
    let names = definition.lines().filter_map(|line| line.strip_prefix("    fn ")?.split(['(', '<']).next());
    names.filter(|name| !["inner", "inner_mut", "view", "parent"].contains(name)).collect()
}

/// Calls each hook, including those that return an answer.
fn call_all(control: &mut dyn CongestionControl) {
    let (cx, w) = (context(Time::from_secs(1)), &mut Window::new(10.0));
    let bytes = cx.mss;
    let sending = Sending::default();
    let packet = Packet { number: 1, bytes, sent_at: cx.now, sending, fate: PacketOutcome::Lost };
    let pep = PepReport { seen: bytes, rtt: None, missing: 0, marked: None, new_epoch: false };
    let hint = RadioHint::of(CellInfo::lte(1, LteBandwidth::Mhz20), cx.now);
    control.recall(PathMemory { min_rtt: Span::SECOND, cell: None, since: Time::ZERO });
    control.on_start(&cx, w);
    control.on_sent(&cx, w, &Sent { number: 1, bytes, retransmission: false });
    control.on_sample(&cx, w, &sample(Span::from_millis(20)));
    control.on_packet(&cx, w, &packet);
    control.on_congestion(&cx, w, &loss());
    control.on_ack(&cx, w, &ack(1, Span::from_millis(20)));
    control.on_recovered(&cx, w);
    control.on_spurious(&cx, w, &Window::new(20.0));
    control.on_idle_restart(&cx, w, Span::SECOND);
    control.on_path_change(&cx, w);
    control.on_coarse_ecn(&cx, w);
    control.on_deadline(&cx, w);
    control.on_report(&cx, w, &ReceiverReport::new(&[1, 2, 3, 4]).unwrap());
    control.on_radio(&cx, w, &hint);
    control.on_pep(&cx, w, &pep);
    control.on_allocation(&cx, w, None);
    control.set_target(Span::SECOND);
    control.inspect(&mut |_, _| {});
    let _ = (control.owns_recovery(), control.wants_packets(), control.wants_radio());
    let _ = (control.ecn(), control.burst());
    let _ = (control.ack_every(), control.next_deadline(), control.believes_gaps(cx.now), control.memory());
}

/// A hook new in the trait is first missed by the recorder; then every wrapper must be shown to forward it.
#[test]
fn decorators_and_guard_forward_every_hook() {
    let recorder = Recorder::default();
    call_all(&mut recorder.clone());
    let all = hooks("CongestionControl");
    assert_eq!(recorder.take(), all, "the recorder and call_all are to know every hook of the trait");
    assert!(all.len() >= 25, "{all:?}");
    // Hooks that each wrapper decides itself; all others go to the inner control.
    let own = |name: &str| match name {
        "c2tcp" => vec!["set_target"], // it has its own target
        "lda" => vec![],
        "meld-de" | "meld-me" => vec!["wants_radio"], // it does, whatever the parent wants
        "guard" => vec!["owns_recovery"],             // depends on which of the two sets the window
        other => panic!("{other}: what does it decide by itself?"),
    };
    let decorated = DECORATORS.iter().map(|decorator| {
        let wrapped = (decorator.wrap)(Box::new(recorder.clone()), &mut Options::default()).unwrap();
        (decorator.name, wrapped as Box<dyn CongestionControl>)
    });
    let guard = Guard::new(Box::new(recorder.clone()), Format::V1);
    for (name, mut control) in decorated.chain([("guard", Box::new(guard) as _)]) {
        recorder.take();
        call_all(control.as_mut());
        let heard = recorder.take();
        let kept: Vec<_> = all.difference(&heard).copied().collect();
        assert_eq!(kept, own(name), "{name} does not pass these on");
    }
}

#[test]
fn nested_decorators_forward_decorator_hooks() {
    let recorder = Recorder::default();
    let ask = |control: &mut dyn LossBased| {
        let cx = context(Time::from_secs(1));
        assert_eq!(control.recalc_ssthresh(&cx, &Window::new(10.0)), 2.0);
        assert_eq!(control.epoch_start(), Some(Time::ZERO));
    };
    ask(&mut recorder.clone());
    assert_eq!(recorder.take(), hooks("LossBased"));
    for decorator in DECORATORS {
        let mut control = (decorator.wrap)(Box::new(recorder.clone()), &mut Options::default()).unwrap();
        ask(control.as_mut());
        assert_eq!(recorder.take(), hooks("LossBased"), "{}", decorator.name);
    }
}

/// A decorator's view for its inner control applies to hooks that it does not define, too.
#[test]
fn forwarded_events_use_the_decorators_view() {
    #[derive(Debug)]
    struct Behind(Arc<Mutex<Vec<State>>>);
    impl CongestionControl for Behind {
        fn on_congestion(&mut self, _: &Context, _: &mut Window, _: &Congestion) -> LossResponse {
            LossResponse::Own
        }
        fn on_ack(&mut self, _: &Context, _: &mut Window, _: &Ack) {}
        fn on_allocation(&mut self, cx: &Context, w: &mut Window, _: Option<Allocation>) {
            self.0.lock().unwrap().push(cx.state);
            w.cwnd = 5.0;
        }
    }
    #[derive(Debug)]
    struct Before(Behind, Option<Context>, Window);
    impl CongestionControl for Before {
        fn inner(&self) -> Option<&dyn CongestionControl> {
            Some(&self.0)
        }
        fn inner_mut(&mut self) -> Option<&mut dyn CongestionControl> {
            Some(&mut self.0)
        }
        fn view<'a>(&'a mut self, cx: &'a Context, _: &'a mut Window) -> Option<View<'a>> {
            let cx = &*self.1.insert(Context { state: State::Open, ..*cx });
            Some(View { control: &mut self.0, cx, window: &mut self.2 })
        }
        fn on_congestion(&mut self, _: &Context, _: &mut Window, _: &Congestion) -> LossResponse {
            LossResponse::Own
        }
        fn on_ack(&mut self, _: &Context, _: &mut Window, _: &Ack) {}
    }
    let states = Arc::new(Mutex::new(Vec::new()));
    let mut before = Before(Behind(states.clone()), None, Window::new(10.0));
    let (cx, mut w) = (Context { state: State::Loss, ..context(Time::ZERO) }, Window::new(20.0));
    before.on_allocation(&cx, &mut w, None);
    assert_eq!((w.cwnd, before.2.cwnd), (20.0, 5.0));
    assert_eq!(*states.lock().unwrap(), [State::Open]);
}
