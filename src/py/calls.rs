//! The module's functions: long calls without the GIL, with progress, and open to cancellation.

#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.

use std::borrow::Borrow;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyException, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyMapping, PyMappingMethods, PyTuple};

use super::recording::PySnapshot;
use crate::error::Error;
use crate::progress::Progress;
use crate::recording::{self, Recording};
use crate::store::{Cell, Chosen, Query, Table};

pyo3::create_exception!(
    snapviewer,
    SnapshotError,
    PyException,
    "A file could not be read, written or queried; the message is one sentence that says why."
);
pyo3::create_exception!(
    snapviewer,
    CancelledError,
    SnapshotError,
    "The work was cancelled by its caller."
);

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match &error {
            // Keep the kind: Python raises FileNotFoundError, PermissionError, ….
            Error::Io { source, .. } => io::Error::new(source.kind(), error.to_string()).into(),
            Error::Exists { .. } => {
                io::Error::new(io::ErrorKind::AlreadyExists, error.to_string()).into()
            }
            Error::Argument { .. } | Error::Filter { .. } => {
                PyValueError::new_err(error.to_string())
            }
            Error::Screen { .. } => PyOSError::new_err(error.to_string()),
            Error::Cancelled => CancelledError::new_err(error.to_string()),
            _ => SnapshotError::new_err(error.to_string()),
        }
    }
}

/// The callbacks for progress and cancellation.
struct Caller {
    progress: Option<Py<PyAny>>,
    cancel: Option<Py<PyAny>>,
    /// What the caller's own code raised meanwhile.
    raised: Mutex<Option<PyErr>>,
}

impl Caller {
    fn new(progress: Option<Py<PyAny>>, cancel: Option<Py<PyAny>>) -> Self {
        Self { progress, cancel, raised: Mutex::new(None) }
    }

    /// Reports progress; returns whether to go on.
    fn hears(&self, done: u64, total: u64) -> bool {
        let result = Python::attach(|py| {
            py.check_signals()?;
            if let Some(progress) = &self.progress {
                progress.call1(py, (done, total))?;
            }
            let Some(cancel) = &self.cancel else { return Ok(true) };
            Ok(!cancel.call_method0(py, "is_set")?.is_truthy(py)?)
        });
        result.unwrap_or_else(|error| {
            *self.raised.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
            false
        })
    }

    /// Runs the work without the GIL.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Progress<'_>) -> crate::error::Result<T> + Send,
    ) -> PyResult<T> {
        let result = py.detach(|| work(&Progress::new(&|done, total| self.hears(done, total))));
        let raised = self.raised.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        match raised {
            Some(error) => Err(error),
            None => Ok(result?),
        }
    }
}

/// Runs the work without the GIL; reports progress to one callback, and asks the other to cancel.
pub(super) fn run<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    cancel: Option<Py<PyAny>>,
    work: impl FnOnce(&Progress<'_>) -> crate::error::Result<T> + Send,
) -> PyResult<T> {
    Caller::new(progress, cancel).run(py, work)
}

/// Opens a snapshot (pickle, JSON, gzip of these, `memory_viz` page) or a bundle.
#[pyfunction]
#[pyo3(signature = (path, *, rules=Vec::new(), progress=None, cancel=None))]
pub(super) fn load(
    py: Python<'_>,
    path: PathBuf,
    rules: Vec<(String, String)>,
    progress: Option<Py<PyAny>>,
    cancel: Option<Py<PyAny>>,
) -> PyResult<PySnapshot> {
    let recording =
        run(py, progress, cancel, |progress| Recording::open(&path, progress)?.with_rules(&rules))?;
    PySnapshot::new(py, recording)
}

/// Whether a path is a converted snapshot: a directory, or a zip by its first bytes.
#[pyfunction]
pub(super) fn is_bundle(path: PathBuf) -> PyResult<bool> {
    Ok(recording::is_bundle(&path)?)
}

