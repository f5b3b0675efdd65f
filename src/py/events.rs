//! One event of a trace as Python sees it.

use pyo3::prelude::*;

use super::getters::{Tuple, derefs, getters};
use crate::checkpoint::preview::repr;
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
    PyEvent |this| {
        /// Its place in the trace.
        index: usize = this.index,
        /// What it does: "alloc", "snapshot", …, as the file calls it.
        action: &str = &this.action,
        /// The address; 0 if there is none.
        address: u64,
        /// Bytes: as requested for allocations and frees, physical for segments.
        size: u64,
        /// The stream.
        stream: i64,
        /// When, in Unix microseconds; None if not recorded.
        time_us: Option<u64>,
        /// The call stack: an id for `Snapshot.frames`; 0 if not recorded.
        stack: u32,
        /// Of an OOM, instead of an address: the bytes that were free on the device.
        device_free: Option<u64>,
        /// The compile id; "N/A" outside of torch.compile.
        compile_context: Option<&str> = this.extras.compile_context.as_deref(),
        /// The user's metadata for this part of the program.
        user_metadata: Option<&str> = this.extras.user_metadata.as_deref(),
        /// The allocator's metadata for its own event.
        internal_metadata: Option<&str> = this.extras.internal_metadata.as_deref(),
        /// The profiler's category.
        category: Option<&str> = this.extras.category.as_deref(),
        /// The memory pool, if the event names it.
        pool: Option<(i64, i64)> = this.extras.pool,
        /// The forward stack of a backward allocation, a line each.
        forward_frames: Tuple<&[String]> = Tuple(&this.extras.forward_frames),
    }

    fn __repr__(&self) -> String {
        let (index, EventText { action, address, size, .. }) = (self.index, &self.text);
        let action = repr(action);
        format!("Event(index={index}, action={action}, address={address:#x}, size={size})")
    }
}
