//! The values of a checkpoint's pickle as Python sees them: inert, one at a time.

use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyComplex, PyInt};

use super::checkpoint::Read;
use crate::checkpoint::describe;
use crate::checkpoint::parts::{Label, Parts};
use crate::checkpoint::plain::Plain;
use crate::checkpoint::preview::{preview, repr};
use crate::pickle::{Handle, Value};

/// A value of the inert tree.
#[pyclass(frozen, name = "Value", module = "snapviewer")]
pub(super) struct PyValue {
    pub read: Arc<Read>,
    pub value: Value,
}

impl PyValue {
    fn index(&self) -> Option<u32> {
        let Value::Object(handle) = self.value else { return None };
        match handle {
            Handle { kind: crate::checkpoint::values::kind::TENSOR, id } => Some(id),
            _ => self.read.tree().tensor_of.get(&handle).copied(),
        }
    }

    /// Another value of the same file.
    fn beside(&self, value: Value) -> Self {
        Self { read: self.read.clone(), value }
    }

    fn parts(&self, start: usize, stop: Option<usize>) -> impl Iterator<Item = (Label, Value)> {
        let values = &self.read.tree().values;
        let is_shown = self.is_container();
        let parts = if is_shown { describe::shown(values, self.value) } else { Parts::default() };
        let stop = stop.unwrap_or(usize::MAX).min(parts.len());
        (start..stop).filter_map(move |index| parts.get(values, index))
    }
}

#[pymethods]
impl PyValue {
    #[getter]
    fn r#type(&self) -> String {
        let tensor = self.index().map(|index| &self.read.checkpoint.tensors[index as usize]);
        match tensor {
            Some(tensor) => match tensor.kind {
                "ndarray" => "numpy.ndarray".to_owned(),
                "storage" => "torch.storage.UntypedStorage".to_owned(),
                _ => "torch.Tensor".to_owned(),
            },
            None => describe::type_name(&self.read.tree().values, self.value),
        }
    }

    #[getter]
    fn tensor(&self) -> Option<u32> {
        self.index()
    }

    #[getter]
    fn size_bytes(&self) -> u64 {
        let checkpoint = &self.read.checkpoint;
        match self.index().map(|index| &checkpoint.tensors[index as usize]) {
            Some(tensor) if tensor.views.is_empty() && tensor.kind == "meta" => 0,
            Some(tensor) if tensor.views.is_empty() => tensor.logical_bytes,
            Some(tensor) => checkpoint.reached_by(tensor),
            None => self.read.sizes().of(&self.read.tree().values, self.value),
        }
    }

    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.read.checkpoint.plain(self.read.tree(), self.value)? {
            Plain::None => Ok(py.None().into_bound(py)),
            Plain::Bool(value) => value.into_bound_py_any(py),
            Plain::Int(number) => number.into_bound_py_any(py),
            Plain::Uint(number) => number.into_bound_py_any(py),
            Plain::Long(bytes) => {
                let signed = [("signed", true)].into_py_dict(py)?;
                py.get_type::<PyInt>().call_method("from_bytes", (bytes, "little"), Some(&signed))
            }
            Plain::Float(number) => number.into_bound_py_any(py),
            Plain::Complex(real, imaginary) => {
                Ok(PyComplex::from_doubles(py, real, imaginary).into_any())
            }
            Plain::Text(text) => text.into_bound_py_any(py),
            Plain::Bytes(bytes) => Ok(PyBytes::new(py, &bytes).into_any()),
        }
    }

    #[getter]
    fn preview(&self) -> Option<String> {
        let is_shown = !self.is_container() && self.index().is_none();
        is_shown.then(|| preview(&self.read.tree().values, self.value))
    }

    #[getter]
    fn count(&self) -> Option<usize> {
        self.is_container().then(|| describe::shown(&self.read.tree().values, self.value).len())
    }

    #[getter]
    fn is_container(&self) -> bool {
        self.index().is_none() && describe::is_container(&self.read.tree().values, self.value)
    }

    #[pyo3(signature = (start=0, stop=None))]
    fn items(&self, start: usize, stop: Option<usize>) -> Vec<(String, Self)> {
        let values = &self.read.tree().values;
        let named = |(label, value)| (describe::label(values, label), self.beside(value));
        self.parts(start, stop).map(named).collect()
    }

    #[pyo3(signature = (start=0, stop=None))]
    fn entries(&self, start: usize, stop: Option<usize>) -> Vec<(Self, Self)> {
        let keyed = |(label, value)| match label {
            Label::Key(key) => Some((self.beside(key), self.beside(value))),
            _ => None,
        };
        self.parts(start, stop).filter_map(keyed).collect()
    }

    fn __eq__(&self, other: &Self) -> bool {
        // A value that is not a number is still the same value.
        let is_same = match (self.value, other.value) {
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (a, b) => a == b,
        };
        is_same && Arc::ptr_eq(&self.read, &other.read)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::BuildHasher;
        foldhash::fast::FixedState::default().hash_one(format!("{:?}", self.value))
    }

    fn __repr__(&self) -> String {
        format!("Value(type={})", repr(&self.r#type()))
    }
}
