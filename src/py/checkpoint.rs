//! A checkpoint as Python sees it: frozen records that share one reading of the file.

#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::calls::{Caller, SnapshotError};
use crate::checkpoint::describe::{self, Sizes};
use crate::checkpoint::open::Checkpoint;
use crate::checkpoint::preview::preview;
use crate::checkpoint::{Ledger, Storage, Tensor, Tree, View};
use crate::error::Error;
use crate::pickle::{Handle, Value};
use crate::stats::{Difference, Stats};

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
    let checkpoint = caller.run(py, |progress| Checkpoint::open(&path, progress))?;
    Ok(PyCheckpoint { read: Arc::new(Read { checkpoint, sizes: OnceLock::new() }) })
}

/// A checkpoint, and what is worked out when somebody asks.
struct Read {
    checkpoint: Checkpoint,
    sizes: OnceLock<Sizes>,
}

impl Read {
    fn tree(&self) -> &Tree {
        &self.checkpoint.trees[self.checkpoint.root_tree]
    }

    fn sizes(&self) -> &Sizes {
        self.sizes.get_or_init(|| self.checkpoint.sizes())
    }

    fn file_name(&self, file: u32) -> Option<String> {
        let path = self.checkpoint.files[file as usize].path();
        (file > 0).then(|| path.file_name().unwrap_or_default().to_string_lossy().into_owned())
    }

    fn key(&self, view: &View) -> &str {
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
    fn value_bytes(&self) -> u64 {
        self.read.sizes().parts
    }

    #[getter]
    fn root(&self) -> PyValue {
        PyValue { read: self.read.clone(), value: self.read.tree().root }
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

#[pymethods]
impl PyLedger {
    #[getter]
    fn tensors(&self) -> u64 {
        self.0.tensors
    }

    #[getter]
    fn unreferenced(&self) -> u64 {
        self.0.unreferenced
    }

    #[getter]
    fn pickle(&self) -> u64 {
        self.0.pickle
    }

    #[getter]
    fn padding(&self) -> u64 {
        self.0.padding
    }

    #[getter]
    fn archive(&self) -> u64 {
        self.0.archive
    }

    fn __repr__(&self) -> String {
        let Ledger { tensors, unreferenced, pickle, padding, archive } = self.0;
        format!(
            "Ledger(tensors={tensors}, unreferenced={unreferenced}, pickle={pickle}, \
            padding={padding}, archive={archive})"
        )
    }
}

/// A tensor, or something like one.
#[pyclass(frozen, name = "Tensor", module = "snapviewer")]
pub(super) struct PyTensor {
    read: Arc<Read>,
    index: usize,
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

#[pymethods]
impl PyTensor {
    #[getter]
    fn name(&self) -> &str {
        &self.tensor().name
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.tensor().kind
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
    fn requires_grad(&self) -> bool {
        self.tensor().requires_grad
    }

    #[getter]
    fn logical_bytes(&self) -> u64 {
        self.tensor().logical_bytes
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
    read: Arc<Read>,
    index: usize,
    view: usize,
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
    read: Arc<Read>,
    index: usize,
}

impl PyStorage {
    fn storage(&self) -> &Storage {
        &self.read.checkpoint.storages[self.index]
    }
}

#[pymethods]
impl PyStorage {
    #[getter]
    fn key(&self) -> &str {
        &self.storage().key
    }

    #[getter]
    fn file(&self) -> Option<String> {
        self.read.file_name(self.storage().file)
    }

    #[getter]
    fn start(&self) -> u64 {
        self.storage().start
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.storage().bytes
    }

    #[getter]
    fn packed_bytes(&self) -> u64 {
        self.storage().packed_bytes
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

/// A value of the inert tree.
#[pyclass(frozen, name = "Value", module = "snapviewer")]
pub(super) struct PyValue {
    read: Arc<Read>,
    value: Value,
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

/// Statistics of a tensor.
#[pyclass(frozen, name = "Stats", module = "snapviewer")]
pub(super) struct PyStats(Stats);

#[pymethods]
impl PyStats {
    #[getter]
    fn count(&self) -> u64 {
        self.0.count
    }

    #[getter]
    fn mean(&self) -> Option<f64> {
        self.0.mean
    }

    #[getter]
    fn std(&self) -> Option<f64> {
        self.0.std
    }

    #[getter]
    fn min(&self) -> Option<f64> {
        self.0.min
    }

    #[getter]
    fn max(&self) -> Option<f64> {
        self.0.max
    }

    #[getter]
    fn zeros(&self) -> u64 {
        self.0.zeros
    }

    #[getter]
    fn nan(&self) -> u64 {
        self.0.nan
    }

    #[getter]
    fn inf(&self) -> u64 {
        self.0.inf
    }

    #[getter]
    fn denormal(&self) -> u64 {
        self.0.denormal
    }

    #[getter]
    fn l1(&self) -> f64 {
        self.0.l1
    }

    #[getter]
    fn l2(&self) -> f64 {
        self.0.l2
    }

    #[getter]
    fn skewness(&self) -> Option<f64> {
        self.0.skewness
    }

    #[getter]
    fn kurtosis(&self) -> Option<f64> {
        self.0.kurtosis
    }

    #[getter]
    fn entropy(&self) -> Option<f64> {
        self.0.entropy
    }

    #[getter]
    fn histogram<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.histogram)
    }

    #[getter]
    fn edges(&self) -> Option<(f64, f64)> {
        self.0.edges
    }
}

/// How two tensors differ.
#[pyclass(frozen, name = "Difference", module = "snapviewer")]
pub(super) struct PyDifference(Difference);

#[pymethods]
impl PyDifference {
    #[getter]
    fn is_equal(&self) -> bool {
        self.0.is_equal
    }

    #[getter]
    fn changed(&self) -> u64 {
        self.0.changed
    }

    #[getter]
    fn count(&self) -> u64 {
        self.0.count
    }

    #[getter]
    fn to_nonfinite(&self) -> u64 {
        self.0.to_nonfinite
    }

    #[getter(from_nonfinite)]
    fn no_longer_nonfinite(&self) -> u64 {
        self.0.from_nonfinite
    }

    #[getter]
    fn max_abs(&self) -> Option<f64> {
        self.0.max_abs
    }

    #[getter]
    fn mean_abs(&self) -> Option<f64> {
        self.0.mean_abs
    }

    #[getter]
    fn relative_l2(&self) -> Option<f64> {
        self.0.relative_l2
    }
}
