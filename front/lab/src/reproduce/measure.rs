//! The measurements that criteria are made of: each yields one number, which a criterion compares with its bounds.
//!
//! They are expressed in the algebra (`algebra`); separate algorithms are named functions (`function.rs`).

use serde::{Deserialize, Deserializer};

use super::algebra::{Expr, OtherFigure, Part};
use super::function::Function;
use super::measured::Measured;
use super::results::{Absent, Results};

/// A measure.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// A dedicated function.
    Function {
        /// The function.
        function: Function,
        /// The schemes whose runs it uses, if any.
        of: Vec<String>,
    },
    /// An expression of the algebra.
    Expr(Box<Expr>),
}

impl<'de> Deserialize<'de> for Measure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Keys {
            function: Function,
            #[serde(default)]
            of: Vec<String>,
        }
        let table = serde_json::Map::deserialize(deserializer)?;
        if table.contains_key("function") {
            let keys = serde_json::from_value(serde_json::Value::Object(table));
            let Keys { function, of } = keys.map_err(serde::de::Error::custom)?;
            return Ok(Self::Function { function, of });
        }
        Expr::parse(table).map(|expr| Self::Expr(Box::new(expr))).map_err(serde::de::Error::custom)
    }
}

impl Measure {
    /// The schemes whose runs it needs.
    pub fn schemes(&self) -> Vec<String> {
        match self {
            Self::Function { of, .. } => of.clone(),
            Self::Expr(expr) => expr.schemes(),
        }
    }

    /// The same with this scheme replaced by another.
    pub fn instead(&self, old: &str, new: &str) -> Self {
        let mut other = self.clone();
        match &mut other {
            Self::Function { of, .. } => {
                of.iter_mut().filter(|scheme| *scheme == old).for_each(|scheme| new.clone_into(scheme));
            }
            Self::Expr(expr) => expr.instead(old, new),
        }
        other
    }

    /// The same with other figures, where schemes are compared over drops.
    pub fn with_figures(&self, figures: &[OtherFigure]) -> Self {
        let mut other = self.clone();
        if let Self::Expr(expr) = &mut other {
            expr.with_figures(figures);
        }
        other
    }

    /// Its value.
    pub fn of(&self, results: &Results) -> Result<Measured, Absent> {
        Ok(self.find(results)?.0)
    }

    /// Its value, and what is compared with the bounds: the value alone, except for comparisons over drops.
    pub fn find(&self, results: &Results) -> Result<(Measured, Vec<Part>), Absent> {
        let (measured, parts) = match self {
            Self::Function { function, of } => {
                let measured = function.of(of, results)?;
                let part = Part::plain(measured.value);
                (measured, vec![part])
            }
            Self::Expr(expr) => expr.find(results)?,
        };
        if measured.value.is_finite() {
            Ok((measured, parts))
        } else {
            Err(Absent::Nothing("a run has no such figure".to_owned()))
        }
    }
}
