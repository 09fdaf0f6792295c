//! From the numbers of a picture to its marks, its caption and the table of its values.

use super::super::cells::Cells;
use super::super::experiment::Experiment;
use super::super::show::Figures;
use super::values::{self, Value};
use super::{AxisSpec, Form, Model, PictureSpec, Published, SeriesSpec};
use crate::plot::{Axis, Colour, Frame, GREY, Mark, MarkPlot, Palette, PlotError, Swatch};

/// A picture of the report.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Which published figure it draws again; may be empty.
    pub figure: String,
    /// The drawing.
    pub svg: String,
    /// How to read it, and where the published values come from.
    pub caption: String,
    /// Whether it takes the width of the page.
    pub wide: bool,
    /// Its values, where they are few enough to be read.
    pub values: Option<Figures>,
}

/// Rows of the table of a picture's values at most.
const MOST_ROWS: usize = 60;

/// The pictures of an experiment, without those of which neither runs nor published values are there.
pub fn pictures(experiment: &Experiment, cells: &Cells) -> Result<Vec<Picture>, PlotError> {
    let labels = experiment.pictures.iter().flat_map(|picture| &picture.series);
    let palette = Palette::of(labels.map(|series| series.label.as_str()));
    let drawn = experiment.pictures.iter().map(|spec| match spec.model {
        Some(model) => of_model(spec, model),
        None => Ok(picture(experiment, spec, cells, &palette)?.into_iter().collect()),
    });
    Ok(drawn.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The plots of an analytic model, which have their own titles.
fn of_model(spec: &PictureSpec, model: Model) -> Result<Vec<Picture>, PlotError> {
    let picture = |(svg, shows): (String, String)| Picture {
        figure: spec.figure.clone(),
        svg,
        caption: [&spec.figure, ": ", &shows, " ", &spec.note].concat().trim().to_owned(),
        wide: true,
        values: None,
    };
    Ok(model.plots()?.into_iter().map(picture).collect())
}

fn picture(
    experiment: &Experiment,
    spec: &PictureSpec,
    cells: &Cells,
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
            Form::Time => drawing.over_time(series, colour, cells, spec.series.len()),
            Form::Lines => drawing.over_place(series, colour, cells),
            Form::Bars => drawing.bars(experiment, series, index, colour, cells),
            Form::Box => drawing.boxes(series, index, colour, cells),
            Form::Cdf => drawing.distribution(series, colour, cells),
            Form::Scatter => drawing.scatter(series, colour, cells),
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

/// A picture that is being drawn.
struct Drawing<'a> {
    spec: &'a PictureSpec,
    /// Base units in one of the axes' units.
    scale: (f64, f64),
    legend: Vec<(String, Colour, Swatch)>,
    marks: Vec<Mark>,
    /// What is published is drawn over all that is measured.
    published: Vec<Mark>,
    /// Label, group or x, published and measured.
    rows: Vec<(String, String, String, Value)>,
    /// The fewest and the most runs behind a value with an interval.
    runs: Option<(usize, usize)>,
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

    fn over_time(&mut self, series: &SeriesSpec, colour: Colour, cells: &Cells, all: usize) {
        let show = series.show.or(&self.spec.show);
        let lines: Vec<_> =
            series.of.0.iter().flat_map(|name| values::over_time(cells, name, &show)).collect();
        let several = lines.len() > 1;
        let inside = |at: f64| self.spec.x.range.is_none_or(|[low, high]| (low..=high).contains(&at));
        let (scale, _) = self.scale;
        for (index, (name, mut points)) in lines.into_iter().enumerate() {
            // What is outside the axis would be drawn at its edge.
            points.retain(|point| inside(point.0 / scale));
            // Of a single series each flow has its own colour.
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

    fn over_place(&mut self, series: &SeriesSpec, colour: Colour, cells: &Cells) {
        let show = series.show.or(&self.spec.show);
        let place = self.spec.x.place.as_deref().unwrap_or_default();
        let per = self.spec.x.per.unwrap_or(1.0);
        let names = &series.of.0;
        let found: Vec<(f64, Value)> = names
            .iter()
            .flat_map(|name| values::over_place(cells, name, place, &show, self.spec.intervals))
            .map(|(x, value)| (x / per, value))
            .collect();
        if found.is_empty() {
            return self.published_points(series, colour);
        }
        if let [(x, level)] = found[..]
            && (x.is_nan() || series.dashed)
        {
            // A scheme without the value, or a reference at a single one, is a level line.
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

    fn bars(
        &mut self,
        experiment: &Experiment,
        series: &SeriesSpec,
        index: usize,
        colour: Colour,
        cells: &Cells,
    ) {
        let found = values::of_groups(experiment, self.spec, series, cells);
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
                    // Beside the interval of what was measured.
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

    fn boxes(&mut self, series: &SeriesSpec, index: usize, colour: Colour, cells: &Cells) {
        let show = series.show.or(&self.spec.show);
        for (group, name) in series.of.0.iter().enumerate() {
            let function = values::distribution(cells, name, &show);
            let percentiles = [0.05, 0.25, 0.5, 0.75, 0.95].map(|share| values::quantile(&function, share));
            if percentiles[2].is_finite() {
                self.marks.push(Mark::Box { colour, span: self.slot(group, index), percentiles });
            }
            if let Some(name) = self.spec.x.names.get(group) {
                let runs = values::runs(cells, &series.of.0[group], &show.only).len();
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

    fn distribution(&mut self, series: &SeriesSpec, colour: Colour, cells: &Cells) {
        let show = series.show.or(&self.spec.show);
        for name in &series.of.0 {
            let function = values::distribution(cells, name, &show);
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

    fn scatter(&mut self, series: &SeriesSpec, colour: Colour, cells: &Cells) {
        let (right, up) = (&self.spec.x.show, series.show.or(&self.spec.show));
        let mut points = Vec::new();
        // A lone dot has its name beside it.
        let single = series.of.0.len() == 1 && series.words.is_empty();
        for (index, name) in series.of.0.iter().enumerate() {
            let mut right = right.clone();
            right.flows = right.flows.or_else(|| up.flows.clone());
            let value = |show| Value::of(&values::of_runs(cells, name, show), self.spec.intervals);
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

    /// Where the bar of a series stands in a group.
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

    fn is_published(&self) -> bool {
        !self.published.is_empty()
    }

    /// Both ends of what is drawn to the right.
    fn ends_of_x(&self) -> [f64; 2] {
        let range = self.spec.x.range.map(|range| range.map(|end| end * self.scale.0));
        range.unwrap_or_else(|| {
            let xs: Vec<f64> = self.points().map(|point| point.0).collect();
            [f64::INFINITY, f64::NEG_INFINITY]
                .map(|end| xs.iter().copied().fold(end, if end > 0.0 { f64::min } else { f64::max }))
        })
    }

    /// All points that the axes must show.
    fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.marks.iter().chain(&self.published).flat_map(|mark| match mark {
            Mark::Line { points, .. } | Mark::Area { points, .. } => points.clone(),
            Mark::Dot { at, .. } | Mark::Diamond { at, .. } | Mark::Label { at, .. } => vec![*at],
            Mark::Bar { span, value, .. } => vec![(span.0, *value)],
            Mark::Box { span, percentiles, .. } => percentiles.map(|value| (span.0, value)).to_vec(),
            Mark::Interval { x, ends, .. } => vec![(*x, ends.0), (*x, ends.1)],
            Mark::Across { y, ends, .. } => vec![(ends.0, *y), (ends.1, *y)],
        })
    }

    fn axis(&self, spec: &AxisSpec, values: Vec<f64>, around: bool) -> Axis {
        let (quantity, unit) = spec.unit();
        let known = values.iter().copied().filter(|value| value.is_finite());
        let axis = match (spec.range, spec.log) {
            (Some([low, high]), false) => {
                Axis::linear(&spec.title, quantity, (low * unit.size, high * unit.size))
            }
            (Some(range), true) => Axis::log_from(&spec.title, quantity, range.map(|end| end * unit.size)),
            (None, true) => Axis::log(&spec.title, quantity, known),
            (None, false) if around => {
                let ends = known.fold((f64::INFINITY, f64::NEG_INFINITY), |ends, value| {
                    (ends.0.min(value), ends.1.max(value))
                });
                Axis::linear(&spec.title, quantity, ends)
            }
            (None, false) => Axis::from_zero(&spec.title, quantity, known.map(|value| value * 1.04)),
        };
        let axis = axis.with_unit(unit);
        if spec.reversed { axis.reversed() } else { axis }
    }

    fn plot(self) -> MarkPlot {
        let spec = self.spec;
        let around = matches!(spec.form, Form::Time | Form::Lines);
        let x = if spec.x.names.is_empty() {
            self.axis(&spec.x, self.points().map(|point| point.0).collect(), around)
        } else {
            Axis::of_groups(&spec.x.title, spec.x.names.clone())
        };
        let y = match (spec.form, spec.y.range) {
            (Form::Cdf, None) => Axis::linear(&spec.y.title, spec.y.unit().0, (0.0, 1.0)),
            _ => self.axis(&spec.y, self.points().map(|point| point.1).collect(), false),
        };
        let figure = if spec.figure.is_empty() { String::new() } else { format!("{}: ", spec.figure) };
        let names: Vec<&str> = self.legend.iter().map(|(label, ..)| label.as_str()).collect();
        let alt =
            format!("{figure}{}. {} over {}: {}", spec.title, spec.y.title, spec.x.title, names.join(", "));
        let size = if spec.wide { (1_100, 380) } else { (560, 380) };
        let mut legend = self.legend;
        // Series of published values alone have their own names.
        let beside = |series: &SeriesSpec| !series.of.0.is_empty() || !series.criteria.is_empty();
        if !self.published.is_empty()
            && spec.series.iter().any(|series| beside(series) && series.published.is_there())
        {
            legend.push(("published".to_owned(), GREY, Swatch::Hollow));
        }
        let title = format!("{figure}{}", spec.title);
        let marks = self.marks.into_iter().chain(self.published).collect();
        MarkPlot { frame: Frame { size, title, alt }, x, y, legend, marks }
    }

    fn caption(&self) -> String {
        let spec = self.spec;
        let mut parts = Vec::new();
        if self.is_published() {
            parts.push(format!("Hollow diamonds were published: {}.", spec.read.trim_end_matches('.')));
        } else if !spec.figure.is_empty() {
            let why = if spec.read.is_empty() { "the text gives no values" } else { &spec.read };
            parts.push(format!(
                "Ours alone, in the form of the published figure: {}.",
                why.trim_end_matches('.')
            ));
        }
        match self.runs {
            // What a criterion measured has an interval of its own.
            Some((_, 0 | 1)) => parts.push("Whiskers are 95 % intervals.".to_owned()),
            Some((fewest, most)) if fewest == most => {
                parts.push(format!("Whiskers are 95 % intervals over {most} runs."));
            }
            Some((fewest, most)) => {
                parts.push(format!("Whiskers are 95 % intervals over {fewest} to {most} runs."));
            }
            None => {}
        }
        if spec.form == Form::Box {
            parts.push("A box is from the 25th to the 75th percentile, its line the median, its whiskers end at the 5th and the 95th.".to_owned());
        }
        if !spec.note.is_empty() {
            parts.push(spec.note.clone());
        }
        parts.join(" ")
    }

    /// The values that are drawn; `None` where they are too many to be read.
    fn table(&self) -> Option<Figures> {
        let unit = self.spec.y.unit().1;
        let rows: Vec<_> =
            self.rows.iter().filter(|row| row.3.mean.is_finite() || !row.2.is_empty()).collect();
        if rows.is_empty() || rows.len() > MOST_ROWS {
            return None;
        }
        let title = |text: &str, unit: &str| (text.to_owned(), unit.to_owned());
        let mut head = vec![title("", ""), title(&self.spec.x.title, "")];
        let published = rows.iter().any(|row| !row.2.is_empty());
        if published {
            head.push(title("published", unit.name));
        }
        let measured = if self.spec.form == Form::Box { "median" } else { "measured" };
        head.push(title(measured, unit.name));
        let rows = rows.into_iter().map(|(label, at, own, value)| {
            let mut row = vec![label.clone(), at.clone()];
            if published {
                row.push(own.clone());
            }
            row.push(unit.show_with(value.mean, half(value)));
            row
        });
        let title = self.spec.y.title.clone();
        Some(Figures { title, head, rows: rows.collect(), report_only: true })
    }
}

/// Half the width of an interval.
fn half(value: &Value) -> Option<f64> {
    value.ends.map(|(low, high)| (high - low) / 2.0)
}

/// As areas are drawn.
fn pale(colour: Colour) -> Colour {
    let part = |part: u8| 255 - (255 - part) / 2;
    Colour(part(colour.0), part(colour.1), part(colour.2))
}

/// A row of a series stands for the interval that ends at its time.
fn stepped(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let corners = points.windows(2).flat_map(|pair| [pair[0], (pair[0].0, pair[1].1)]);
    corners.chain(points.last().copied()).collect()
}
