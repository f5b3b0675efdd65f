//! One event of a trace as Python sees it.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::getters::{derefs, getters};
use crate::snapshot::event_text::EventText;

/// One event of a trace, decoded.
#[pyclass(frozen, eq, hash, name = "Event", module = "snapviewer")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyEvent {
    pub index: usize,
    pub text: EventText,
}

derefs!(PyEvent, |this| -> EventText { &this.text });

getters! {
    PyEvent {
        /// The address; 0 if there is none.
        address: u64,
        /// Bytes: as requested for allocations and frees, physical for segments.
        size: u64,
        /// The stream.
        stream: i64,
        /// When, in Unix microseconds; None if not recorded.
        time_us: Option<u64>,
        /// Who did it: an id for `Snapshot.frames`; 0 if not recorded.
        stack: u32,
        /// Of an OOM, instead of an address: the bytes that were free on the device.
        device_free: Option<u64>,
    }

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

    /// The memory pool, if the event names it.
    #[getter]
    fn pool(&self) -> Option<(i64, i64)> {
        self.text.extras.pool
    }

    /// The forward stack of a backward allocation, a line each.
    #[getter]
    fn forward_frames<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.text.extras.forward_frames)
    }

    fn __repr__(&self) -> String {
        let EventText { action, address, size, .. } = &self.text;
        format!("<Event {}: {action} of {size} bytes at {address:#x}>", self.index)
    }
}
