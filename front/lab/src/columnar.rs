//! Columnar results: tables of numbers and texts, written as Parquet and read back.
//!
//! An integer is an INT64, any other number a DOUBLE, a text a UTF-8 BYTE_ARRAY. **Missing values are null**, never NaN: a NaN
//! would spoil sums in every reader. Each file is one row group, compressed by gzip, and carries its origin (scenario, seed,
//! version, schema) as key-value metadata.
//!
//! Integer columns of a series are those named `_bytes` or `_packets`, except `state_…`, which belongs to the algorithm. If such a
//! column contains a fraction, it is stored as DOUBLE rather than rounded.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, ConvertedType, Encoding, GzipLevel, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use ranpace_sim::{Column, Series};

/// Metadata of a file: key and value, in order.
pub type Metadata = Vec<(String, String)>;

/// A table: named columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// Name and cells of each column, in order.
    pub columns: Vec<(String, Cells)>,
}

/// The cells of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// Other numbers.
    Real(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<String>),
}

/// Why a table was not written or read. The caller adds the file's name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnarError {
    /// The library refused.
    #[error("not a readable Parquet file: {0}; delete it and run again")]
    Parquet(#[from] ParquetError),
    /// The columns do not make a table.
    #[error(
        "column {name:?} has {found} rows, expected {expected} as in the first; this is a bug, please report it"
    )]
    Ragged {
        /// The column.
        name: String,
        /// Its rows.
        found: usize,
        /// Rows of the first column.
        expected: usize,
    },
    /// A type that no file of ours has.
    #[error("column {name:?}: expected INT64, DOUBLE or BYTE_ARRAY, found {found}; not a file of Ranpace")]
    ForeignType {
        /// The column.
        name: String,
        /// Its type.
        found: String,
    },
    /// A required column is missing, or has another type.
    #[error("no column {name:?} of the expected kind; the file is of another version: run again")]
    Missing {
        /// The column.
        name: String,
    },
}

impl Frame {
    /// The table of a series.
    pub fn of_series(series: &Series) -> Self {
        let columns = series.columns.iter().map(|column| (column.name.clone(), cells(column))).collect();
        Self { columns }
    }

    /// The series in a table: null becomes NaN; columns of text are left out.
    pub fn into_series(self) -> Series {
        let values = |cells| match cells {
            Cells::Whole(values) => {
                Some(values.into_iter().map(|value| value.map_or(f64::NAN, |value| value as f64)).collect())
            }
            Cells::Real(values) => Some(values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect()),
            Cells::Text(_) => None,
        };
        let columns = self.columns.into_iter();
        Series {
            columns: columns
                .filter_map(|(name, cells)| Some(Column { name, values: values(cells)? }))
                .collect(),
        }
    }

    /// Whole numbers of a column.
    pub fn whole(&self, name: &str) -> Result<&[Option<i64>], ColumnarError> {
        match self.find(name) {
            Some(Cells::Whole(values)) => Ok(values),
            _ => Err(ColumnarError::Missing { name: name.to_owned() }),
        }
    }

    /// Numbers of a column of reals.
    pub fn real(&self, name: &str) -> Result<&[Option<f64>], ColumnarError> {
        match self.find(name) {
            Some(Cells::Real(values)) => Ok(values),
            _ => Err(ColumnarError::Missing { name: name.to_owned() }),
        }
    }

    /// Texts of a column.
    pub fn text(&self, name: &str) -> Result<&[String], ColumnarError> {
        match self.find(name) {
            Some(Cells::Text(values)) => Ok(values),
            _ => Err(ColumnarError::Missing { name: name.to_owned() }),
        }
    }

    fn find(&self, name: &str) -> Option<&Cells> {
        self.columns.iter().find(|(own, _)| own == name).map(|(_, cells)| cells)
    }
}

