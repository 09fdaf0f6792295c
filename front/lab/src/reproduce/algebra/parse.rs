//! Parses the algebra from an experiment's file.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, from_value};

use super::drops::Drops;
use super::select::At;
use super::{Across, Compare, Expr, Op, Reduce, Show, Source, Take};
use crate::figure::{Figure, Flows, Values, Window};

/// Keys for the source of numbers: setting one replaces those of the first term.
const SOURCES: [&str; 7] = ["figure", "column", "place", "value", "term", "take", "per"];
/// Keys that a second term does not inherit from the first.
const OWN: [&str; 9] = ["across", "show", "join", "around", "with", "scale", "pairs", "drops", "against"];

/// All keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    figure: Option<Figure>,
    column: Option<String>,
    place: Option<String>,
    value: Option<f64>,
    term: Option<Value>,
    take: Option<Take>,
    of: Option<OneOrMany>,
    at: Option<AtKey>,
    flow: Option<String>,
    flows: Option<String>,
    from: Option<f64>,
    until: Option<f64>,
    last: Option<f64>,
    after_join: Option<f64>,
    #[serde(default)]
    while_all: bool,
    smooth: Option<f64>,
    each: Option<String>,
    across: Option<Across>,
    runs: Option<Reduce>,
    drops: Option<Reduce>,
    per: Option<Figure>,
    against: Option<String>,
    #[serde(default)]
    sparse: bool,
    scale: Option<f64>,
    pairs: Option<Reduce>,
    show: Option<String>,
    join: Option<String>,
    around: Option<String>,
    #[serde(default)]
    with: BTreeMap<String, Value>,
    over: Option<Value>,
    less: Option<Value>,
    excess: Option<Value>,
    reduction: Option<Value>,
    distance: Option<Value>,
    differs: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AtKey {
    Groups(OneOrMany),
    Places(Values),
}

impl Expr {
    /// A table of keys as an expression.
    pub fn parse(table: Map<String, Value>) -> Result<Self, String> {
        let expr = Self::read(table)?;
        let wrong = match (&expr.drops, &expr.per) {
            (Some(_), _) => expr.wrong_drops(),
            (None, Some(_)) => Some("`per` needs `drops`".to_owned()),
            (None, None) => None,
        };
        wrong.or_else(|| expr.unknown_field()).map_or(Ok(expr), Err)
    }

    /// The same for a term that may be the second one of a comparison over drops.
    fn read(table: Map<String, Value>) -> Result<Self, String> {
        let keys: Keys = from_value(Value::Object(table.clone())).map_err(|error| error.to_string())?;
        let base: Map<String, Value> = table.into_iter().filter(|(key, _)| is_inherited(key)).collect();
        let compare = compare(&keys, &base)?;
        if keys.pairs.is_some() && (compare.is_none() || keys.runs.is_some()) {
            return Err("`pairs` needs a comparison, and no `runs`".to_owned());
        }
        if keys.drops.is_some() && !matches!(keys.across, None | Some(Across::Mean)) {
            return Err("`drops` goes with no other `across` than \"mean\"".to_owned());
        }
        if keys.against.is_some() && keys.drops.is_none() {
            return Err("`against` needs `drops`".to_owned());
        }
        let sides = keys.with.into_iter().map(|(name, side)| Ok((name, Self::parse(merged(&base, side)?)?)));
        let with = sides.collect::<Result<BTreeMap<_, _>, String>>()?;
        let drops =
            keys.drops.map(|reduce| Drops { reduce, against: keys.against, together: keys.across.is_some() });
        Ok(Self {
            source: source(keys.figure, keys.column, keys.place, keys.value, keys.term)?,
            of: keys.of.map_or_else(Vec::new, OneOrMany::into_vec),
            at: match keys.at {
                Some(AtKey::Places(values)) => At::Places(values),
                Some(AtKey::Groups(groups)) => At::Groups(groups.into_vec()),
                None => At::Groups(Vec::new()),
            },
            flows: match (keys.flow.filter(|name| !name.is_empty()), keys.flows) {
                (Some(name), None) => Flows::Named(name),
                (None, Some(group)) => Flows::Group(group),
                (None, None) => Flows::All,
                (Some(_), Some(_)) => return Err("either `flow` or `flows` can be given".to_owned()),
            },
            window: Window {
                from: keys.from,
                until: keys.until,
                last: keys.last,
                after_join: keys.after_join,
                while_all: keys.while_all,
                smooth: keys.smooth,
            },
            take: keys.take,
            each: keys.each,
            across: keys.across.unwrap_or_default(),
            runs: keys.runs,
            drops,
            per: keys.per,
            sparse: keys.sparse,
            scale: keys.scale.unwrap_or(1.0),
            compare,
            show: Show { group: keys.show, join: keys.join, around: keys.around },
            with,
        })
    }
}

fn is_inherited(key: &str) -> bool {
    !OWN.contains(&key) && !Op::KEYS.iter().any(|(own, _)| *own == key)
}

/// A second term: the first one's keys, except those that it sets.
fn merged(base: &Map<String, Value>, given: Value) -> Result<Map<String, Value>, String> {
    let Value::Object(given) = given else { return Err(format!("expected a table of keys, found {given}")) };
    let mut all = base.clone();
    if given.keys().any(|key| SOURCES.contains(&key.as_str())) {
        all.retain(|key, _| !SOURCES.contains(&key.as_str()));
    }
    if given.contains_key("flow") || given.contains_key("flows") {
        all.retain(|key, _| key != "flow" && key != "flows");
    }
    all.extend(given);
    Ok(all)
}

fn compare(keys: &Keys, base: &Map<String, Value>) -> Result<Option<Compare>, String> {
    let given = [&keys.over, &keys.less, &keys.excess, &keys.reduction, &keys.distance, &keys.differs];
    let mut found = Op::KEYS.iter().zip(given).filter_map(|((_, op), to)| Some((*op, to.as_ref()?)));
    let Some((op, to)) = found.next() else { return Ok(None) };
    if found.next().is_some() {
        return Err("a term is compared with one other; put the comparison into a `term`".to_owned());
    }
    let to = Box::new(Expr::read(merged(base, to.clone())?)?);
    Ok(Some(Compare { op, to, pairs: keys.pairs }))
}

fn source(
    figure: Option<Figure>,
    column: Option<String>,
    place: Option<String>,
    value: Option<f64>,
    term: Option<Value>,
) -> Result<Source, String> {
    Ok(match (figure, column, place, value, term) {
        (Some(figure), None, None, None, None) => Source::Figure(figure),
        (None, Some(column), None, None, None) => Source::Column(column),
        (None, None, Some(place), None, None) => Source::Place(place),
        (None, None, None, Some(value), None) => Source::Value(value),
        (None, None, None, None, Some(term)) => {
            Source::Term(Box::new(Expr::parse(merged(&Map::new(), term)?)?))
        }
        _ => return Err("expected one of figure, column, place, value, term".to_owned()),
    })
}
