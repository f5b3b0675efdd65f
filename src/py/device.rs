//! A device as Python sees it: its figures, its allocations, its events, and timelines of them.

use std::borrow::Cow;
use std::sync::Arc;

use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::allocator::{PyAllocator, PyCurves};
use super::analysis::{PyCut, PyGroups, PyKeys, PyPeak};
use super::analysis_steps::{PyCategories, PyLeaks, PyStep, PySteps, stretch};
use super::arguments::{self, choice, subset};
use super::clock::PyClock;
use super::columns::lend;
use super::events::PyEvent;
use super::getters::{Tuple, derefs, getters};
use super::image::color_array;
use super::recording::PyAllocations;
use super::timeline::PyTimeline;
use super::tree::{Asked, PyTree};
use crate::analysis::{GroupBy, peaks};
use crate::filter::Filter;
use crate::lifetimes::Lifetimes;
use crate::raster::{ColorBy, Theme};
use crate::recording::Recording;
use crate::timeline::Order;

/// The least, the most, and the colours between them.
type Scale = (u64, u64, Vec<(u8, u8, u8)>);

/// The most events that are handed out at once: they are objects, not columns.
const MAX_ROWS: i64 = 10_000;

/// What is known of one device.
#[pyclass(frozen, name = "Device", module = "snapviewer")]
pub(super) struct PyDevice {
    pub(super) recording: Arc<Recording>,
    pub(super) which: usize,
}

derefs!(PyDevice, |this| -> Lifetimes { &this.recording.devices[this.which] });

impl PyDevice {
    pub(super) fn new(recording: &Arc<Recording>, which: usize) -> Self {
        Self { recording: Arc::clone(recording), which }
    }
}

