//! Multi-Domain control's: `struct mdcc_settings` of `bpf/arithmetic/mdcc.h`.

use ranpace_cc::Options;
use ranpace_cc::mdcc::{Count, SlowStartEnd, Start, read_settings};

use super::{Settings, q32};
use crate::error::KernelError;

/// Reads the options.
pub(crate) fn read(text: &str, options: &mut Options) -> Result<Settings, KernelError> {
    let params = read_settings(options).map_err(KernelError::Option)?;
    if params.early_retransmit {
        return Err(KernelError::OptionNotInKernel {
            text: text.to_owned(),
            key: "early_retransmit",
            why: "a program cannot make the kernel send a segment again",
        });
    }
    let q16 = |ratio: f64| (ratio * 65_536.0).round() as u64;
    Ok(vec![
        ("settings.bound", params.bound.get()),
        ("settings.a", q32(params.a)),
        ("settings.b", q32(params.b)),
        ("settings.silence", params.silence.as_nanos()),
        ("settings.start_cap", q16(params.start_cap)),
        ("settings.growth_cap", q16(params.growth_cap)),
        // As the enumerations of bpf/arithmetic/mdcc.h and cubic.h number them.
        (
            "settings.start",
            match params.start {
                Start::OpenRan => 0,
                Start::Literal => 1,
                Start::Coupled => 2,
            },
        ),
        ("settings.count_acks", u64::from(params.count == Count::Acks)),
        (
            "settings.hystart",
            match params.hystart {
                SlowStartEnd::Classic | SlowStartEnd::Ns3 => 0,
                SlowStartEnd::PlusPlus => 1,
                SlowStartEnd::Off => 2,
            },
        ),
        ("settings.listens", u64::from(params.listens)),
    ])
}
