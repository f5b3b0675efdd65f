//! The Python module `snapviewer._core`: converts arguments, calls the core, converts results.

mod calls;
mod columns;
mod recording;
mod timeline;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::calls::{CancelledError, SnapshotError, convert, is_bundle, load, query};
    /// The version of the bundle's format.
    #[pymodule_export]
    const FORMAT_VERSION: u64 = crate::store::FORMAT_VERSION;
    #[pymodule_export]
    use super::recording::{PyAllocations, PyDevice, PyFrame, PySnapshot};
    #[pymodule_export]
    use super::timeline::{PyClock, PyImage, PyTimeline};
}
