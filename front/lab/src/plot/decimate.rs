//! Fewer points for the same picture.

/// At most about `limit` points: the lowest and the highest of each bucket, in their order, so that peaks are preserved.
///
/// A NaN is kept as a gap between its neighbours.
pub fn decimate(points: &[(f64, f64)], limit: usize) -> Vec<(f64, f64)> {
    if points.len() <= limit {
        return points.to_vec();
    }
    let size = points.len().div_ceil((limit / 2).max(1));
    let mut kept = Vec::with_capacity(limit + limit / 2);
    for bucket in points.chunks(size) {
        let known = |index: &usize| bucket[*index].1.is_finite();
        let by_height = |a: &usize, b: &usize| bucket[*a].1.total_cmp(&bucket[*b].1);
        let lowest = (0..bucket.len()).filter(known).min_by(by_height);
        let highest = (0..bucket.len()).filter(known).max_by(by_height);
        let gap = bucket.iter().position(|point| !point.1.is_finite());
        let mut chosen: Vec<usize> = [lowest, highest, gap].into_iter().flatten().collect();
        chosen.sort_unstable();
        chosen.dedup();
        kept.extend(chosen.into_iter().map(|index| bucket[index]));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn thinning_keeps_peaks_and_gaps() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|x| (f64::from(x), 1.0)).collect();
        points[1_234].1 = 99.0;
        points[5_678].1 = -99.0;
        points[7_000].1 = f64::NAN;
        let kept = decimate(&points, 200);
        assert!(kept.len() <= 301, "{}", kept.len());
        assert!(kept.contains(&(1_234.0, 99.0)) && kept.contains(&(5_678.0, -99.0)));
        assert_eq!(kept.iter().filter(|point| point.1.is_nan()).count(), 1);
        assert!(kept.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(decimate(&points[..10], 200), points[..10]);
    }

    proptest! {
        #[test]
        fn the_range_is_kept(heights in prop::collection::vec(-1e9..1e9, 1..3_000), limit in 2..500_usize) {
            let points: Vec<(f64, f64)> = heights.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect();
            let kept = decimate(&points, limit);
            let most = |points: &[(f64, f64)]| points.iter().map(|point| point.1).fold(f64::MIN, f64::max);
            let least = |points: &[(f64, f64)]| points.iter().map(|point| point.1).fold(f64::MAX, f64::min);
            prop_assert_eq!(most(&kept), most(&points));
            prop_assert_eq!(least(&kept), least(&points));
            prop_assert!(kept.len() <= points.len() && kept.len() <= limit + 1);
        }
    }
}
