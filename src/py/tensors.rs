//! Tensors of a checkpoint, what they are made of and where they are, as Python sees them.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::checkpoint::Read;
use super::getters::{derefs, getters};
use crate::checkpoint::{Storage, Tensor, View};

/// A tensor, or something like one.
#[pyclass(frozen, name = "Tensor", module = "snapviewer")]
pub(super) struct PyTensor {
    pub read: Arc<Read>,
    pub index: usize,
}

impl PyTensor {
    fn tensor(&self) -> &Tensor {
        &self.read.checkpoint.tensors[self.index]
    }

    /// The one view of a plain tensor.
    fn only(&self) -> Option<&View> {
        match self.tensor().views.as_slice() {
            [view] if view.role.is_empty() => Some(view),
            _ => None,
        }
    }
}

derefs!(PyTensor, |this| -> Tensor { this.tensor() });

getters! {
    PyTensor { kind: &'static str, requires_grad: bool, logical_bytes: u64 }

    #[getter]
    fn name(&self) -> &str {
        &self.tensor().name
    }

    #[getter]
    fn dtype(&self) -> &str {
        &self.tensor().dtype
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.tensor().shape)
    }

    #[getter]
    fn stride<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.only().map(|view| PyTuple::new(py, &view.layout.stride)).transpose()
    }

    #[getter]
    fn offset(&self) -> Option<u64> {
        self.only().map(|view| view.layout.offset)
    }

    #[getter]
    fn storage(&self) -> Option<&str> {
        self.only().map(|view| self.read.key(view))
    }

    #[getter]
    fn device(&self) -> &str {
        &self.tensor().device
    }

    #[getter]
    fn stored_bytes(&self) -> u64 {
        let checkpoint = &self.read.checkpoint;
        let tensor = self.tensor();
        let storages = checkpoint.storages_of(tensor);
        storages.into_iter().map(|index| checkpoint.storages[index as usize].bytes).sum()
    }

    #[getter]
    fn unique_bytes(&self) -> u64 {
        self.read.checkpoint.reached_by(self.tensor())
    }

    #[getter]
    fn wasted_bytes(&self) -> u64 {
        let checkpoint = &self.read.checkpoint;
        let storages = checkpoint.storages_of(self.tensor());
        storages.into_iter().map(|index| checkpoint.wasted_in(index as usize)).sum()
    }

    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let views = &self.tensor().views;
        let count = if self.only().is_some() { 0 } else { views.len() };
        let part = |view| PyTensorPart { read: self.read.clone(), index: self.index, view };
        PyTuple::new(py, (0..count).map(part))
    }

    #[getter]
    fn class_name(&self) -> Option<&str> {
        self.tensor().class.as_deref()
    }

    #[getter]
    fn file(&self) -> Option<String> {
        let view = self.tensor().views.first()?;
        self.read.file_name(self.read.checkpoint.storages[view.storage as usize].file)
    }

    fn __repr__(&self) -> String {
        let Tensor { name, dtype, shape, .. } = self.tensor();
        format!("<Tensor {name:?} {dtype} {shape:?}>")
    }
}

/// One of the tensors that a tensor is made of.
#[pyclass(frozen, name = "TensorPart", module = "snapviewer")]
pub(super) struct PyTensorPart {
    pub read: Arc<Read>,
    pub index: usize,
    pub view: usize,
}

impl PyTensorPart {
    fn view(&self) -> &View {
        &self.read.checkpoint.tensors[self.index].views[self.view]
    }
}

#[pymethods]
impl PyTensorPart {
    #[getter]
    fn role(&self) -> &str {
        &self.view().role
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        self.view().dtype.name()
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.view().layout.shape)
    }

    #[getter]
    fn stride<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.view().layout.stride)
    }

    #[getter]
    fn offset(&self) -> u64 {
        self.view().layout.offset
    }

    #[getter]
    fn storage(&self) -> &str {
        self.read.key(self.view())
    }
}

/// The bytes of one storage, and where they are.
#[pyclass(frozen, name = "Storage", module = "snapviewer")]
pub(super) struct PyStorage {
    pub read: Arc<Read>,
    pub index: usize,
}

impl PyStorage {
    fn storage(&self) -> &Storage {
        &self.read.checkpoint.storages[self.index]
    }
}

derefs!(PyStorage, |this| -> Storage { this.storage() });

getters! {
    PyStorage { start: u64, bytes: u64, packed_bytes: u64 }

    #[getter]
    fn key(&self) -> &str {
        &self.storage().key
    }

    #[getter]
    fn file(&self) -> Option<String> {
        self.read.file_name(self.storage().file)
    }

    #[getter]
    fn reached_bytes(&self) -> u64 {
        self.read.checkpoint.uses[self.index].reached_bytes
    }

    #[getter]
    fn clone_bytes(&self) -> u64 {
        self.read.checkpoint.uses[self.index].clone_bytes
    }

    #[getter]
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.read.checkpoint.uses[self.index].tensors)
    }
}
