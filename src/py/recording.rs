//! Snapshots, devices and allocations as Python sees them: frozen, and the same that Rust has.

use std::sync::Arc;

use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::columns::lend;
use super::timeline::{self, PyClock, PyTimeline};
use crate::lifetimes::Lifetimes;
use crate::raster::{ColorBy, Theme};
use crate::recording::Recording;
use crate::timeline::Order;

/// The least, the most, and the colours between them.
type Scale<'py> = (u64, u64, Bound<'py, PyArray2<u8>>);

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
    fn __repr__(&self) -> String {
        format!("Frame(name={:?}, filename={:?}, line={})", self.name, self.filename, self.line)
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
            .map(|which| Py::new(py, PyDevice { recording: Arc::clone(&recording), which }))
            .collect::<PyResult<Vec<_>>>()?;
        Ok(Self { recording, devices: PyTuple::new(py, devices)?.unbind() })
    }
}

#[pymethods]
impl PySnapshot {
    /// What the file is: "pickle", "gzip json", "bundle of pickle", ….
    #[getter]
    fn format(&self) -> &str {
        &self.recording.format
    }

    /// The devices, in order; pinned host memory, if recorded, is the last and has the index -1.
    #[getter]
    fn devices(&self, py: Python<'_>) -> Py<PyTuple> {
        self.devices.clone_ref(py)
    }

    /// What is odd about the file as a whole, in sentences.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.recording.warnings)
    }

    /// How many stacks there are: ids for `frames` are below that.
    #[getter]
    fn stack_count(&self) -> usize {
        self.recording.stack_count()
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

    fn __repr__(&self) -> String {
        format!("<Snapshot {}, {} devices>", self.recording.format, self.recording.devices.len())
    }
}

/// What is known of one device.
#[pyclass(frozen, name = "Device", module = "snapviewer")]
pub(super) struct PyDevice {
    recording: Arc<Recording>,
    which: usize,
}

impl PyDevice {
    fn lifetimes(&self) -> &Lifetimes {
        &self.recording.devices[self.which]
    }
}

#[pymethods]
impl PyDevice {
    /// The device's ordinal; -1 for pinned host memory.
    #[getter]
    fn index(&self) -> i32 {
        self.lifetimes().device
    }

