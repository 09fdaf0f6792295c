//! `ranpace validate tcp --quick` as CI runs it, in a file of its own, so that no other test takes the emulations' time.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // allowed in tests

mod emulation;

use emulation::validation::interrupt_and_resume;

#[test]
fn nine_of_ten_figures_agree_with_kernel_tcp_after_an_interrupted_run() {
    let Some(_turn) = emulation::rights() else { return };
    let rows = interrupt_and_resume("tcp", 1..12);
    assert!(rows.len() >= 18, "four fifths of 23: {}", rows.len());
}