getters! {
    PyDevice |this| {
        /// The device's ordinal; -1 for pinned host memory.
        index: i32 = this.device,
        /// Its allocations, in stacking order.
        allocations: PyAllocations = PyAllocations::new(&this.recording, this.which),
        /// What queries call its allocation 0: in `elements.db`, `allocations.idx`.
        first_idx: usize = this.recording.first_idx(this.which),
        /// The memory pools that `Allocations.pool` counts: (0, 0), the default one, first.
        pools: Tuple<&[(i64, i64)]> = Tuple(&this.pools),
        /// Live requested bytes before the first event.
        initial_bytes: u64,
        /// Live requested bytes after the last event.
        final_bytes: u64 = (**this).final_bytes(),
        /// The most that was live after any event; if there are no events, what is live.
        peak_bytes: u64,
        /// The first event with that much; -1 if there are no events.
        peak_event: i64,
        /// Bytes reserved from the device before the first event.
        reserved_initial_bytes: u64,
        /// The most bytes that were reserved from the device.
        reserved_peak_bytes: u64,
        /// How often an allocation failed.
        oom_events: usize = this.oom_events.len(),
        /// The events at which an allocation failed.
        oom_at: Tuple<&[u64]> = Tuple(&this.oom_events),
        /// Whether what is live at the end is what the segments hold, to the byte.
        reconciles: bool = this.check.reconciles(),
        /// Requested bytes of the blocks that the segments hold at the end.
        expected_final_bytes: u64 = this.check.expected_final_bytes,
        /// What does not agree in the file, in sentences.
        warnings: Tuple<Vec<String>> = Tuple(this.check.sentences()),
    }

    /// How many events its trace has.
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("snapviewer.snapshot.event_count")?.getattr("EventCount")?.call1((self.totals.len(),))
    }

    /// Live requested bytes after each event.
    #[getter]
    fn totals<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<u64>> {
        lend(slf, slf.get().totals.as_slice().into())
    }

    /// The replay of PyTorch's allocator, made at the first use.
    #[getter]
    fn allocator(&self, py: Python<'_>) -> PyAllocator {
        PyAllocator::new(py, &self.recording, self.which)
    }

    /// Requested, allocated, active and reserved bytes after each event.
    #[getter]
    fn curves(&self, py: Python<'_>) -> PyCurves {
        PyCurves(self.allocator(py))
    }

    /// The requests that failed, each with the reason.
    #[getter]
    fn ooms<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.allocator(py).ooms(py)
    }

    /// What is alive after an event, by group: all, or what `where` describes.
    #[pyo3(signature = (event, by="line", *, r#where=None, top=None))]
    fn alive(
        &self,
        py: Python<'_>,
        event: &Bound<'_, PyAny>,
        by: &str,
        r#where: Option<&Bound<'_, PyAny>>,
        top: Option<usize>,
    ) -> PyResult<PyGroups> {
        let by = choice(GroupBy::NAMES, "by", by)?;
        let event = arguments::index(event)?;
        let count = self.totals.len() as i64;
        if !(-1..count.max(1)).contains(&event) {
            return Err(PyIndexError::new_err(format!("event {event} of {count}")));
        }
        let shown = subset(r#where, self.allocations.len())?;
        Ok(py.detach(|| {
            let subset = self.recording.subset(self.which, &shown)?;
            PyGroups::new(&self.recording, self.which, by, event, subset.as_deref(), top)
        })?)
    }

    /// The group of each allocation.
    fn keys(&self, py: Python<'_>, by: &str) -> PyResult<PyKeys> {
        let by = choice(GroupBy::NAMES, "by", by)?;
        Ok(py.detach(|| PyKeys::new(&self.recording, self.which, by))?)
    }

    /// What each allocation is for, inferred where the file does not say.
    #[getter]
    fn categories(&self, py: Python<'_>) -> PyResult<PyCategories> {
        Ok(PyCategories(py.detach(|| self.recording.categories(self.which))?))
    }

    /// The steps of the trace.
    #[getter]
    fn steps(&self, py: Python<'_>) -> PyResult<PySteps> {
        PySteps::new(py, &self.recording, self.which)
    }

    /// What memory does in a stretch of events, from `start` to before `end`.
    fn stretch(&self, py: Python<'_>, start: i64, end: i64) -> PyResult<PyStep> {
        let count = self.totals.len() as i64;
        if !(0 <= start && start <= end && end <= count) {
            let reason = format!("events {start} to {end} of {count}");
            return Err(PyIndexError::new_err(reason));
        }
        Ok(py.detach(|| stretch(&self.recording, self.which, start, end))?)
    }

    /// What grows from step to step.
    #[getter]
    fn leaks(&self, py: Python<'_>) -> PyResult<PyLeaks> {
        PyLeaks::new(py, &self.recording, self.which)
    }

    /// The distinct peaks, the highest first: memory fell between two of them by at least a
    /// twentieth of the highest.
    #[getter]
    fn peaks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, py.detach(|| peaks::peaks(self)).into_iter().map(PyPeak))
    }

    /// What must at least go so that no moment holds more than `limit_bytes`.
    #[pyo3(signature = (limit_bytes, by="line"))]
    fn cut(&self, py: Python<'_>, limit_bytes: u64, by: &str) -> PyResult<PyCut> {
        let by = choice(GroupBy::NAMES, "by", by)?;
        PyCut::new(py, &self.recording, self.which, by, limit_bytes)
    }

    /// Stacks the allocations in an order: all, or those that `where` describes.
    #[pyo3(signature = (order="allocation", r#where=None))]
    fn timeline(
        &self,
        py: Python<'_>,
        order: &str,
        r#where: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTimeline> {
        let order = choice(Order::NAMES, "order", order)?;
        let shown = subset(r#where, self.allocations.len())?;
        py.detach(|| {
            let filter = self.recording.subset(self.which, &shown)?.map(Cow::into_owned);
            PyTimeline::new(&self.recording, self.which, order, filter)
        })
    }

    /// The call tree of what is alive after an event (default: at the peak), of what some events
    /// allocated, or of bytes × time.
    #[pyo3(signature = (
        event=None, *, events=None, measure="alive", by="line", frames="folded", callers=false,
        r#where=None
    ))]
    #[allow(clippy::too_many_arguments)] // Each has a name, and a default.
    fn tree(
        &self,
        py: Python<'_>,
        event: Option<&Bound<'_, PyAny>>,
        events: Option<(i64, i64)>,
        measure: &str,
        by: &str,
        frames: &str,
        callers: bool,
        r#where: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTree> {
        let asked = Asked { event, events, measure, by, frames, callers, subset: r#where };
        PyTree::new(py, &self.recording, self.which, &asked)
    }

    /// Which allocations a filter matches.
    fn mask<'py>(&self, py: Python<'py>, r#where: &str) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let mask = py.detach(|| self.recording.mask(self.which, &Filter::parse(r#where)?))?;
        Ok(PyArray1::from_vec(py, mask))
    }

    /// The events from `first` to before `last`, as far as there are any: at most 10,000.
    fn event_rows(&self, py: Python<'_>, first: i64, last: i64) -> PyResult<Vec<PyEvent>> {
        let asked = i128::from(last) - i128::from(first);
        if asked > i128::from(MAX_ROWS) {
            let reason = format!("{asked} events are too many at once; ask for at most {MAX_ROWS}");
            return Err(PyValueError::new_err(reason));
        }
        let place = |event: i64| usize::try_from(event).unwrap_or(0);
        let (first, last) = (place(first), place(last));
        let texts = py.detach(|| self.recording.event_texts(self.which, first..last))?;
        Ok(texts.into_iter().zip(first..).map(|(text, index)| PyEvent { index, text }).collect())
    }

    /// The events with this action, in their order.
    fn events_of<'py>(&self, py: Python<'py>, action: &str) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let events = py.detach(|| self.recording.events_of(self.which, action))?;
        Ok(PyArray1::from_vec(py, events))
    }

    /// The size of the block that holds an allocation at the end. None if it is freed before, or is
    /// not in the segments.
    fn rounded_size(&self, py: Python<'_>, allocation: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let count = self.allocations.len();
        let number = arguments::allocation(allocation, count)? as usize;
        Ok(py.detach(|| self.recording.rounded_size(self.which, number))?)
    }

    /// The colour of each allocation: allocations × (red, green, blue).
    #[pyo3(signature = (color="stack", theme="light"))]
    fn colors<'py>(
        &self,
        py: Python<'py>,
        color: &str,
        theme: &str,
    ) -> PyResult<Bound<'py, PyArray2<u8>>> {
        let by = choice(ColorBy::NAMES, "color", color)?;
        let theme = choice(Theme::NAMES, "theme", theme)?;
        let colors = self.recording.colors(self.which, by, theme)?;
        color_array(py, &colors)
    }

    /// What the colours of "size" and "age" mean: the least, the most, and the colours from one to
    /// the other, by the logarithm. None for other colours.
    #[pyo3(signature = (color, theme="light"))]
    fn scale(&self, color: &str, theme: &str) -> PyResult<Option<Scale>> {
        let by = choice(ColorBy::NAMES, "color", color)?;
        let theme = choice(Theme::NAMES, "theme", theme)?;
        let Some((least, most)) = by.extent(self) else { return Ok(None) };
        let color = |color: u32| {
            let [red, green, blue, _] = color.to_le_bytes();
            (red, green, blue)
        };
        Ok(Some((least, most, theme.scale().into_iter().map(color).collect())))
    }

    /// When the events happened; None if the file has no times.
    #[pyo3(signature = (compress=false))]
    fn clock(&self, py: Python<'_>, compress: bool) -> Option<PyClock> {
        py.detach(|| PyClock::new(&self.recording, self.which, compress))
    }

    fn __repr__(&self) -> String {
        let Lifetimes { device, totals, allocations, .. } = &**self;
        let (events, allocations) = (totals.len(), allocations.len());
        format!("Device(index={device}, events={events}, allocations={allocations})")
    }
}