/// The bytes of the null device, a shared library; None where it cannot be used.
#[pyfunction]
pub(super) fn null_device() -> Option<&'static [u8]> {
    crate::null_device::LIBRARY
}

/// Converts a snapshot into a bundle: a zip if the output's name ends so, else a directory.
#[pyfunction]
#[pyo3(signature = (input, output, *, device=None, force=false, progress=None, cancel=None))]
pub(super) fn convert(
    py: Python<'_>,
    input: PathBuf,
    output: PathBuf,
    device: Option<i32>,
    force: bool,
    progress: Option<Py<PyAny>>,
    cancel: Option<Py<PyAny>>,
) -> PyResult<()> {
    run(py, progress, cancel, |progress| {
        recording::convert(&input, &output, device, force, progress)
    })
}

/// Runs a read-only SQL query on a bundle. Returns column names, rows, and whether rows were left off.
#[pyfunction]
#[pyo3(signature = (path, sql, *, max_rows=1000, max_seconds=30.0, cancel=None, tables=None))]
pub(super) fn query<'py>(
    py: Python<'py>,
    path: PathBuf,
    sql: &str,
    max_rows: usize,
    max_seconds: f64,
    cancel: Option<Py<PyAny>>,
    tables: Option<&Bound<'py, PyMapping>>,
) -> PyResult<Answer<'py>> {
    let query = question(sql, max_rows, max_seconds, tables)?;
    ask(py, cancel, &query, |progress| Recording::open(&path, progress))
}

/// Column names, rows, and whether rows were left off.
pub(super) type Answer<'py> = (Vec<String>, Bound<'py, PyList>, bool);

/// A user's query of a bundle.
pub(super) fn question<'a>(
    sql: &'a str,
    rows: usize,
    max_seconds: f64,
    tables: Option<&Bound<'_, PyMapping>>,
) -> PyResult<Query<'a>> {
    let time = Duration::try_from_secs_f64(max_seconds).unwrap_or(Duration::MAX);
    let mut query = Query { rows, time, ..Query::new(sql) };
    for item in tables.map(PyMappingMethods::items).transpose()?.iter().flatten() {
        let (name, list) = item.extract::<(String, Bound<'_, PyAny>)>()?;
        let list = list.extract::<PyReadonlyArray1<'_, i64>>().map_err(|_| {
            PyTypeError::new_err(format!("the table {name} takes an array of int64: idx"))
        })?;
        query.tables.push(Chosen::new(&name, list.as_array().to_vec())?);
    }
    Ok(query)
}

/// Runs a query on a recording, which may have to be opened first.
pub(super) fn ask<'py, R: Borrow<Recording>>(
    py: Python<'py>,
    cancel: Option<Py<PyAny>>,
    query: &Query<'_>,
    open: impl FnOnce(&Progress<'_>) -> crate::error::Result<R> + Send,
) -> PyResult<Answer<'py>> {
    let caller = Caller::new(None, cancel);
    let table: Table = caller.run(py, |progress| {
        let recording = open(progress)?;
        recording.borrow().query(query, &|| !caller.hears(0, 0))
    })?;
    let rows = table.rows.iter().map(|row| {
        let cells = row.iter().map(|cell| cell_to_python(py, cell));
        PyTuple::new(py, cells.collect::<PyResult<Vec<_>>>()?)
    });
    let rows = PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)?;
    Ok((table.columns, rows, table.is_truncated))
}

fn cell_to_python<'py>(py: Python<'py>, cell: &Cell) -> PyResult<Bound<'py, PyAny>> {
    Ok(match cell {
        Cell::Null => py.None().into_bound(py),
        Cell::Int(value) => value.into_pyobject(py)?.into_any(),
        Cell::Real(value) => value.into_pyobject(py)?.into_any(),
        Cell::Text(value) => value.into_pyobject(py)?.into_any(),
        Cell::Blob(value) => pyo3::types::PyBytes::new(py, value).into_any(),
    })
}
