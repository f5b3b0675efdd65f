//! A device as Python sees it: its figures, its allocations, its events, and timelines of them.

use std::borrow::Cow;
use std::sync::Arc;

use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::arguments::{self, choice, subset};
use super::clock::PyClock;
use super::columns::lend;
use super::events::PyEvent;
use super::getters::{derefs, getters};
use super::image::color_array;
use super::recording::PyAllocations;
use super::timeline::PyTimeline;
use crate::filter::Filter;
use crate::lifetimes::Lifetimes;
use crate::raster::{ColorBy, Theme};
use crate::recording::Recording;
use crate::timeline::Order;

/// The least, the most, and the colours between them.
type Scale<'py> = (u64, u64, Bound<'py, PyArray2<u8>>);

/// The most events that are handed out at once: they are objects, not columns.
const MAX_ROWS: i64 = 10_000;

/// What is known of one device.
#[pyclass(frozen, name = "Device", module = "snapviewer")]
pub(super) struct PyDevice {
    recording: Arc<Recording>,
    which: usize,
}

impl PyDevice {
    pub(super) fn new(recording: &Arc<Recording>, which: usize) -> Self {
        Self { recording: Arc::clone(recording), which }
    }

    fn lifetimes(&self) -> &Lifetimes {
        &self.recording.devices[self.which]
    }
}

derefs!(PyDevice, |this| -> Lifetimes { this.lifetimes() });

getters! {
    PyDevice {
        /// Live requested bytes before the first event.
        initial_bytes: u64,
        /// The most that was live after any event; if there are no events, what is live.
        peak_bytes: u64,
        /// The first event with that much; -1 if there are no events.
        peak_event: i64,
        /// Bytes got from the device before the first event.
        reserved_initial_bytes: u64,
        /// The most bytes that were got from the device.
        reserved_peak_bytes: u64,
    }

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
        PyAllocations::new(&self.recording, self.which)
    }

    /// What queries call its allocation 0: in `elements.db`, `allocations.idx`.
    #[getter]
    fn first_idx(&self) -> usize {
        self.recording.first_idx(self.which)
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

    /// Live requested bytes after the last event.
    #[getter]
    fn final_bytes(&self) -> u64 {
        self.lifetimes().final_bytes()
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
        let order = choice(&Order::NAMES, "order", order)?;
        let shown = subset(r#where, self.lifetimes().allocations.len())?;
        py.detach(|| {
            let filter = self.recording.subset(self.which, &shown)?.map(Cow::into_owned);
            PyTimeline::new(&self.recording, self.which, order, filter)
        })
    }

    /// Which allocations a filter's text lets through.
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

    /// What the allocator set aside for an allocation: the size of its block at the end. None if it
    /// does not live so long, or the segments do not have it.
    fn rounded_size(&self, py: Python<'_>, allocation: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let count = self.lifetimes().allocations.len();
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
        let by = choice(&ColorBy::NAMES, "color", color)?;
        let theme = choice(&Theme::NAMES, "theme", theme)?;
        let colors = self.recording.colors(self.which, by, theme)?;
        color_array(py, &colors)
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
        let by = choice(&ColorBy::NAMES, "color", color)?;
        let theme = choice(&Theme::NAMES, "theme", theme)?;
        let Some((least, most)) = by.extent(self.lifetimes()) else { return Ok(None) };
        Ok(Some((least, most, color_array(py, &theme.scale())?)))
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
