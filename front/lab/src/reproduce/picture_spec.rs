//! The specification of a picture in a reproduction's report: a published figure redrawn in its own form, from `[[picture]]` of an
//! `experiment.toml`, parsed and checked. `docs/reproductions.md` describes the keys.

use serde::Deserialize;

use crate::figure::{Figure, Values};
use crate::figures::{Quantity, Unit};

/// A figure of the source, or one of our own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PictureSpec {
    /// The published figure that it redraws: "Fig. 5.9". Empty for a figure of our own.
    #[serde(default)]
    pub figure: String,
    /// Its title.
    pub title: String,
    /// Its form.
    #[serde(default)]
    pub form: Form,
    /// The source of the published values, and their accuracy.
    #[serde(default)]
    pub read: String,
    /// Further remarks for the reader.
    #[serde(default)]
    pub note: String,
    /// Whether it takes the full width of the page.
    #[serde(default)]
    pub wide: bool,
    /// Whether intervals over the runs are drawn. Not if the runs are different traces.
    #[serde(default = "yes")]
    pub intervals: bool,
    /// The analytic model that draws it.
    pub model: Option<String>,
    /// The horizontal axis.
    #[serde(default)]
    pub x: AxisSpec,
    /// The vertical axis.
    #[serde(default)]
    pub y: AxisSpec,
    /// The figure of all series, unless they override it.
    #[serde(default)]
    pub show: Show,
    /// The series that are compared.
    #[serde(default)]
    pub series: Vec<SeriesSpec>,
}

/// The form in which a figure is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A column over the time of one run.
    Time,
    /// The mean over the runs, over a value of their points (`x.place`).
    Lines,
    /// The mean over the runs for each of `x.names`, side by side.
    #[default]
    Bars,
    /// The distribution over the runs for each of `x.names`.
    Box,
    /// Counts of a figure's values, over all runs, that are 1, 2, ...: one for each of `x.names`, the last one with all larger values.
    Histogram,
    /// The distribution function over the runs.
    Cdf,
    /// One figure against another (`x.show`).
    Scatter,
    /// An analytic `model`, which draws itself.
    Model,
}

/// An axis.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AxisSpec {
    /// Its title.
    pub title: String,
    /// Its unit; none for plain numbers.
    #[serde(default)]
    pub unit: String,
    /// Its range, in that unit; around the values if missing.
    pub range: Option<[f64; 2]>,
    /// Whether it is logarithmic.
    #[serde(default)]
    pub log: bool,
    /// Whether large values are on the left.
    #[serde(default)]
    pub reversed: bool,
    /// The groups of bars and boxes.
    #[serde(default)]
    pub names: Vec<String>,
    /// The place on the horizontal axis of lines.
    pub place: Option<String>,
    /// Divisor of the value: a bandwidth-delay product, such as 1.2e6 bytes.
    pub per: Option<f64>,
    /// The figure on the horizontal axis of a scatter plot.
    #[serde(default)]
    pub show: Show,
}

/// The value taken from a run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Show {
    /// A figure.
    pub metric: Option<Figure>,
    /// Only these flows: those whose names begin with this, followed by a blank, a dot or nothing.
    pub flows: Option<String>,
    /// Samples instead of a figure: their mean, or a percentile.
    pub samples: Option<Samples>,
    /// The percentile of the samples.
    pub percentile: Option<f64>,
    /// A column of a flow's series, or of that of `link` or `user`.
    pub column: Option<String>,
    /// A link of this name.
    pub link: Option<String>,
    /// A user of this name.
    pub user: Option<String>,
    /// Moving average over this many seconds before each time.
    pub smooth: Option<f64>,
    /// Divisor of the value.
    pub per: Option<f64>,
    /// Subtracted afterwards: 1 for an increase in per cent.
    pub less: Option<f64>,
    /// The scheme that each run is divided by, on the same points if it was run on as many.
    pub to: Option<String>,
    /// Only runs whose places have these values.
    pub only: Values,
    /// Whether each flow is a value, or a line, of its own.
    pub each_flow: Option<bool>,
}

