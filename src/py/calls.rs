//! The module's functions: long calls without the GIL, with progress, and open to cancellation.

#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.

use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use pyo3::exceptions::{PyException, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::recording::PySnapshot;
use crate::error::Error;
use crate::progress::Progress;
use crate::recording::{self, Recording};
use crate::store::{Cell, Limits, Table};

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

/// Who hears of progress and who may cancel.
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

    /// Tells how far it is; returns whether to go on.
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

/// Opens a snapshot (pickle, JSON, gzip of these, `memory_viz` page) or a bundle.
#[pyfunction]
#[pyo3(signature = (path, *, progress=None, cancel=None))]
pub(super) fn load(
    py: Python<'_>,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
    cancel: Option<Py<PyAny>>,
) -> PyResult<PySnapshot> {
    let caller = Caller::new(progress, cancel);
    let recording = caller.run(py, |progress| Recording::open(&path, progress))?;
    PySnapshot::new(py, recording)
}

/// Whether a path is a converted snapshot: a directory, or a zip by its first bytes.
#[pyfunction]
pub(super) fn is_bundle(path: PathBuf) -> PyResult<bool> {
    Ok(recording::is_bundle(&path)?)
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
    let caller = Caller::new(progress, cancel);
    caller.run(py, |progress| recording::convert(&input, &output, device, force, progress))
}

/// Runs a read-only SQL query on a bundle. Returns column names, rows, and whether rows were left off.
#[pyfunction]
#[pyo3(signature = (path, sql, *, max_rows=1000, max_seconds=30.0, cancel=None))]
pub(super) fn query(
    py: Python<'_>,
    path: PathBuf,
    sql: String,
    max_rows: usize,
    max_seconds: f64,
    cancel: Option<Py<PyAny>>,
) -> PyResult<(Vec<String>, Bound<'_, PyList>, bool)> {
    let caller = Caller::new(None, cancel);
    let time = Duration::try_from_secs_f64(max_seconds).unwrap_or(Duration::MAX);
    let limits = Limits { rows: max_rows, time };
    let table: Table = caller.run(py, |progress| {
        let recording = Recording::open(&path, progress)?;
        let stop = || !caller.hears(0, 0);
        recording
            .with_store(|store| store.query(&sql, &limits, &stop))
            .map_err(|e| e.in_file(&path))
    })?;
    let rows = table.rows.iter().map(|row| {
        let cells =
            row.iter().map(|cell| cell_to_python(py, cell)).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, cells)
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
