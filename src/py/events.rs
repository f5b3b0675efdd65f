//! One event of a trace as Python sees it.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::snapshot::event_text::EventText;

/// One event of a trace, in words.
#[pyclass(frozen, eq, hash, name = "Event", module = "snapviewer")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyEvent {
    pub index: usize,
    pub text: EventText,
}

#[pymethods]
impl PyEvent {
    /// Its place in the trace.
    #[getter]
    fn index(&self) -> usize {
        self.index
    }

    /// What it does: "alloc", "snapshot", …, as the file calls it.
    #[getter]
    fn action(&self) -> &str {
        &self.text.action
    }

    /// The address; 0 if there is none.
    #[getter]
    fn address(&self) -> u64 {
        self.text.address
    }

    /// Bytes: as requested for allocations and frees, physical for segments.
    #[getter]
    fn size(&self) -> u64 {
        self.text.size
    }

    /// The stream.
    #[getter]
    fn stream(&self) -> i64 {
        self.text.stream
    }

    /// When, in Unix microseconds; None if not recorded.
    #[getter]
    fn time_us(&self) -> Option<u64> {
        self.text.time_us
    }

    /// Who did it: an id for `Snapshot.frames`; 0 if not recorded.
    #[getter]
    fn stack(&self) -> u32 {
        self.text.stack
    }

    /// The compile id; "N/A" outside of torch.compile.
    #[getter]
    fn compile_context(&self) -> Option<&str> {
        self.text.extras.compile_context.as_deref()
    }

    /// What the user said of this stretch of the program.
    #[getter]
    fn user_metadata(&self) -> Option<&str> {
        self.text.extras.user_metadata.as_deref()
    }

    /// What the allocator says of its own event.
    #[getter]
    fn internal_metadata(&self) -> Option<&str> {
        self.text.extras.internal_metadata.as_deref()
    }

    /// What the profiler says it is for.
    #[getter]
    fn category(&self) -> Option<&str> {
        self.text.extras.category.as_deref()
    }

    /// The memory pool, if the event tells it.
    #[getter]
    fn pool(&self) -> Option<(i64, i64)> {
        self.text.extras.pool
    }

    /// The forward stack of a backward allocation, a line each.
    #[getter]
    fn forward_frames<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.text.extras.forward_frames)
    }

    /// Of an OOM, instead of an address: the bytes that were free on the device.
    #[getter]
    fn device_free(&self) -> Option<u64> {
        self.text.device_free
    }

    fn __repr__(&self) -> String {
        let EventText { action, address, size, .. } = &self.text;
        format!("<Event {}: {action} of {size} bytes at {address:#x}>", self.index)
    }
}
