//! Legends.

/// Appearance of a series in the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swatch {
    /// A line.
    Line,
    /// A dashed line: a reference rather than a result.
    Dashed,
    /// A filled patch, for bars, boxes and areas.
    Patch,
    /// A dot.
    Dot,
    /// A hollow diamond, for published values.
    Hollow,
}
