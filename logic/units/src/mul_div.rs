//! Products over divisors without intermediate overflow.

/// `a * b / c` in 128 bits, rounded down; [`u64::MAX`] if it does not fit or `c` is zero.
#[inline]
pub(crate) fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) if c != 0 => product / c,
        _ if c == 0 => u64::MAX,
        _ => u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX),
    }
}

/// Like [`mul_div`], rounded up.
#[inline]
pub(crate) fn mul_div_up(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) if c != 0 => product.div_ceil(c),
        _ if c == 0 => u64::MAX,
        _ => u64::try_from((u128::from(a) * u128::from(b)).div_ceil(u128::from(c))).unwrap_or(u64::MAX),
    }
}
