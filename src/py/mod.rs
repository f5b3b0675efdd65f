//! The Python module `snapviewer._core`: converts arguments, calls the core, converts results.

mod arguments;
mod calls;
mod checkpoint;
mod clock;
mod columns;
mod device;
mod events;
mod getters;
mod image;
mod memory;
mod numbers;
mod pattern;
mod recording;
mod screen;
mod tensors;
mod timeline;
mod values;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::calls::{CancelledError, SnapshotError, convert, is_bundle, load, query};
    /// The version of the bundle's format.
    #[pymodule_export]
    const FORMAT_VERSION: u64 = crate::store::FORMAT_VERSION;
    #[pymodule_export]
    use super::checkpoint::{PyCheckpoint, PyLedger, read_checkpoint};
    #[pymodule_export]
    use super::clock::PyClock;
    #[pymodule_export]
    use super::device::PyDevice;
    #[pymodule_export]
    use super::events::PyEvent;
    #[pymodule_export]
    use super::image::PyImage;
    #[pymodule_export]
    use super::memory::{tensor_quality, tensor_stats};
    #[pymodule_export]
    use super::numbers::{
        PyChannels, PyDifference, PyPruningPoint, PyQuality, PyRoundTrip, PySpectrum, PyStats,
    };
    #[pymodule_export]
    use super::pattern::PyPattern;
    #[pymodule_export]
    use super::recording::{PyAllocations, PyFrame, PySnapshot};
    #[pymodule_export]
    use super::screen::PyScreen;
    #[pymodule_export]
    use super::tensors::{PyStorage, PyTensor, PyTensorPart};
    #[pymodule_export]
    use super::timeline::PyTimeline;
    #[pymodule_export]
    use super::values::PyValue;
    use super::{Bound, PyModule, PyModuleMethods, PyResult, PyTuple};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("SCHEMA", crate::store::described())?;
        // A constant would be a list, which is mutable.
        module.add("CATEGORIES", PyTuple::new(module.py(), crate::lifetimes::CATEGORIES)?)
    }
}
