//! What an emulation's results say about the machine: `emulation.json`.

use serde::Serialize;

use crate::timeliness::Timeliness;

/// Content of `emulation.json`, which `ranpace emulate --json` prints beside the summary: whether the machine kept up.
#[expect(missing_docs, reason = "the guide has the fields, with their units: docs/emulate.md")]
#[derive(Serialize)]
pub struct EmulationSummary {
    pub valid: bool,
    pub invalid_because: Option<String>,
    pub real_time_priority: bool,
    /// Whether the loop kept the processors from sleeping.
    pub processors_awake: bool,
    pub gso_by_kernels: Option<bool>,
    pub timers: u64,
    pub timer_error_p50_s: f64,
    pub timer_error_p99_s: f64,
    pub timer_error_max_s: f64,
    pub packets: u64,
    pub packets_late: u64,
    pub packet_lateness_p50_s: f64,
    pub packet_lateness_p99_s: f64,
    pub packet_lateness_max_s: f64,
    pub slots: u64,
    pub slots_late: u64,
    pub packets_without_way: u64,
    pub packets_refused: u64,
    pub wakeups: u64,
    pub polls: u64,
    /// The most by which polls make packets late, and by which hosts may send too early.
    pub slack_s: f64,
    pub pauses: u64,
    pub standstills: u64,
    pub longest_standstill_s: f64,
    /// Processor time of the loop, including the kernel's work for it.
    pub loop_cpu_s: f64,
    pub loop_s: f64,
    pub program_exit_status: Option<i32>,
}

impl EmulationSummary {
    /// The summary of a measurement, with the exit status of the main program.
    pub fn of(timeliness: &Timeliness, code: Option<i32>) -> Self {
        let invalid = timeliness.invalid();
        Self {
            valid: invalid.is_none(),
            invalid_because: invalid,
            real_time_priority: timeliness.machine.real_time,
            processors_awake: timeliness.machine.awake,
            gso_by_kernels: timeliness.machine.cuts,
            timers: timeliness.timers.count,
            timer_error_p50_s: timeliness.timers.p50.as_secs_f64(),
            timer_error_p99_s: timeliness.timers.p99.as_secs_f64(),
            timer_error_max_s: timeliness.timers.max.as_secs_f64(),
            packets: timeliness.packets.count,
            packets_late: timeliness.late_packets,
            packet_lateness_p50_s: timeliness.packets.p50.as_secs_f64(),
            packet_lateness_p99_s: timeliness.packets.p99.as_secs_f64(),
            packet_lateness_max_s: timeliness.packets.max.as_secs_f64(),
            slots: timeliness.slots.count,
            slots_late: timeliness.late_slots,
            packets_without_way: timeliness.strays,
            packets_refused: timeliness.refused,
            wakeups: timeliness.wakeups,
            polls: timeliness.polls,
            slack_s: timeliness.slack.as_secs_f64(),
            pauses: timeliness.pauses,
            standstills: timeliness.standstills,
            longest_standstill_s: timeliness.longest_standstill.as_secs_f64(),
            loop_cpu_s: timeliness.busy.as_secs_f64(),
            loop_s: timeliness.elapsed.as_secs_f64(),
            program_exit_status: code,
        }
    }
}
