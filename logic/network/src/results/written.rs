//! Serialises results: amounts, rates and times become numbers whose names end in the unit.
//!
//! For `#[serde(with = "...")]`: the fields of [`crate::RunResult`] and its parts are the fields of its JSON.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Distribution;
use ranpace_units::{Bytes, Rate, Span, Time};

/// A module that serialises a type as a number: its name, the type, the number's type, and the conversions both ways.
macro_rules! written {
    ($name:ident, $type:ty, $number:ty, $write:expr, $read:expr) => {
        pub mod $name {
            use super::*;

            pub fn serialize<S: Serializer>(value: &$type, serializer: S) -> Result<S::Ok, S::Error> {
                let write: fn(&$type) -> $number = $write;
                write(value).serialize(serializer)
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                let read: fn($number) -> $type = $read;
                Ok(read(<$number>::deserialize(deserializer)?))
            }
        }
    };
}

written!(bytes, Bytes, u64, |bytes| bytes.get(), Bytes::new);
written!(bytes_if_any, Option<Bytes>, Option<u64>, |bytes| bytes.map(Bytes::get), |bytes| bytes
    .map(Bytes::new));
written!(rate, Rate, u64, |rate| rate.bits_per_s(), Rate::from_bits_per_s);
written!(span, Span, f64, |span| span.as_secs_f64(), Span::from_secs_f64);
written!(time, Time, f64, |time| time.as_secs_f64(), time_of);
written!(time_if_any, Option<Time>, Option<f64>, |time| time.map(Time::as_secs_f64), |seconds| seconds
    .map(time_of));

fn time_of(seconds: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(seconds)
}

/// A serialised distribution: without samples it has no figures. Its distribution function is stored elsewhere.
#[derive(Serialize, Deserialize)]
pub struct WrittenDistribution {
    count: u64,
    mean_s: Option<f64>,
    min_s: Option<f64>,
    p50_s: Option<f64>,
    p95_s: Option<f64>,
    p99_s: Option<f64>,
    max_s: Option<f64>,
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let figure = |span: Span| (self.count > 0).then(|| span.as_secs_f64());
        let [mean_s, min_s, max_s] = [self.mean, self.min, self.max].map(figure);
        let [p50_s, p95_s, p99_s] = [self.p50, self.p95, self.p99].map(figure);
        WrittenDistribution { count: self.count, mean_s, min_s, p50_s, p95_s, p99_s, max_s }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let WrittenDistribution { count, mean_s, min_s, p50_s, p95_s, p99_s, max_s } =
            WrittenDistribution::deserialize(deserializer)?;
        let span = |figure: Option<f64>| figure.map_or(Span::ZERO, Span::from_secs_f64);
        let [mean, min, max] = [mean_s, min_s, max_s].map(span);
        let [p50, p95, p99] = [p50_s, p95_s, p99_s].map(span);
        Ok(Self { count, mean, min, max, p50, p95, p99, cdf: Vec::new() })
    }
}
