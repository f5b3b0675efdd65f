//! A checkpoint as Python sees it: frozen records that share one reading of the file.

#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::calls::{Caller, SnapshotError};
use super::getters::{derefs, getters};
use super::numbers::{PyDifference, PyQuality, PyStats};
use super::tensors::{PyStorage, PyTensor};
use super::values::PyValue;
use crate::checkpoint::describe::Sizes;
use crate::checkpoint::open::Checkpoint;
use crate::checkpoint::{Ledger, Tree, View};
use crate::error::Error;
use crate::stats::Number;

/// Reads the structure of a checkpoint.
#[pyfunction]
#[pyo3(signature = (path, *, progress=None, cancel=None))]
pub(super) fn read_checkpoint(
    py: Python<'_>,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
    cancel: Option<Py<PyAny>>,
) -> PyResult<PyCheckpoint> {
    let caller = Caller::new(progress, cancel);
    Ok(PyCheckpoint::new(caller.run(py, |progress| Checkpoint::open(&path, progress))?))
}

/// A checkpoint, and what is computed on demand.
pub(super) struct Read {
    pub checkpoint: Checkpoint,
    sizes: OnceLock<Sizes>,
}

impl Read {
    pub fn tree(&self) -> &Tree {
        &self.checkpoint.trees[self.checkpoint.root_tree]
    }

    pub fn sizes(&self) -> &Sizes {
        self.sizes.get_or_init(|| self.checkpoint.sizes())
    }

    pub fn file_name(&self, file: u32) -> Option<String> {
        let path = self.checkpoint.files[file as usize].path();
        (file > 0).then(|| path.file_name().unwrap_or_default().to_string_lossy().into_owned())
    }

    pub fn key(&self, view: &View) -> &str {
        &self.checkpoint.storages[view.storage as usize].key
    }
}

/// What is in a checkpoint.
#[pyclass(frozen, name = "Checkpoint", module = "snapviewer")]
pub(super) struct PyCheckpoint {
    read: Arc<Read>,
}

#[pymethods]
impl PyCheckpoint {
    #[getter]
    fn path(&self) -> String {
        self.read.checkpoint.files[0].path().to_string_lossy().into_owned()
    }

