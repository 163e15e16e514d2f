//! Tables as Python sees them: Arrow's capsules, and little else.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{Field, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use serde_json::Value;

use crate::shown;

/// A table in Arrow's format. pyarrow, pandas, Polars and DuckDB take it as it is.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Table(pub(crate) fleet::Table);

#[pymethods]
impl Table {
    /// A table of rows in JSON: `columns` are names with types, `text`, `integer`, `number` or `bool`.
    #[staticmethod]
    fn from_json(name: &str, columns: Vec<(String, String)>, rows: &str) -> PyResult<Table> {
        let rows: Vec<Vec<Value>> =
            serde_json::from_str(rows).map_err(|why| PyValueError::new_err(why.to_string()))?;
        let mut fields = Vec::new();
        let mut arrays = Vec::new();
        for (at, (column, of_type)) in columns.iter().enumerate() {
            let values = rows.iter().map(|row| row.get(at).unwrap_or(&Value::Null));
            let array = array(of_type, values).ok_or_else(|| {
                PyValueError::new_err(format!("column {column}: not of {of_type}"))
            })?;
            let unit = unit(column).map(|unit| ("unit".to_owned(), unit.to_owned()));
            let field = Field::new(column, array.data_type().clone(), true);
            let about: HashMap<String, String> = unit.into_iter().collect();
            fields.push(field.with_metadata(about));
            arrays.push(array);
        }
        let about = ("paceline.table".to_owned(), name.to_owned());
        let schema = Schema::new_with_metadata(fields, HashMap::from([about]));
        let schema = Arc::new(schema);
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options);
        let batch = batch.map_err(|why| PyValueError::new_err(why.to_string()))?;
        Ok(Table(fleet::Table {
            schema,
            batches: vec![batch],
        }))
    }

    /// How many rows there are.
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.len()
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0
            .schema
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect()
    }

    /// The units of the columns that have one.
    #[getter]
    fn units(&self) -> BTreeMap<String, String> {
        self.of_columns("unit")
    }

    /// The meanings of the columns.
    #[getter]
    fn meanings(&self) -> BTreeMap<String, String> {
        self.of_columns("about")
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        let names = self.column_names().join(", ");
        let name = self.0.schema.metadata().get("paceline.table");
        let name = name.map_or("", String::as_str);
        format!("<paceline.Table {name}: {} rows of {names}>", self.0.len())
    }

    /// As a notebook shows it: the first rows.
    fn _repr_html_(&self) -> String {
        shown::html(&self.0)
    }

    /// The schema as a capsule of Arrow's.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema.as_ref());
        let schema = schema.map_err(|why| PyValueError::new_err(why.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows as a capsule of Arrow's. They have one schema, so none that is requested changes them.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        // What is copied are pointers.
        let batches = self.0.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.0.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// As a table of pyarrow's.
    fn to_pyarrow<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let pyarrow = slf.py().import("pyarrow")?;
        pyarrow.call_method1("table", (slf,))
    }

    /// As a data frame of pandas', by way of pyarrow.
    fn to_pandas<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Table::to_pyarrow(slf)?.call_method0("to_pandas")
    }

    /// As a data frame of Polars'.
    fn to_polars<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let polars = slf.py().import("polars")?;
        polars.call_method1("DataFrame", (slf,))
    }

    /// As a dictionary of lists, by way of pyarrow.
    fn to_pydict<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let dict = Table::to_pyarrow(slf)?.call_method0("to_pydict")?;
        Ok(dict.cast_into::<PyDict>()?)
    }
}

impl Table {
    fn of_columns(&self, key: &str) -> BTreeMap<String, String> {
        let fields = self.0.schema.fields().iter();
        let told = fields
            .filter_map(|field| Some((field.name().clone(), field.metadata().get(key)?.clone())));
        told.collect()
    }
}

/// The unit that a name ends in.
fn unit(name: &str) -> Option<&'static str> {
    let units = [("_ns", "ns"), ("_uj", "uJ"), ("_bytes", "bytes")];
    units
        .iter()
        .find(|(end, _)| name.ends_with(end))
        .map(|(_, unit)| *unit)
}

/// A column; none if a value is of another type.
fn array<'v>(of_type: &str, values: impl Iterator<Item = &'v Value>) -> Option<ArrayRef> {
    match of_type {
        "text" => {
            let mut to = StringBuilder::new();
            for value in values {
                match value {
                    Value::Null => to.append_null(),
                    Value::String(text) => to.append_value(text),
                    _ => return None,
                }
            }
            Some(Arc::new(to.finish()))
        }
        "integer" => {
            let mut to = Int64Builder::new();
            for value in values {
                match value {
                    Value::Null => to.append_null(),
                    value => to.append_value(value.as_i64()?),
                }
            }
            Some(Arc::new(to.finish()))
        }
        "number" => {
            let mut to = Float64Builder::new();
            for value in values {
                match value {
                    Value::Null => to.append_null(),
                    value => to.append_value(value.as_f64()?),
                }
            }
            Some(Arc::new(to.finish()))
        }
        "bool" => {
            let mut to = BooleanBuilder::new();
            for value in values {
                match value {
                    Value::Null => to.append_null(),
                    value => to.append_value(value.as_bool()?),
                }
            }
            Some(Arc::new(to.finish()))
        }
        _ => None,
    }
}