impl Cells {
    fn len(&self) -> usize {
        match self {
            Self::Whole(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }
}

/// The cells of a series' column: integers if its name says so and every value is one.
fn cells(column: &Column) -> Cells {
    /// Up to here every integer has an exact `f64`.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let countable = ["_bytes", "_packets"].iter().any(|unit| column.name.ends_with(unit));
    let own = column.name.starts_with("state_");
    let whole = |value: &f64| value.is_nan() || (value.trunc() == *value && value.abs() <= EXACT);
    if countable && !own && column.values.iter().all(whole) {
        let value = |value: &f64| (!value.is_nan()).then_some(*value as i64);
        Cells::Whole(column.values.iter().map(value).collect())
    } else {
        Cells::Real(column.values.iter().map(|value| (!value.is_nan()).then_some(*value)).collect())
    }
}

/// Encodes a table as a Parquet file.
pub fn write(frame: &Frame, metadata: &Metadata) -> Result<Vec<u8>, ColumnarError> {
    let rows = frame.columns.first().map_or(0, |(_, cells)| cells.len());
    let mut fields = Vec::with_capacity(frame.columns.len());
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("ranpace {}", crate::version::VERSION))
        .set_compression(Compression::GZIP(GzipLevel::try_new(6)?))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(
            metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect(),
        ));
    for (name, cells) in &frame.columns {
        if cells.len() != rows {
            return Err(ColumnarError::Ragged { name: name.clone(), found: cells.len(), expected: rows });
        }
        let (physical, repetition, logical, encoding) = match cells {
            Cells::Whole(_) => {
                (Physical::INT64, Repetition::OPTIONAL, ConvertedType::NONE, Encoding::DELTA_BINARY_PACKED)
            }
            Cells::Real(_) => {
                (Physical::DOUBLE, Repetition::OPTIONAL, ConvertedType::NONE, Encoding::BYTE_STREAM_SPLIT)
            }
            Cells::Text(_) => {
                (Physical::BYTE_ARRAY, Repetition::REQUIRED, ConvertedType::UTF8, Encoding::PLAIN)
            }
        };
        properties = properties.set_column_encoding(ColumnPath::from(name.as_str()), encoding);
        let field = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        fields.push(Arc::new(field.with_converted_type(logical).build()?));
    }
    let schema = Arc::new(Type::group_type_builder("ranpace").with_fields(fields).build()?);
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build()))?;
    let mut group = writer.next_row_group()?;
    for (_, cells) in &frame.columns {
        let Some(mut column) = group.next_column()? else { break };
        match (cells, column.untyped()) {
            (Cells::Whole(cells), ColumnWriter::Int64ColumnWriter(writer)) => {
                let (levels, values) = levels(cells);
                writer.write_batch(&values, Some(&levels), None)?;
            }
            (Cells::Real(cells), ColumnWriter::DoubleColumnWriter(writer)) => {
                let (levels, values) = levels(cells);
                writer.write_batch(&values, Some(&levels), None)?;
            }
            (Cells::Text(cells), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                let values: Vec<ByteArray> =
                    cells.iter().map(|text| ByteArray::from(text.as_str())).collect();
                writer.write_batch(&values, None, None)?;
            }
            _ => unreachable!("the schema was made from these columns"),
        }
        column.close()?;
    }
    group.close()?;
    Ok(writer.into_inner()?)
}

/// Returns whether each cell has a value (1 or 0), and the values.
fn levels<T: Copy>(cells: &[Option<T>]) -> (Vec<i16>, Vec<T>) {
    (
        cells.iter().map(|cell| i16::from(cell.is_some())).collect(),
        cells.iter().filter_map(|cell| *cell).collect(),
    )
}

/// Decodes the table and the metadata from a file made by [`write()`].
pub fn read(file: Vec<u8>) -> Result<(Frame, Metadata), ColumnarError> {
    let reader = SerializedFileReader::new(Bytes::from(file))?;
    let description = reader.metadata().file_metadata();
    let pairs = description.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    let metadata =
        pairs.iter().map(|pair| (pair.key.clone(), pair.value.clone().unwrap_or_default())).collect();
    let mut columns: Vec<(String, Cells)> = Vec::new();
    for (index, column) in description.schema_descr().columns().iter().enumerate() {
        let mut cells = match column.physical_type() {
            Physical::INT64 => Cells::Whole(Vec::new()),
            Physical::DOUBLE => Cells::Real(Vec::new()),
            Physical::BYTE_ARRAY => Cells::Text(Vec::new()),
            other => {
                let (name, found) = (column.name().to_owned(), other.to_string());
                return Err(ColumnarError::ForeignType { name, found });
            }
        };
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group)?;
            let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            match (&mut cells, group.get_column_reader(index)?) {
                (Cells::Whole(cells), ColumnReader::Int64ColumnReader(mut reader)) => {
                    let (mut levels, mut values) = (Vec::new(), Vec::new());
                    reader.read_records(rows, Some(&mut levels), None, &mut values)?;
                    cells.extend(with_gaps(&levels, values));
                }
                (Cells::Real(cells), ColumnReader::DoubleColumnReader(mut reader)) => {
                    let (mut levels, mut values) = (Vec::new(), Vec::new());
                    reader.read_records(rows, Some(&mut levels), None, &mut values)?;
                    cells.extend(with_gaps(&levels, values));
                }
                (Cells::Text(cells), ColumnReader::ByteArrayColumnReader(mut reader)) => {
                    let mut values = Vec::new();
                    reader.read_records(rows, None, None, &mut values)?;
                    for value in values {
                        cells.push(value.as_utf8()?.to_owned());
                    }
                }
                _ => unreachable!("the reader follows the column's type"),
            }
        }
        columns.push((column.name().to_owned(), cells));
    }
    Ok((Frame { columns }, metadata))
}

