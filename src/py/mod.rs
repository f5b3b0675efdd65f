//! The Python module `snapviewer._core`: converts arguments, calls the core, converts results.

mod allocator;
mod analysis;
mod analysis_steps;
mod arguments;
mod calls;
mod checkpoint;
mod clock;
mod columns;
mod device;
mod events;
mod getters;
mod image;
mod json;
mod memory;
mod memory_map;
mod numbers;
mod pattern;
mod profile;
mod recording;
mod screen;
mod tensors;
mod timeline;
mod tree;
mod values;
mod whatif;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

#[pymodule]
mod _core {
    use super::{Bound, PyModule, PyModuleMethods, PyResult, PyTuple};
    #[pymodule_export]
    use super::{
        allocator::{
            PyAllocator, PyCurves, PyDomain, PyGrowth, PyOom, PyPending, PyPin, PyRelease, PyState,
        },
        analysis::{PyCut, PyGroup, PyGroups, PyKeys, PyPeak},
        analysis_steps::{PyCategories, PyLeak, PyLeaks, PyStep, PySteps},
        calls::{CancelledError, SnapshotError, convert, is_bundle, load, null_device, query},
        checkpoint::{PyCheckpoint, PyLedger, read_checkpoint},
        clock::PyClock,
        device::PyDevice,
        events::PyEvent,
        image::PyImage,
        memory::{tensor_quality, tensor_stats},
        memory_map::{PyBlock, PyMemoryMap},
        numbers::{
            PyChannels, PyDifference, PyPruningPoint, PyQuality, PyRoundTrip, PySpectrum, PyStats,
        },
        pattern::PyPattern,
        profile::{PyProfile, read_profile},
        recording::{PyAllocations, PyFrame, PySnapshot},
        screen::PyScreen,
        tensors::{PyStorage, PyTensor, PyTensorPart},
        timeline::PyTimeline,
        tree::{PyIcicle, PyTree, PyTreeNode},
        values::PyValue,
        whatif::{PyWhatIf, whatif},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("FORMAT_VERSION", crate::store::FORMAT_VERSION)?;
        module.add("SCHEMA", crate::store::described())?;
        // A constant would be a list, which is mutable.
        let tuple = |names: &[&str]| PyTuple::new(module.py(), names);
        module.add("ACTIONS", tuple(&crate::snapshot::Action::NAMES)?)?;
        module.add("CATEGORIES", tuple(&crate::lifetimes::CATEGORIES)?)?;
        let names: Vec<&str> =
            crate::analysis::GroupBy::NAMES.iter().map(|(name, _)| *name).collect();
        module.add("GROUPINGS", tuple(&names)?)
    }
}
