// Names of the states that controls record as numbers: docs/results.md.

import { titleOf, unitOf, type Unit } from "./columns";

const GAIN_STATES = ["STARTUP", "NORMAL", "DRAIN", "GROW"];

const STATES: Record<string, readonly string[]> = {
  bbr1: ["STARTUP", "DRAIN", "PROBE_BW", "PROBE_RTT"],
  bbr3: ["STARTUP", "DRAIN", "DOWN", "CRUISE", "REFILL", "UP", "PROBE_RTT"],
  "bbr-zhong": ["STARTUP", "DRAIN", "SOUNDING", "DRAIN again", "STEADY", "PROBE_RTT"],
  vivace: ["starting", "probing", "waiting"],
  verus: ["slow start", "normal", "loss"],
  xtcp: ["CUBIC", "slow start", "model", "after timeout"],
  sigma: ["plain", "Max Start", "proportional", "Safe Incr.", "hold"],
  "quic-cqic": ["no report", "reports"],
  dcic: ["no report", "reports"],
  cdbe: GAIN_STATES,
  "cqic-s": GAIN_STATES,
  pbe: ["no report", "wireless", "draining", "cycle", "PROBE_RTT"],
  cdbev2: ["STARTUP", "DRAIN", "STEADY", "GROW", "deep DRAIN 1", "STEADY after", "deep DRAIN 2"],
};

const COLUMNS: Record<string, readonly string[]> = {
  state_condition: ["Good", "Normal", "Bad"],
  state_guard_driven: ["CUBIC", "control"],
  state_driven: ["CUBIC", "reports"],
  state_hystart_found: ["no", "yes"],
  receiver_pbe_state: ["ramp", "wireless", "Internet"],
  proxy_category: ["unknown", "fast", "slow"],
  proxy_mode: ["normal", "hold", "open"],
  proxy_guard: ["believed", "probing", "contradicted"],
};

/** The names of a column's values; undefined if they are quantities. */
export function statesOf(column: string, cc: string): readonly string[] | undefined {
  if (column !== "state_state") return COLUMNS[column];
  return cc
    .split("+")
    .map((part) => STATES[part.split(":")[0]!])
    .find((states) => states !== undefined);
}

const SECONDS = ["k", "epoch_start", "min_delay", "rtt_min", "base_rtt", "rtt_i", "setpoint", "interval", "target"];
const SEGMENTS = ["w_max", "w_est", "cnt", "pipe", "backlog", "diff", "queue", "reno_count", "abc_window", "cubic_window", "w_i", "w_r", "ssthresh_i", "ssthresh_r", "hi"];
const COUNTS = ["rounds", "bads", "hits", "deep_drains", "fallbacks", "slow_rounds", "boundary_hits", "contradictions", "reports_unlike", "lda_random", "lda_notified", "velocity"];

/** What a column of a control's own state is drawn with: its unit, and the title of its chart for what has none. */
export function kindOf(column: string, cc: string): { unit: Unit; title: string } {
  const name = column.replace(/^(state|receiver)_/, "");
  if (SECONDS.includes(name)) return { unit: unitOf("_s"), title: "" };
  // Prague's window is in segments as CUBIC's is; those of Sprout and Verus count packets.
  if (SEGMENTS.includes(name) || (name === "window" && /prague/.test(cc))) return { unit: unitOf("_segments"), title: "" };
  if (name === "window" || name === "allowance" || name === "forecast_100ms") return { unit: unitOf("_packets"), title: "" };
  if (name === "bandwidth_segments") return { unit: unitOf("_segments_per_s"), title: "" };
  if (COUNTS.includes(name)) return { unit: { name: "", factor: 1 }, title: "Counts" };
  if (/gain|alpha|delta/.test(name)) return { unit: { name: "", factor: 1 }, title: "Gains" };
  const unit = unitOf(column);
  return { unit, title: unit.name ? "" : titleOf(column) };
}