/// The inverse of [`levels`].
fn with_gaps<T>(levels: &[i16], values: Vec<T>) -> Vec<Option<T>> {
    let mut values = values.into_iter();
    levels.iter().map(|level| if *level == 0 { None } else { values.next() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;
    use proptest::prelude::*;

    fn metadata() -> Metadata {
        vec![("ranpace.scenario".into(), "duration = \"60s\"\n".into()), ("ranpace.seed".into(), "1".into())]
    }

    /// `==` on NaN is false; the text is not.
    fn same(a: &Series, b: &Series) -> bool {
        a.columns.len() == b.columns.len()
            && a.columns.iter().zip(&b.columns).all(|(a, b)| {
                a.name == b.name
                    && a.values.len() == b.values.len()
                    && a.values.iter().zip(&b.values).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()))
            })
    }

    #[test]
    fn series_round_trip_unchanged() {
        let run = synthetic::run("cubic", 1);
        for series in [&run.flows[0].series, &run.links[0].series] {
            let file = write(&Frame::of_series(series), &metadata()).unwrap();
            let (frame, found) = read(file).unwrap();
            assert_eq!(found.iter().filter(|pair| pair.0.starts_with("ranpace.")).count(), 2);
            assert!(same(&frame.into_series(), series));
        }
    }

    #[test]
    fn one_minute_at_100_ms_makes_a_small_file() {
        let run = synthetic::run("bbr1", 1);
        let series = &run.flows[0].series;
        assert!(series.columns.len() >= 16 && series.columns[0].values.len() == 600);
        let size = write(&Frame::of_series(series), &metadata()).unwrap().len();
        assert!(size < 60_000, "{size} bytes");
    }

    #[test]
    fn counters_are_whole_and_states_are_not() {
        let series = Series {
            columns: [("sent_bytes", 1.0), ("state_w_bytes", 1.0), ("cwnd_bytes", 0.5), ("time_s", 1.0)]
                .map(|(name, value)| Column { name: name.into(), values: vec![value, f64::NAN] })
                .into(),
        };
        let frame = Frame::of_series(&series);
        assert_eq!(frame.whole("sent_bytes").unwrap(), &[Some(1), None]);
        for name in ["state_w_bytes", "cwnd_bytes", "time_s"] {
            assert!(frame.real(name).is_ok(), "{name}");
            assert!(matches!(frame.whole(name), Err(ColumnarError::Missing { .. })));
        }
    }

    #[test]
    fn file_that_is_no_table_is_an_error() {
        assert!(matches!(read(b"PAR1 not really".to_vec()), Err(ColumnarError::Parquet(_))));
        let ragged = Frame {
            columns: vec![("a".into(), Cells::Real(vec![Some(1.0)])), ("b".into(), Cells::Text(vec![]))],
        };
        assert!(matches!(
            write(&ragged, &Vec::new()),
            Err(ColumnarError::Ragged { found: 0, expected: 1, .. })
        ));
    }

    proptest! {
        #[test]
        fn any_table_round_trips(
            rows in prop::collection::vec((any::<Option<i64>>(), prop::option::of(-1e300..1e300), "\\PC{0,8}"), 0..50)
        ) {
            let frame = Frame {
                columns: vec![
                    ("whole".into(), Cells::Whole(rows.iter().map(|row| row.0).collect())),
                    ("real".into(), Cells::Real(rows.iter().map(|row| row.1).collect())),
                    ("text".into(), Cells::Text(rows.iter().map(|row| row.2.clone()).collect())),
                ],
            };
            let (found, _) = read(write(&frame, &metadata()).unwrap()).unwrap();
            prop_assert_eq!(found, frame);
        }
    }
}
