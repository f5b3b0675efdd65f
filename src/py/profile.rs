//! Traces of PyTorch's profiler as Python sees them.

#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.

use std::path::PathBuf;

use numpy::PyArray1;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use super::calls;
use super::columns::lend;
use super::getters::{derefs, getters};
use crate::profile::{self, Profile};

/// Annotations, operators and kernels that the profiler recorded.
#[pyclass(frozen, name = "Profile", module = "snapviewer")]
pub(super) struct PyProfile(Profile);

derefs!(PyProfile, |this| -> Profile { &this.0 });

/// Reads a trace of PyTorch's profiler: JSON, or gzip of it.
#[pyfunction]
#[pyo3(signature = (path, *, progress=None, cancel=None))]
pub(super) fn read_profile(
    py: Python<'_>,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
    cancel: Option<Py<PyAny>>,
) -> PyResult<PyProfile> {
    calls::run(py, progress, cancel, |progress| profile::read(&path, progress)).map(PyProfile)
}

getters! {
    PyProfile |this| {
        /// How many events were left out.
        skipped: u64,
        /// How many different names there are.
        names: usize = this.0.names.len(),
    }

    /// The text of a name.
    fn text(&self, name: u32) -> PyResult<&str> {
        if name as usize >= self.0.names.len() {
            return Err(PyIndexError::new_err(format!("name {name} of {}", self.0.names.len())));
        }
        Ok(self.0.names.get(name))
    }

    /// The name of each event.
    #[getter]
    fn name<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<u32>> {
        lend(slf, slf.get().0.name.as_slice().into())
    }

    /// The kind of each event: 0 is an annotation, 1 an operator, 2 a kernel.
    #[getter]
    fn kind<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<u8>> {
        lend(slf, slf.get().0.kind.as_slice().into())
    }

    /// When each starts, in nanoseconds of Unix time.
    #[getter]
    fn start_ns<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<i64>> {
        lend(slf, slf.get().0.start_ns.as_slice().into())
    }

    /// How long each takes, in nanoseconds.
    #[getter]
    fn duration_ns<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<i64>> {
        lend(slf, slf.get().0.duration_ns.as_slice().into())
    }

    /// The thread or the stream of each, a small number.
    #[getter]
    fn track<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<u32>> {
        lend(slf, slf.get().0.track.as_slice().into())
    }

    fn __len__(&self) -> usize {
        self.0.name.len()
    }

    fn __repr__(&self) -> String {
        format!("Profile(events={}, skipped={})", self.0.name.len(), self.0.skipped)
    }
}
