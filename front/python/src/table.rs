//! Tables in Arrow's C data and stream interface, which pyarrow, polars, pandas and duckdb read without a copy.

use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array as _, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
    StructArray, cast::AsArray as _,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::{PyImportError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use ranpace_lab::columnar::{Cells, Frame};
use ranpace_lab::table::TextTable;

/// A table of results. Any library that knows Arrow's PyCapsule interface takes it as it is, without a copy.
#[pyclass(frozen, module = "ranpace")]
pub struct Table {
    batch: RecordBatch,
}

fn arrow(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

impl Table {
    /// The table of a frame.
    pub fn of(frame: &Frame) -> PyResult<Self> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::<ArrayRef>::new());
        for (name, cells) in &frame.columns {
            let (kind, array): (DataType, ArrayRef) = match cells {
                Cells::Whole(values) => (DataType::Int64, Arc::new(Int64Array::from(values.clone()))),
                Cells::Real(values) => (DataType::Float64, Arc::new(Float64Array::from(values.clone()))),
                Cells::Text(values) => {
                    (DataType::Utf8, Arc::new(StringArray::from_iter_values(values.iter())))
                }
            };
            fields.push(Field::new(name, kind, !matches!(cells, Cells::Text(_))));
            arrays.push(array);
        }
        if arrays.is_empty() {
            return Ok(Self { batch: RecordBatch::new_empty(Arc::new(Schema::empty())) });
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(arrow)?;
        Ok(Self { batch })
    }

    fn list<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyList>> {
        let array = self.batch.column(column);
        match array.data_type() {
            DataType::Int64 => PyList::new(py, array.as_primitive::<Int64Type>().iter()),
            DataType::Float64 => PyList::new(py, array.as_primitive::<Float64Type>().iter()),
            _ => PyList::new(py, array.as_string::<i32>().iter()),
        }
    }

    fn cell(&self, column: usize, row: usize) -> String {
        let array = self.batch.column(column);
        if array.is_null(row) {
            return String::new();
        }
        match array.data_type() {
            DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
            DataType::Float64 => {
                // Six digits, as numpy and pandas print by default.
                let value = array.as_primitive::<Float64Type>().value(row);
                if value == 0.0 || (1e-4..1e9).contains(&value.abs()) {
                    format!("{value:.6}").trim_end_matches('0').trim_end_matches('.').to_owned()
                } else {
                    format!("{value:.6e}")
                }
            }
            _ => array.as_string::<i32>().value(row).to_owned(),
        }
    }

    fn column_index(&self, name: &str) -> PyResult<usize> {
        self.batch.schema().index_of(name).map_err(|_| {
            let names: Vec<String> = self.columns();
            PyKeyError::new_err(format!("no column {name:?}; there are: {}", names.join(", ")))
        })
    }
}

/// Most rows that a notebook shows.
const SHOWN: usize = 20;

#[pymethods]
impl Table {
    /// The table as a capsule of Arrow's stream interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer to ignore the request; the consumer then casts.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// The table as capsules of a struct array and its schema.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        drop(requested_schema);
        let (array, schema): (FFI_ArrowArray, FFI_ArrowSchema) =
            to_ffi(&StructArray::from(self.batch.clone()).into_data()).map_err(arrow)?;
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        PyTuple::new(py, [schema, array])
    }

    /// The schema as a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(arrow)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Names of the columns; they end in the unit.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The values of a column as a list; `None` where there is none.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        self.list(py, self.column_index(name)?)
    }

    /// A dictionary for each row.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, pyo3::types::PyDict>>> {
        use pyo3::types::PyDict;
        let names = self.columns();
        let columns: Vec<_> =
            (0..names.len()).map(|column| self.list(py, column)).collect::<PyResult<_>>()?;
        (0..self.batch.num_rows())
            .map(|row| {
                let dict = PyDict::new(py);
                for (name, column) in names.iter().zip(&columns) {
                    dict.set_item(name, column.get_item(row)?)?;
                }
                Ok(dict)
            })
            .collect()
    }

    /// As a pandas data frame.
    fn to_pandas(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        let py = slf.py();
        let arrow = py.import("pyarrow").and_then(|arrow| py.import("pandas").map(|_| arrow));
        let arrow = arrow.map_err(|error| needs(py, error, "to_pandas", "pandas"))?;
        arrow.call_method1("table", (slf,))?.call_method0("to_pandas")
    }

    /// As a polars data frame, without a copy.
    fn to_polars(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        let py = slf.py();
        let polars = py.import("polars").map_err(|error| needs(py, error, "to_polars", "polars"))?;
        polars.call_method1("DataFrame", (slf,))
    }

    fn __repr__(&self) -> String {
        let names = self.columns();
        let mut text = TextTable::new(names.iter().map(|name| (name.clone(), String::new())));
        let rows = self.batch.num_rows();
        for row in 0..rows.min(SHOWN) {
            text.push((0..names.len()).map(|column| self.cell(column, row)).collect());
        }
        let more = if rows > SHOWN { format!("... {rows} rows\n") } else { String::new() };
        format!("{text}{more}")
    }

    fn _repr_html_(&self) -> String {
        let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let names = self.columns();
        let head: String = names.iter().map(|name| format!("<th>{}</th>", escape(name))).collect();
        let rows = self.batch.num_rows();
        let body: String = (0..rows.min(SHOWN))
            .map(|row| {
                let cells: String = (0..names.len())
                    .map(|column| format!("<td>{}</td>", escape(&self.cell(column, row))))
                    .collect();
                format!("<tr>{cells}</tr>")
            })
            .collect();
        let more = if rows > SHOWN { format!("<p>{SHOWN} of {rows} rows</p>") } else { String::new() };
        format!("<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}")
    }
}

fn needs(py: Python<'_>, error: PyErr, method: &str, extra: &str) -> PyErr {
    let reason = error.value(py).to_string();
    PyImportError::new_err(format!("{method} needs {extra} ({reason}): pip install 'ranpace[{extra}]'"))
}
