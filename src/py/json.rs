//! JSON as Python's own objects.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;

/// Converts a value. It is as deep as its reader allowed.
pub(super) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => value.into_pyobject(py)?.into_any(),
            (_, Some(value)) => value.into_pyobject(py)?.into_any(),
            _ => number.as_f64().into_pyobject(py)?,
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(items) => {
            let items = items.iter().map(|item| to_python(py, item));
            PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Value::Object(entries) => {
            let object = PyDict::new(py);
            for (name, item) in entries {
                object.set_item(name, to_python(py, item)?)?;
            }
            object.into_any()
        }
    })
}
