//! Snapshots and allocations as Python sees them: frozen views of the core's own data.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyTuple};

use super::calls::{self, Answer};
use super::columns::lend;
use super::device::PyDevice;
use super::getters::{Tuple, derefs, getters};
use super::json;
use crate::analysis::frames;
use crate::checkpoint::preview::repr;
use crate::recording::Recording;

/// One line of a call stack.
#[pyclass(frozen, eq, hash, get_all, name = "Frame", module = "snapviewer")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyFrame {
    /// The function.
    name: String,
    /// The file; "??" or empty in C++ frames.
    filename: String,
    /// The line; 0 in C++ frames.
    line: u64,
}

#[pymethods]
impl PyFrame {
    #[new]
    fn new(name: String, filename: String, line: u64) -> Self {
        Self { name, filename, line }
    }

    /// Whose code it is: "own", "library", "torch" or "other".
    #[getter]
    fn kind(&self) -> &'static str {
        frames::kind(&self.name, &self.filename)
    }

    /// How far it is from the user's own code; 0 is that.
    #[getter]
    fn rank(&self) -> u8 {
        frames::Rank::of(&self.name, &self.filename) as u8
    }

    /// A short text: `model.py:77 attention`, the node of a backward pass, or a C++ function.
    #[getter]
    fn text(&self) -> String {
        frames::short_text(&self.name, &self.filename, self.line)
    }

    fn __repr__(&self) -> String {
        let (name, filename) = (repr(&self.name), repr(&self.filename));
        format!("Frame(name={name}, filename={filename}, line={})", self.line)
    }

    fn __str__(&self) -> String {
        format!("{}:{}:{}", self.filename, self.line, self.name)
    }
}

/// An opened snapshot, or a bundle made of one.
#[pyclass(frozen, name = "Snapshot", module = "snapviewer")]
pub(super) struct PySnapshot {
    recording: Arc<Recording>,
    devices: Py<PyTuple>,
}

impl PySnapshot {
    pub(super) fn new(py: Python<'_>, recording: Recording) -> PyResult<Self> {
        let recording = Arc::new(recording);
        let devices = (0..recording.devices.len())
            .map(|which| Py::new(py, PyDevice::new(&recording, which)))
            .collect::<PyResult<Vec<_>>>()?;
        Ok(Self { recording, devices: PyTuple::new(py, devices)?.unbind() })
    }
}

derefs!(PySnapshot, |this| -> Recording { &this.recording });

getters! {
    PySnapshot |this| {
        /// What the file is: "pickle", "gzip json", "bundle of pickle", ….
        format: &str = &this.format,
        /// The devices, in order; pinned host memory, if recorded, is the last and has the index -1.
        devices: &Py<PyTuple> = &this.devices,
        /// What is odd about the file as a whole, in sentences.
        warnings: Tuple<&[String]> = Tuple(&this.warnings),
    }

    /// The frames of a stack, innermost first.
    fn frames<'py>(
        &self,
        py: Python<'py>,
        stack_id: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let id = match stack_id.extract::<u32>() {
            // No stack has a number that odd.
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => u32::MAX,
            id => id?,
        };
        let Some(frames) = py.detach(|| self.recording.frames(id))? else {
            let count = self.recording.stack_count();
            return Err(PyIndexError::new_err(format!("stack {stack_id} of {count}")));
        };
        let frames = frames
            .into_iter()
            .map(|f| Py::new(py, PyFrame { name: f.name, filename: f.filename, line: f.line }))
            .collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, frames)
    }

    /// Further top-level entries of the file, such as `predicted`.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let entries = PyDict::new(py);
        for (name, value) in py.detach(|| self.recording.metadata())? {
            entries.set_item(name, json::to_python(py, &value)?)?;
        }
        Ok(entries)
    }

    /// The marks that the program set, in the file's order: name, stage, device and Unix µs.
    #[getter]
    fn annotations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, py.detach(|| self.recording.annotations())?)
    }

    /// Runs a read-only SQL query on a bundle, which stays open for the next. Returns column names,
    /// rows, and whether rows were left off.
    #[pyo3(signature = (sql, *, max_rows=1000, max_seconds=30.0, cancel=None, tables=None))]
    fn query<'py>(
        &self,
        py: Python<'py>,
        sql: &str,
        max_rows: usize,
        max_seconds: f64,
        cancel: Option<Py<PyAny>>,
        tables: Option<&Bound<'py, PyMapping>>,
    ) -> PyResult<Answer<'py>> {
        let query = calls::question(sql, max_rows, max_seconds, tables)?;
        calls::ask(py, cancel, &query, |_| Ok(&*self.recording))
    }

    fn __repr__(&self) -> String {
        let (format, devices) = (repr(&self.recording.format), self.recording.devices.len());
        format!("Snapshot(format={format}, devices={devices})")
    }
}

/// Allocations in columns: read-only arrays over the core's own memory.
#[pyclass(frozen, name = "Allocations", module = "snapviewer")]
pub(super) struct PyAllocations {
    recording: Arc<Recording>,
    which: usize,
}

impl PyAllocations {
    pub(super) fn new(recording: &Arc<Recording>, which: usize) -> Self {
        Self { recording: Arc::clone(recording), which }
    }
}

macro_rules! columns {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty),+ $(,)?) => {
        #[pymethods]
        impl PyAllocations {
            $($(#[doc = $doc])+
            #[getter]
            fn $name<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<$type>> {
                let this = slf.get();
                lend(slf, this.recording.devices[this.which].allocations.$name.as_slice().into())
            })+

            fn __len__(&self) -> usize {
                self.recording.devices[self.which].allocations.len()
            }

            fn __repr__(&self) -> String {
                format!("Allocations(length={})", self.__len__())
            }
        }
    };
}

columns! {
    /// Requested bytes.
    size: u64,
    /// Addresses.
    address: u64,
    /// The streams they were made on.
    stream: i64,
    /// The stacks that made them: ids for `Snapshot.frames`; 0 if not recorded.
    stack: u32,
    /// The events that made them; -1 if alive before the recording.
    alloc_event: i64,
    /// The events that ended them; the number of events if never freed.
    free_event: i64,
    /// The events that asked for their end; -1 if none.
    free_requested: i64,
    /// The stacks that freed them; 2**32-1 if not recorded.
    free_stack: u32,
    /// Bit 0: the free was lost. Bit 1: no block at the end. Bit 2: not in the trace.
    flags: u8,
    /// Their memory pools: 1 + the place in `Device.pools`; 0 if not known.
    pool: u16,
    /// Their categories: 1 + the place in `CATEGORIES`; 0 if not known.
    category: u8,
}
