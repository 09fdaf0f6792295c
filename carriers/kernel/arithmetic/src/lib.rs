//! The arithmetic of the kernel's programs (`../bpf/arithmetic/*.h`), compiled natively and driven beside `logic/cc`.
//!
//! A congestion control in eBPF is C, so each algorithm exists twice. What it decides stands in a header without kernel calls. This
//! package compiles these headers, gives them the interface of a [`CongestionControl`](ranpace_cc::CongestionControl), and plays
//! recorded runs of the simulator into both: [`record`] has what a control is told, [`replay`] plays it into two controls in the
//! kernel's units (whole microseconds and segments) and compares their windows and paces after every event. The tests assert
//! that the windows are within one segment or 1 % of each other, always. Nothing here is part of a release.
//!
//! # How an algorithm is added
//!
//! 1. `../bpf/arithmetic/X.h`: settings, state, a function for each event that the kernel has, and at its end the flat
//!    `struct X_call` with `X_call_step`, for one event. [`c2tcp`] is the example.
//! 2. `native/X.c`: includes it, lists the fields of its structures (`FIELD`, `END`), and exports the step. `build.rs` finds it.
//! 3. `src/X.rs`: the structures again, in `mirror!`, which adds a test that offsets and sizes are those of C; and an adapter that
//!    does what the program's glue does around the arithmetic, as a [`CongestionControl`](ranpace_cc::CongestionControl):
//!    [`Flow::load`](flow::Flow::load), call, [`Flow::store`](flow::Flow::store). A parent of the kernel's (CUBIC, Reno) is that
//!    of `logic/cc`, from [`parent`].
//! 4. `tests/X.rs`: `common::compare("X:options", || Box::new(KernelX::new(settings)))` plays all scenarios of `tests/common`, and
//!    `common::torture` hostile events.
//!
//! 5. `STEP(X)` in `../bpf/steps.bpf.c`, and a test in `carriers/kernel/tests/arithmetic.rs`, which runs the same steps inside the
//!    kernel: the adapter's [`engine::Engine`] is a program there.
//!
//! A receiver's half is recorded through [`Algorithm::with_around_receiver`](ranpace_cc::Algorithm::with_around_receiver).
#![cfg(target_os = "linux")]

#[macro_use]
mod mirror;

pub mod c2tcp;
pub mod cubic;
pub mod driven;
pub mod engine;
pub mod flow;
pub mod ledger;
pub mod mdcc;
pub mod meld;
pub mod rapid;
pub mod receivers;
pub mod record;
pub mod reduction;
pub mod replay;
pub mod sigma;

use ranpace_cc::{ALL, Control, LossBased, Options};

/// The kernel's own control of this name as `logic/cc` has it, for an adapter to wrap: `cubic` or `newreno`.
///
/// # Panics
///
/// There is no such loss-based control.
pub fn parent(name: &str) -> Box<dyn LossBased> {
    let entry = ALL.iter().find(|entry| entry.name == name).unwrap_or_else(|| panic!("no control {name}"));
    match (entry.build)(&mut Options::default(), 0) {
        Ok(Control::LossBased(control)) => control,
        other => panic!("{name} is no parent: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    unsafe extern "C" {
        fn ranpace_ratio_q32(num: u64, den: u64) -> u64;
        fn ranpace_mul_q32(a: u64, b: u64) -> u64;
        fn ranpace_inverse_sqrt_q32(n: u32) -> u64;
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn fixed_point_is_as_exact_as_its_comments_say(
            num in 0..1u64 << 34, den in 1..1u64 << 34, a in 0..1u64 << 61, shift in 0..61u32, n in 2u32.., small in 2..1000u32
        ) {
            // SAFETY: these take and return numbers.
            let (ratio, product) = unsafe { (ranpace_ratio_q32(num, den), ranpace_mul_q32(a, 1 << shift)) };
            let exact = (u128::from(num) << 32) / u128::from(den);
            prop_assert!(exact - u128::from(ratio) <= 4, "{ratio} of {exact}");
            let exact = (u128::from(a) << shift) >> 32;
            prop_assert!(u128::from(product) == exact || (exact >= 1 << 61 && product == 1 << 63), "{product}");
            for n in [n, small] {
                // SAFETY: as above.
                let root = u128::from(unsafe { ranpace_inverse_sqrt_q32(n) });
                let square = u128::from(u64::MAX / u64::from(n));
                prop_assert!(root * root <= square && (root + 1) * (root + 1) > square, "{root} of {n}");
            }
        }
    }
}
