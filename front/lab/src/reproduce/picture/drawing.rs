//! From the numbers of a picture to its marks.

use super::super::experiment::Experiment;
use super::super::figure_table::FigureTable;
use super::super::measured::ModelPlots;
use super::super::picture_spec::{AxisSpec, Form, PictureSpec, Published, SeriesSpec};
use super::super::results::Results;
use super::values::{self, Value};
use crate::plot::{Colour, GREY, Mark, Palette, PlotError, Swatch};

/// A picture of the report.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The published figure that it redraws; may be empty.
    pub figure: String,
    /// The drawing.
    pub svg: String,
    /// How to read it, and the source of the published values.
    pub caption: String,
    /// Whether it takes the full width of the page.
    pub wide: bool,
    /// Its values, if they are few enough to be read.
    pub values: Option<FigureTable>,
}

/// The pictures of an experiment, without those that have neither runs nor published values.
pub fn pictures(experiment: &Experiment, results: &Results) -> Result<Vec<Picture>, PlotError> {
    let labels = experiment.pictures.iter().flat_map(|picture| &picture.series);
    let palette = Palette::of(labels.map(|series| series.label.as_str()));
    let drawn = experiment.pictures.iter().map(|spec| match &spec.model {
        Some(model) => of_model(spec, (results.models().plots)(model)),
        None => Ok(picture(experiment, spec, results, &palette)?.into_iter().collect()),
    });
    Ok(drawn.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The plots of an analytic model, which have their own titles; none if it is not available.
fn of_model(spec: &PictureSpec, plots: Option<ModelPlots>) -> Result<Vec<Picture>, PlotError> {
    let picture = |(svg, shows): (String, String)| Picture {
        figure: spec.figure.clone(),
        svg,
        caption: [&spec.figure, ": ", &shows, " ", &spec.note].concat().trim().to_owned(),
        wide: true,
        values: None,
    };
    Ok(plots.transpose()?.unwrap_or_default().into_iter().map(picture).collect())
}

fn picture(
    experiment: &Experiment,
    spec: &PictureSpec,
    results: &Results,
    palette: &Palette,
) -> Result<Option<Picture>, PlotError> {
    let mut drawing = Drawing::new(spec);
    for (index, series) in spec.series.iter().enumerate() {
        let colour = match (series.area, spec.series.len()) {
            (true, _) => GREY,
            (false, 1) => Palette::nth(0),
            (false, _) => palette.colour(&series.label),
        };
        match spec.form {
            Form::Time => drawing.over_time(series, colour, results, spec.series.len()),
            Form::Lines => drawing.over_place(series, colour, results),
            Form::Bars => {
                let found = values::of_groups(experiment, spec, series, results);
                drawing.bars(series, index, colour, &found);
            }
            Form::Histogram => drawing.bars(series, index, colour, &values::counts(spec, series, results)),
            Form::Box => drawing.boxes(series, index, colour, results),
            Form::Cdf => drawing.distribution(series, colour, results),
            Form::Scatter => drawing.scatter(series, colour, results),
            // It draws itself.
            Form::Model => {}
        }
    }
    if drawing.marks.is_empty() {
        return Ok(None);
    }
    let values = drawing.table();
    let caption = drawing.caption();
    let plot = drawing.plot();
    Ok(Some(Picture { figure: spec.figure.clone(), svg: plot.svg()?, caption, wide: spec.wide, values }))
}

/// A picture being drawn.
pub(super) struct Drawing<'a> {
    pub spec: &'a PictureSpec,
    /// Base units in one of the axes' units.
    pub scale: (f64, f64),
    pub legend: Vec<(String, Colour, Swatch)>,
    pub marks: Vec<Mark>,
    /// Published values are drawn over all measured ones.
    pub published: Vec<Mark>,
    /// Label, group or x, published and measured.
    pub rows: Vec<(String, String, String, Value)>,
    /// The fewest and the most runs behind a value with an interval.
    pub runs: Option<(usize, usize)>,
}

impl<'a> Drawing<'a> {
    fn new(spec: &'a PictureSpec) -> Self {
        let scale = |axis: &AxisSpec| axis.unit().1.size;
        Self {
            spec,
            scale: (scale(&spec.x), scale(&spec.y)),
            legend: Vec::new(),
            marks: Vec::new(),
            published: Vec::new(),
            rows: Vec::new(),
            runs: None,
        }
    }

    fn over_time(&mut self, series: &SeriesSpec, colour: Colour, results: &Results, all: usize) {
        let show = series.show.or(&self.spec.show);
        let lines: Vec<_> =
            series.of.0.iter().flat_map(|name| values::over_time(results, name, &show)).collect();
        let several = lines.len() > 1;
        let inside = |at: f64| self.spec.x.range.is_none_or(|[low, high]| (low..=high).contains(&at));
        let (scale, _) = self.scale;
        for (index, (name, mut points)) in lines.into_iter().enumerate() {
            // Values outside the axis would be drawn at its edge.
            points.retain(|point| inside(point.0 / scale));
            // In a single series each flow has its own colour.
            let own = if several && all < 3 { Palette::nth(index) } else { colour };
            let label = match (several, series.label.as_str()) {
                (false, label) => label.to_owned(),
                (true, "") => name.replace(['.', '-'], " "),
                (true, label) => format!("{label}, {}", name.replace(['.', '-'], " ")),
            };
            if points.is_empty() {
                continue;
            }
            if series.area {
                self.legend.push((label, pale(own), Swatch::Patch));
                self.marks.push(Mark::Area { colour: own, points: stepped(points) });
            } else {
                let swatch = if series.dashed { Swatch::Dashed } else { Swatch::Line };
                self.legend.push((label, own, swatch));
                self.marks.push(Mark::Line { colour: own, dashed: series.dashed, points });
            }
        }
        self.published_points(series, colour);
    }

    fn over_place(&mut self, series: &SeriesSpec, colour: Colour, results: &Results) {
        let show = series.show.or(&self.spec.show);
        let place = self.spec.x.place.as_deref().unwrap_or_default();
        let per = self.spec.x.per.unwrap_or(1.0);
        let names = &series.of.0;
        let found: Vec<(f64, Value)> = names
            .iter()
            .flat_map(|name| values::over_place(results, name, place, &show, self.spec.intervals))
            .map(|(x, value)| (x / per, value))
            .collect();
        if found.is_empty() {
            return self.published_points(series, colour);
        }
        if let [(x, level)] = found[..]
            && (x.is_nan() || series.dashed)
        {
            // A scheme without the value, or a reference at a single one, is a horizontal line.
            let points = self.ends_of_x().map(|x| (x, level.mean)).to_vec();
            self.marks.push(Mark::Line { colour, dashed: true, points });
            self.legend.push((series.label.clone(), colour, Swatch::Dashed));
            self.row(series, "any", f64::NAN, level);
            return self.published_points(series, colour);
        }
        let points = found.iter().map(|(x, value)| (*x, value.mean)).collect();
        self.marks.push(Mark::Line { colour, dashed: series.dashed, points });
        let swatch = if series.dashed { Swatch::Dashed } else { Swatch::Line };
        self.legend.push((series.label.clone(), colour, swatch));
        for (x, value) in found {
            self.marks.push(Mark::Dot { colour, at: (x, value.mean) });
            self.interval(Some(colour), x, &value);
            let shown = self.spec.x.unit().1;
            let published = self.published_at(series, x / self.scale.0);
            self.row(series, &format!("{} {}", shown.show(x), shown.name), published, value);
        }
        self.published_points(series, colour);
    }

    /// A bar for each group, with these values.
    fn bars(&mut self, series: &SeriesSpec, index: usize, colour: Colour, found: &[Value]) {
        if found.iter().any(|value| value.mean.is_finite()) {
            self.legend.push((series.label.clone(), colour, Swatch::Patch));
        }
        for (group, name) in self.spec.x.names.iter().enumerate() {
            let span = self.slot(group, index);
            let middle = (span.0 + span.1) / 2.0;
            let value = found.get(group).copied().unwrap_or(Value::NONE);
            let published = match &series.published {
                Published::Values(values) => values.get(group).copied().unwrap_or(f64::NAN),
                Published::Points(_) => f64::NAN,
            };
            if value.mean.is_finite() {
                self.marks.push(Mark::Bar { colour, span, value: value.mean });
                self.interval(None, middle, &value);
            }
            if published.is_finite() {
                let spread = series.published_spread.get(group).copied().unwrap_or(f64::NAN);
                let unit = self.scale.1;
                if spread > 0.0 {
                    let ends = ((published - spread) * unit, (published + spread) * unit);
                    // Beside the interval of the measured value.
                    let x = middle + (span.1 - span.0) * 0.3;
                    self.published.push(Mark::Interval { colour: Some(colour), x, ends });
                    self.published.push(Mark::Diamond { colour, at: (x, published * unit) });
                } else {
                    self.published.push(Mark::Diamond { colour, at: (middle, published * unit) });
                }
            }
            self.row(series, name, published, value);
        }
    }

    fn boxes(&mut self, series: &SeriesSpec, index: usize, colour: Colour, results: &Results) {
        let show = series.show.or(&self.spec.show);
        for (group, name) in series.of.0.iter().enumerate() {
            let function = values::distribution(results, name, &show);
            let percentiles = [0.05, 0.25, 0.5, 0.75, 0.95].map(|share| values::quantile(&function, share));
            if percentiles[2].is_finite() {
                self.marks.push(Mark::Box { colour, span: self.slot(group, index), percentiles });
            }
            if let Some(name) = self.spec.x.names.get(group) {
                let runs = values::runs(results, &series.of.0[group], &show.only).len();
                let median = Value { mean: percentiles[2], ends: None, runs };
                let published = match &series.published {
                    Published::Values(values) => values.get(group).copied().unwrap_or(f64::NAN),
                    Published::Points(_) => f64::NAN,
                };
                if published.is_finite() {
                    let span = self.slot(group, index);
                    let at = ((span.0 + span.1) / 2.0, published * self.scale.1);
                    self.published.push(Mark::Diamond { colour, at });
                }
                self.row(series, name, published, median);
            }
        }
        self.legend.push((series.label.clone(), colour, Swatch::Patch));
    }

    fn distribution(&mut self, series: &SeriesSpec, colour: Colour, results: &Results) {
        let show = series.show.or(&self.spec.show);
        for name in &series.of.0 {
            let function = values::distribution(results, name, &show);
            if function.is_empty() {
                continue;
            }
            let corners = function.windows(2).flat_map(|pair| [pair[0], (pair[1].0, pair[0].1)]);
            let points = corners.chain(function.last().copied()).collect();
            self.marks.push(Mark::Line { colour, dashed: series.dashed, points });
            let swatch = if series.dashed { Swatch::Dashed } else { Swatch::Line };
            self.legend.push((series.label.clone(), colour, swatch));
        }
        self.published_points(series, colour);
    }

    fn scatter(&mut self, series: &SeriesSpec, colour: Colour, results: &Results) {
        let (right, up) = (&self.spec.x.show, series.show.or(&self.spec.show));
        let mut points = Vec::new();
        // A single dot has its name beside it.
        let single = series.of.0.len() == 1 && series.words.is_empty();
        for (index, name) in series.of.0.iter().enumerate() {
            let mut right = right.clone();
            right.flows = right.flows.or_else(|| up.flows.clone());
            let value = |show| Value::of(&values::of_runs(results, name, show), self.spec.intervals);
            let [x, y] = [&right, &up].map(value);
            if !x.mean.is_finite() || !y.mean.is_finite() {
                continue;
            }
            points.push((x.mean, y.mean));
            if let Some(ends) = x.ends {
                self.marks.push(Mark::Across { colour, y: y.mean, ends });
            }
            self.interval(Some(colour), x.mean, &y);
            self.marks.push(Mark::Dot { colour, at: (x.mean, y.mean) });
            let word = if single { Some(&series.label) } else { series.words.get(index) };
            if let Some(word) = word {
                self.marks.push(Mark::Label { text: word.clone(), at: (x.mean, y.mean) });
            }
            let unit = self.spec.x.unit().1;
            self.row(series, &format!("{} {}", unit.show_with(x.mean, half(&x)), unit.name), f64::NAN, y);
        }
        if series.joined {
            self.marks.push(Mark::Line { colour, dashed: series.dashed, points: points.clone() });
        }
        if !points.is_empty() && !single {
            self.legend.push((series.label.clone(), colour, Swatch::Dot));
        }
        self.published_points(series, colour);
    }

    /// Position of a series' bar in a group.
    fn slot(&self, group: usize, index: usize) -> (f64, f64) {
        const SHARE: f64 = 0.8;
        let width = SHARE / self.spec.series.len() as f64;
        let from = group as f64 + (1.0 - SHARE) / 2.0 + width * index as f64;
        (from + width * 0.06, from + width * 0.94)
    }

    fn interval(&mut self, colour: Option<Colour>, x: f64, value: &Value) {
        let Some(ends) = value.ends else { return };
        let (fewest, most) = self.runs.unwrap_or((value.runs, value.runs));
        self.runs = Some((fewest.min(value.runs), most.max(value.runs)));
        self.marks.push(Mark::Interval { colour, x, ends });
    }

    fn published_points(&mut self, series: &SeriesSpec, colour: Colour) {
        let Published::Points(points) = &series.published else { return };
        let marks = points.iter().map(|[x, y]| (x * self.scale.0, y * self.scale.1));
        self.published.extend(marks.map(|at| Mark::Diamond { colour, at }));
        if series.of.0.is_empty() && !points.is_empty() {
            self.legend.push((series.label.clone(), colour, Swatch::Hollow));
        }
    }

    fn published_at(&self, series: &SeriesSpec, x: f64) -> f64 {
        let Published::Points(points) = &series.published else { return f64::NAN };
        let near = points.iter().find(|point| (point[0] / x - 1.0).abs() < 1e-6);
        near.map_or(f64::NAN, |point| point[1])
    }

    fn row(&mut self, series: &SeriesSpec, at: &str, published: f64, value: Value) {
        let shown = if published.is_finite() { crate::number(published) } else { String::new() };
        self.rows.push((series.label.clone(), at.trim().to_owned(), shown, value));
    }
}

/// Half the width of an interval.
pub(super) fn half(value: &Value) -> Option<f64> {
    value.ends.map(|(low, high)| (high - low) / 2.0)
}

/// As areas are drawn.
fn pale(colour: Colour) -> Colour {
    let part = |part: u8| 255 - (255 - part) / 2;
    Colour(part(colour.0), part(colour.1), part(colour.2))
}

/// A row of a series covers the interval that ends at its time.
fn stepped(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let corners = points.windows(2).flat_map(|pair| [pair[0], (pair[0].0, pair[1].1)]);
    corners.chain(points.last().copied()).collect()
}