/// Samples of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Samples {
    /// The senders' RTTs. For a flow split by a proxy they include the wait in the proxy.
    Rtt,
    /// For a flow split by a proxy, the sum of both connections' RTTs, as sockets see them: without the wait. For others as above.
    SocketRtt,
    /// Delays of the packets in the bottleneck.
    QueueingDelay,
    /// Completion times of transfers of a fixed size.
    Transfers,
}

/// A line, or one bar, box or dot of each group.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesSpec {
    /// Its name in the legend.
    pub label: String,
    /// The runs: "scheme", or "scheme@group of points". With groups, one for each of them, empty if there is none.
    #[serde(default)]
    pub of: OneOrMore,
    /// Its figure, if different from the picture's.
    #[serde(default)]
    pub show: Show,
    /// Criteria whose measured values it shows, one for each group; "id#2" is the second part of one that has several.
    #[serde(default)]
    pub criteria: Vec<String>,
    /// Published values, in the axes' units: a value for each group (nan if unknown), or points.
    #[serde(default)]
    pub published: Published,
    /// The values printed after "±" for each group.
    #[serde(default)]
    pub published_spread: Vec<f64>,
    /// Marks a reference rather than a result.
    #[serde(default)]
    pub dashed: bool,
    /// Filled down to the axis: a capacity.
    #[serde(default)]
    pub area: bool,
    /// Whether the dots of a scatter plot are connected.
    #[serde(default)]
    pub joined: bool,
    /// Labels of the dots of a scatter plot, one for each of `of`.
    #[serde(default)]
    pub words: Vec<String>,
}

/// One name, or one for each group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Written")]
pub struct OneOrMore(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    One(String),
    More(Vec<String>),
}

impl From<Written> for OneOrMore {
    fn from(written: Written) -> Self {
        match written {
            Written::One(name) => Self(vec![name]),
            Written::More(names) => Self(names),
        }
    }
}

/// Published values, in the units of the axes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Published {
    /// One for each group.
    Values(Vec<f64>),
    /// Points.
    Points(Vec<[f64; 2]>),
}

impl Default for Published {
    fn default() -> Self {
        Self::Values(Vec::new())
    }
}

impl Published {
    /// Returns whether a value is known.
    pub fn is_there(&self) -> bool {
        match self {
            Self::Values(values) => values.iter().any(|value| value.is_finite()),
            Self::Points(points) => !points.is_empty(),
        }
    }
}

const fn yes() -> bool {
    true
}

impl Show {
    /// This, with missing keys taken from `other`.
    pub fn or(&self, other: &Self) -> Self {
        Self {
            metric: self.metric.or(other.metric),
            flows: self.flows.clone().or_else(|| other.flows.clone()),
            samples: self.samples.or(other.samples),
            percentile: self.percentile.or(other.percentile),
            column: self.column.clone().or_else(|| other.column.clone()),
            link: self.link.clone().or_else(|| other.link.clone()),
            user: self.user.clone().or_else(|| other.user.clone()),
            smooth: self.smooth.or(other.smooth),
            per: self.per.or(other.per),
            less: self.less.or(other.less),
            to: self.to.clone().or_else(|| other.to.clone()),
            only: if self.only.is_empty() { other.only.clone() } else { self.only.clone() },
            each_flow: self.each_flow.or(other.each_flow),
        }
    }

    fn says_what(&self) -> bool {
        self.metric.is_some() || self.samples.is_some() || self.column.is_some()
    }
}

impl AxisSpec {
    /// Its quantity and unit. An unknown one, which is refused when the picture is parsed, is that of plain numbers.
    pub fn unit(&self) -> (Quantity, Unit) {
        Unit::named(&self.unit).unwrap_or((Quantity::Plain, Unit { name: "", size: 1.0 }))
    }
}

impl PictureSpec {
    /// Returns the first contradiction in it, if there is one, in an experiment with these schemes and criteria.
    pub fn contradiction(&self, schemes: &[&str], criteria: &[&str]) -> Option<String> {
        self.wrong(schemes, criteria).map(|what| format!("picture {:?}: {what}", self.title))
    }

