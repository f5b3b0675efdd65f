//! The values of a checkpoint's pickle as Python sees them: inert, one at a time.

use std::sync::Arc;

use pyo3::prelude::*;

use super::checkpoint::Read;
use crate::checkpoint::describe;
use crate::checkpoint::preview::preview;
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
        if !self.is_container() {
            return Vec::new();
        }
        let values = &self.read.tree().values;
        let parts = describe::shown(values, self.value);
        let stop = stop.unwrap_or(usize::MAX).min(parts.len());
        (start..stop)
            .filter_map(|index| parts.get(values, index))
            .map(|(label, value)| {
                (describe::label(values, label), Self { read: self.read.clone(), value })
            })
            .collect()
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
        format!("<Value {}>", self.r#type())
    }
}