    /// How many events its trace has.
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let count = self.lifetimes().totals.len();
        py.import("snapviewer.counts")?.getattr("EventCount")?.call1((count,))
    }

    /// Its allocations, in stacking order.
    #[getter]
    fn allocations(&self) -> PyAllocations {
        PyAllocations { recording: Arc::clone(&self.recording), which: self.which }
    }

    /// The memory pools that `Allocations.pool` counts: (0, 0), the default one, first.
    #[getter]
    fn pools<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.lifetimes().pools)
    }

    /// Live requested bytes after each event.
    #[getter]
    fn totals<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<u64>> {
        lend(slf, slf.get().lifetimes().totals.as_slice().into())
    }

    /// Live requested bytes before the first event.
    #[getter]
    fn initial_bytes(&self) -> u64 {
        self.lifetimes().initial_bytes
    }

    /// The most that was live after any event; if there are no events, what is live.
    #[getter]
    fn peak_bytes(&self) -> u64 {
        self.lifetimes().peak_bytes
    }

    /// The first event with that much; -1 if there are no events.
    #[getter]
    fn peak_event(&self) -> i64 {
        self.lifetimes().peak_event
    }

    /// Live requested bytes after the last event.
    #[getter]
    fn final_bytes(&self) -> u64 {
        self.lifetimes().final_bytes()
    }

    /// Bytes got from the device before the first event.
    #[getter]
    fn reserved_initial_bytes(&self) -> u64 {
        self.lifetimes().reserved_initial_bytes
    }

    /// The most bytes that were got from the device.
    #[getter]
    fn reserved_peak_bytes(&self) -> u64 {
        self.lifetimes().reserved_peak_bytes
    }

    /// How often an allocation failed.
    #[getter]
    fn oom_events(&self) -> usize {
        self.lifetimes().oom_events.len()
    }

    /// The events at which an allocation failed.
    #[getter]
    fn oom_at<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.lifetimes().oom_events)
    }

    /// Whether what is live at the end is what the segments hold, to the byte.
    #[getter]
    fn reconciles(&self) -> bool {
        self.lifetimes().check.reconciles()
    }

    /// Requested bytes of the blocks that the segments hold at the end.
    #[getter]
    fn expected_final_bytes(&self) -> u64 {
        self.lifetimes().check.expected_final_bytes
    }

    /// What is off, in sentences.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.lifetimes().check.sentences())
    }

    /// Stacks the allocations in an order: all, or those that `where` describes.
    #[pyo3(signature = (order="allocation", r#where=None))]
    fn timeline(
        &self,
        py: Python<'_>,
        order: &str,
        r#where: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTimeline> {
        let order = timeline::choice(&Order::NAMES, "order", order)?;
        let shown = timeline::Which::new(r#where, self.lifetimes().allocations.len())?;
        py.detach(|| {
            let filter = shown.mask(&self.recording, self.which)?;
            PyTimeline::new(&self.recording, self.which, order, filter)
        })
    }

    /// The colour of each allocation: allocations × (red, green, blue).
    #[pyo3(signature = (color="stack", theme="light"))]
    fn colors<'py>(
        &self,
        py: Python<'py>,
        color: &str,
        theme: &str,
    ) -> PyResult<Bound<'py, PyArray2<u8>>> {
        let by = timeline::choice(&ColorBy::NAMES, "color", color)?;
        let theme = timeline::choice(&Theme::NAMES, "theme", theme)?;
        let colors = timeline::colors(&self.recording, self.which, by, theme)?;
        timeline::color_array(py, &colors)
    }

    /// What the colours of "size" and "age" mean: the least, the most, and the colours from one to
    /// the other, by the logarithm. None for other colours.
    #[pyo3(signature = (color, theme="light"))]
    fn scale<'py>(
        &self,
        py: Python<'py>,
        color: &str,
        theme: &str,
    ) -> PyResult<Option<Scale<'py>>> {
        let by = timeline::choice(&ColorBy::NAMES, "color", color)?;
        let theme = timeline::choice(&Theme::NAMES, "theme", theme)?;
        let Some((least, most)) = by.extent(self.lifetimes()) else { return Ok(None) };
        Ok(Some((least, most, timeline::color_array(py, &theme.scale())?)))
    }

    /// When the events happened; None if the file has no times.
    #[pyo3(signature = (compress=false))]
    fn clock(&self, py: Python<'_>, compress: bool) -> Option<PyClock> {
        py.detach(|| PyClock::new(&self.recording, self.which, compress))
    }

    fn __repr__(&self) -> String {
        let lifetimes = self.lifetimes();
        let (events, allocations) = (lifetimes.totals.len(), lifetimes.allocations.len());
        format!("<Device {}: {events} events, {allocations} allocations>", lifetimes.device)
    }
}

/// Allocations in columns: read-only arrays over the core's own memory.
#[pyclass(frozen, name = "Allocations", module = "snapviewer")]
pub(super) struct PyAllocations {
    recording: Arc<Recording>,
    which: usize,
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
                format!("<{} allocations>", self.__len__())
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
    /// Who made them: ids for `Snapshot.frames`; 0 if not recorded.
    stack: u32,
    /// The events that made them; -1 if alive before the recording.
    alloc_event: i64,
    /// The events that ended them; the number of events if never freed.
    free_event: i64,
    /// The events that asked for their end; -1 if none.
    free_requested: i64,
    /// Who freed them; 2**32-1 if not recorded.
    free_stack: u32,
    /// Bit 0: the free was lost. Bit 1: no block at the end. Bit 2: known from the segments only.
    flags: u8,
    /// Their memory pools: 1 + the place in `Device.pools`; 0 if not known.
    pool: u16,
    /// What they are for: 1 + the place in `CATEGORIES`; 0 if not known.
    category: u8,
}