    #[getter]
    fn format(&self) -> &'static str {
        self.read.checkpoint.format
    }

    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let files = &self.read.checkpoint.files;
        PyTuple::new(py, files.iter().map(|file| file.path().to_string_lossy().into_owned()))
    }

    #[getter]
    fn file_bytes(&self) -> u64 {
        self.read.checkpoint.file_bytes()
    }

    #[getter]
    fn ledger(&self) -> PyLedger {
        PyLedger(self.read.checkpoint.ledger)
    }

    #[getter]
    fn logical_bytes(&self) -> u64 {
        self.read.checkpoint.logical_bytes()
    }

    #[getter]
    fn unique_bytes(&self) -> u64 {
        self.read.checkpoint.unique_bytes()
    }

    #[getter]
    fn wasted_bytes(&self) -> u64 {
        self.read.checkpoint.wasted_bytes()
    }

    #[getter]
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let count = self.read.checkpoint.tensors.len();
        PyTuple::new(py, (0..count).map(|index| PyTensor { read: self.read.clone(), index }))
    }

    #[getter]
    fn storages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let count = self.read.checkpoint.storages.len();
        PyTuple::new(py, (0..count).map(|index| PyStorage { read: self.read.clone(), index }))
    }

    #[getter]
    fn allowed_imports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.read.checkpoint.imports.allowed)
    }

    #[getter]
    fn flagged_imports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.read.checkpoint.imports.flagged)
    }

    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.read.checkpoint.warnings)
    }

    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metadata = PyDict::new(py);
        for (key, value) in &self.read.checkpoint.metadata {
            metadata.set_item(key, value)?;
        }
        Ok(metadata)
    }

    #[getter]
    fn members<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let members = PyDict::new(py);
        for member in &self.read.checkpoint.members {
            members.set_item(&member.name, member.bytes)?;
        }
        Ok(members)
    }

    fn member<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        limit: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.read.checkpoint.member(name, limit))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn open_member(&self, py: Python<'_>, name: &str, limit: u64) -> PyResult<Self> {
        let caller = Caller::new(None, None);
        let checkpoint = &self.read.checkpoint;
        Ok(Self::new(caller.run(py, |progress| checkpoint.open_member(name, limit, progress))?))
    }

    #[getter]
    fn value_bytes(&self) -> u64 {
        self.read.sizes().parts
    }

    #[getter]
    fn root(&self) -> PyValue {
        PyValue { read: self.read.clone(), value: self.read.tree().root }
    }

    #[pyo3(signature = (index, *, limit=64))]
    fn elements<'py>(
        &self,
        py: Python<'py>,
        index: usize,
        limit: u64,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.check(index)?;
        let elements = said(self.read.checkpoint.elements(index, limit))??;
        let elements = elements.into_iter().map(|number| match number {
            Number::Bool(value) => value.into_bound_py_any(py),
            Number::Int(value) => value.into_bound_py_any(py),
            Number::Uint(value) => value.into_bound_py_any(py),
            Number::Float(value) => value.into_bound_py_any(py),
        });
        PyTuple::new(py, elements.collect::<PyResult<Vec<_>>>()?)
    }

    #[pyo3(signature = (index, *, bins=64, progress=None, cancel=None))]
    fn stats(
        &self,
        py: Python<'_>,
        index: usize,
        bins: usize,
        progress: Option<Py<PyAny>>,
        cancel: Option<Py<PyAny>>,
    ) -> PyResult<PyStats> {
        self.check(index)?;
        let caller = Caller::new(progress, cancel);
        let stats = caller
            .run(py, |progress| said(self.read.checkpoint.measure(index, bins, progress)))??;
        Ok(PyStats(stats))
    }

    #[pyo3(signature = (index, *, spectrum=true, progress=None, cancel=None))]
    fn quality(
        &self,
        py: Python<'_>,
        index: usize,
        spectrum: bool,
        progress: Option<Py<PyAny>>,
        cancel: Option<Py<PyAny>>,
    ) -> PyResult<PyQuality> {
        self.check(index)?;
        let caller = Caller::new(progress, cancel);
        let quality = caller
            .run(py, |progress| said(self.read.checkpoint.quality(index, spectrum, progress)))??;
        Ok(PyQuality(quality))
    }

    #[pyo3(signature = (index, other, other_index, *, progress=None, cancel=None))]
    fn difference(
        &self,
        py: Python<'_>,
        index: usize,
        other: &Self,
        other_index: usize,
        progress: Option<Py<PyAny>>,
        cancel: Option<Py<PyAny>>,
    ) -> PyResult<PyDifference> {
        self.check(index)?;
        other.check(other_index)?;
        let caller = Caller::new(progress, cancel);
        let difference = caller.run(py, |progress| {
            let other = &other.read.checkpoint;
            said(self.read.checkpoint.compare(index, other, other_index, progress))
        })??;
        Ok(PyDifference(difference))
    }
}

impl PyCheckpoint {
    fn new(checkpoint: Checkpoint) -> Self {
        Self { read: Arc::new(Read { checkpoint, sizes: OnceLock::new() }) }
    }

    fn check(&self, index: usize) -> PyResult<()> {
        let count = self.read.checkpoint.tensors.len();
        if index < count {
            return Ok(());
        }
        let reason = format!("there is no tensor {index}; there are {count}");
        Err(pyo3::exceptions::PyIndexError::new_err(reason))
    }
}

/// What cannot be measured is not the caller's mistake.
#[allow(clippy::unnecessary_wraps)] // The caller of this may be cancelled, which is the outer result.
fn said<T>(result: crate::error::Result<T>) -> crate::error::Result<PyResult<T>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Error::Argument { reason }) => Ok(Err(SnapshotError::new_err(reason))),
        Err(error) => Err(error),
    }
}

/// The bytes of the files, by what they are for.
#[pyclass(frozen, eq, hash, name = "Ledger", module = "snapviewer")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyLedger(Ledger);

derefs!(PyLedger, |this| -> Ledger { &this.0 });

getters! {
    PyLedger { tensors: u64, unreferenced: u64, pickle: u64, padding: u64, archive: u64 }

    fn __repr__(&self) -> String {
        let Ledger { tensors, unreferenced, pickle, padding, archive } = self.0;
        format!(
            "Ledger(tensors={tensors}, unreferenced={unreferenced}, pickle={pickle}, \
            padding={padding}, archive={archive})"
        )
    }
}