    fn wrong(&self, schemes: &[&str], criteria: &[&str]) -> Option<String> {
        if (self.form == Form::Model) != self.model.is_some() {
            return Some("form = \"model\", and no other form, needs a model".to_owned());
        }
        if self.form != Form::Model && (self.series.is_empty() || self.y.title.is_empty()) {
            return Some("it needs a title of y and at least one of series".to_owned());
        }
        for axis in [&self.x, &self.y] {
            if Unit::named(&axis.unit).is_none() {
                return Some(format!("there is no unit {:?}; known are {}", axis.unit, Unit::names()));
            }
            if axis.range.is_some_and(|[low, high]| low.total_cmp(&high).is_ge()) {
                return Some(format!(
                    "the range of {:?} must go from a smaller to a larger value",
                    axis.title
                ));
            }
        }
        let grouped = matches!(self.form, Form::Bars | Form::Box | Form::Histogram);
        if grouped == self.x.names.is_empty() {
            return Some("bars, boxes and histograms, and no other form, need x.names".to_owned());
        }
        if (self.form == Form::Lines) != self.x.place.is_some() {
            return Some("lines, and no other form, need x.place".to_owned());
        }
        if (self.form == Form::Scatter) != self.x.show.says_what() {
            return Some("a scatter plot, and no other form, needs x.show".to_owned());
        }
        self.series.iter().find_map(|series| self.wrong_series(series, grouped, schemes, criteria))
    }

    fn wrong_series(
        &self,
        series: &SeriesSpec,
        grouped: bool,
        schemes: &[&str],
        criteria: &[&str],
    ) -> Option<String> {
        let label = &series.label;
        let names = series.of.0.iter().filter(|name| !name.is_empty());
        let to = series.show.to.iter().chain(&self.show.to);
        let mut named = names.map(|name| scheme(name)).chain(to.map(String::as_str));
        if let Some(unknown) = named.find(|name| !schemes.contains(name)) {
            return Some(format!("{label:?}: there is no scheme {unknown:?}"));
        }
        let mut ids = series.criteria.iter().map(|name| criterion(name).0);
        if let Some(unknown) = ids.find(|id| !id.is_empty() && !criteria.contains(id)) {
            return Some(format!("{label:?}: there is no criterion {unknown:?}"));
        }
        if !series.of.0.is_empty() && !series.show.or(&self.show).says_what() {
            return Some(format!("{label:?}: show neither has a metric, nor samples, nor a column"));
        }
        let groups = self.x.names.len();
        // A histogram makes its groups from one set of runs.
        let of = if self.form == Form::Histogram { 0 } else { series.of.0.len() };
        if self.form == Form::Histogram
            && (series.of.0.len() != 1 || series.show.or(&self.show).metric.is_none())
        {
            return Some(format!("{label:?}: a histogram needs the metric of one `of`"));
        }
        let counts = [of, series.criteria.len(), series.published_spread.len()];
        let wrong_count = |count: &usize| grouped && *count > 0 && *count != groups;
        let published = match &series.published {
            Published::Values(values) => Some(values.len()).filter(|count| grouped || *count == 0),
            Published::Points(points) => Some(points.len()).filter(|_| !grouped),
        };
        match published {
            None if grouped => Some(format!("{label:?}: published must be a value for each of x.names")),
            None => Some(format!("{label:?}: published must be points [x, y]")),
            Some(count) if counts.iter().any(wrong_count) || wrong_count(&count) => {
                Some(format!("{label:?}: not one entry for each of the {groups} x.names"))
            }
            Some(_) => None,
        }
    }
}

/// The scheme of "scheme@group".
pub fn scheme(name: &str) -> &str {
    name.split_once('@').map_or(name, |(scheme, _)| scheme)
}

/// The name of a criterion and the index of its part: "id#2" is the second one.
pub fn criterion(name: &str) -> (&str, usize) {
    let part = name.split_once('#').and_then(|(id, part)| Some((id, part.parse::<usize>().ok()?)));
    part.map_or((name, 0), |(id, part)| (id, part.saturating_sub(1)))
}
