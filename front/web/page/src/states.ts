// Names of the states that controls record as numbers: docs/results.md.

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
  cdbev2: ["STARTUP", "DRAIN", "STEADY", "GROW", "deep DRAIN 1", "STEADY after", "deep DRAIN 2"],
};

const COLUMNS: Record<string, readonly string[]> = {
  state_condition: ["Good", "Normal", "Bad"],
  state_guard_driven: ["CUBIC", "control"],
  state_driven: ["CUBIC", "reports"],
  state_hystart_found: ["no", "yes"],
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
