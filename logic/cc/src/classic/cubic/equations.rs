//! CUBIC's equations, one function each. Windows are in segments, times in seconds.

/// Largest target over the window; RFC 9438, section 4.2.
const MAX_TARGET: f64 = 1.5;

/// `C (t - K)^3`, the curve relative to its centre `t` seconds into the epoch; RFC 9438, equation 1 without `W_max`.
pub(super) fn above_centre(c: f64, k: f64, t: f64) -> f64 {
    let d = t - k;
    c * d * d * d
}

/// `K = cbrt((W_max - cwnd_epoch) / C)`, the time until the curve reaches its centre; RFC 9438, equation 2.
pub(super) fn k(c: f64, w_max: f64, cwnd_epoch: f64) -> f64 {
    libm::cbrt((w_max - cwnd_epoch) / c)
}

/// The target of the next RTT, within `[cwnd, 1.5 cwnd]`; RFC 9438, section 4.2.
pub(super) fn bounded_target(target: f64, cwnd: f64) -> f64 {
    target.clamp(cwnd, MAX_TARGET * cwnd)
}

/// `alpha_cubic = 3 (1 - beta) / (1 + beta)`: the gain per window of a Reno flow with this `beta`; RFC 9438, section 4.3.
pub(super) fn alpha(beta: f64) -> f64 {
    3.0 * (1.0 - beta) / (1.0 + beta)
}

/// `ssthresh = beta cwnd`; RFC 9438, section 4.6, figure 5.
pub(super) fn reduced(beta: f64, cwnd: f64) -> f64 {
    cwnd * beta
}

/// `W_max = cwnd (1 + beta) / 2`, if the last maximum was not reached (fast convergence); RFC 9438, section 4.7.
pub(super) fn lowered_maximum(beta: f64, cwnd: f64) -> f64 {
    cwnd * (1.0 + beta) / 2.0
}

/// ACKed windows per segment gained by a Reno flow with this `beta`, in eighths, truncated: 15 for 717/1024; Linux
/// `beta_scale`, the inverse of [`alpha`].
pub(super) fn beta_scale(beta: f64) -> u64 {
    ((8.0 * (1.0 + beta) / 3.0 / (1.0 - beta)) as u64).max(1)
}
