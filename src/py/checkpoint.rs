//! A checkpoint as Python sees it: frozen records that share one reading of the file.

#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyTuple};

use super::calls::{SnapshotError, run};
use super::getters::{Tuple, derefs, getters};
use super::numbers::{PyDifference, PyQuality, PyStats};
use super::tensors::{PyStorage, PyTensor};
use super::values::PyValue;
use crate::checkpoint::describe::Sizes;
use crate::checkpoint::files::CheckpointFile;
use crate::checkpoint::open::Checkpoint;
use crate::checkpoint::preview::repr;
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
    run(py, progress, cancel, |progress| Checkpoint::open(&path, progress)).map(PyCheckpoint::new)
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

derefs!(PyCheckpoint, |this| -> Checkpoint { &this.read.checkpoint });

getters! {
    PyCheckpoint |this| {
        path: String = text(&this.files[0]),
        format: &'static str,
        files: Tuple<Vec<String>> = Tuple(this.files.iter().map(text).collect()),
        file_bytes: u64 = (**this).file_bytes(),
        ledger: PyLedger = PyLedger(this.ledger),
        logical_bytes: u64 = (**this).logical_bytes(),
        unique_bytes: u64 = (**this).unique_bytes(),
        wasted_bytes: u64 = (**this).wasted_bytes(),
        tensors: Tuple<Vec<PyTensor>> =
            this.each(this.tensors.len(), |read, index| PyTensor { read, index }),
        storages: Tuple<Vec<PyStorage>> =
            this.each(this.storages.len(), |read, index| PyStorage { read, index }),
        allowed_imports: Tuple<&BTreeSet<String>> = Tuple(&this.imports.allowed),
        flagged_imports: Tuple<&BTreeSet<String>> = Tuple(&this.imports.flagged),
        warnings: Tuple<&[String]> = Tuple(&this.warnings),
        value_bytes: u64 = this.read.sizes().parts,
        root: PyValue = PyValue { read: this.read.clone(), value: this.read.tree().root },
    }

    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.metadata.iter().map(|(key, value)| (key, value)).into_py_dict(py)
    }

    #[getter]
    fn members<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.members.iter().map(|member| (&member.name, member.bytes)).into_py_dict(py)
    }

    fn member<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        limit: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| (**self).member(name, limit))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn open_member(&self, py: Python<'_>, name: &str, limit: u64) -> PyResult<Self> {
        let checkpoint = &self.read.checkpoint;
        run(py, None, None, |progress| checkpoint.open_member(name, limit, progress)).map(Self::new)
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
        let checkpoint = &self.read.checkpoint;
        run(py, progress, cancel, |progress| said(checkpoint.measure(index, bins, progress)))?
            .map(PyStats)
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
        let checkpoint = &self.read.checkpoint;
        run(py, progress, cancel, |progress| said(checkpoint.quality(index, spectrum, progress)))?
            .map(PyQuality)
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
        let (one, other) = (&self.read.checkpoint, &other.read.checkpoint);
        run(py, progress, cancel, |progress| {
            said(one.compare(index, other, other_index, progress))
        })?
        .map(PyDifference)
    }

    fn __repr__(&self) -> String {
        let (path, format, tensors) = (repr(&self.path()), repr(self.format), self.tensors.len());
        format!("Checkpoint(path={path}, format={format}, tensors={tensors})")
    }
}

impl PyCheckpoint {
    fn new(checkpoint: Checkpoint) -> Self {
        Self { read: Arc::new(Read { checkpoint, sizes: OnceLock::new() }) }
    }

    /// One object for each index.
    fn each<T>(&self, count: usize, make: impl Fn(Arc<Read>, usize) -> T) -> Tuple<Vec<T>> {
        Tuple((0..count).map(|index| make(self.read.clone(), index)).collect())
    }

    fn check(&self, index: usize) -> PyResult<()> {
        let count = self.tensors.len();
        if index < count {
            return Ok(());
        }
        let reason = format!("there is no tensor {index}; there are {count}");
        Err(pyo3::exceptions::PyIndexError::new_err(reason))
    }
}

fn text(file: &CheckpointFile) -> String {
    file.path().to_string_lossy().into_owned()
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
    PyLedger |this| { tensors: u64, unreferenced: u64, pickle: u64, padding: u64, archive: u64 }

    fn __repr__(&self) -> String {
        let Ledger { tensors, unreferenced, pickle, padding, archive } = self.0;
        format!(
            "Ledger(tensors={tensors}, unreferenced={unreferenced}, pickle={pickle}, \
            padding={padding}, archive={archive})"
        )
    }
}
