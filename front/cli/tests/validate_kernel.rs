//! `ranpace validate kernel --quick` as CI runs it, in a file of its own, so that no other test takes the emulations' time.
#![cfg(all(target_os = "linux", feature = "kernel"))]
#![allow(clippy::unwrap_used)] // allowed in tests

mod emulation;

use emulation::validation::interrupt_and_resume;

#[test]
fn nine_of_ten_figures_of_kernel_controls_agree_with_the_simulator_after_an_interrupted_run() {
    let Some(_turn) = emulation::rights() else { return };
    let rows = interrupt_and_resume("kernel", 1..10);
    assert!(rows.len() >= 16, "four fifths of 22, without rows that are only printed: {}", rows.len());
}
