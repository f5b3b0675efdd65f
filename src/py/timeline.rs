//! Timelines as Python sees them.

#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::arguments::{self, byte, choice, index, look, pixels, view};
use super::clock::PyClock;
use super::columns::lend;
use super::getters::{derefs, getters};
use super::image::{Owner, PyImage};
use crate::error::Error;
use crate::lifetimes::Lifetimes;
use crate::raster::{self, ColorBy, Group, LastStyle, PooledPicture, Style, Theme};
use crate::recording::{Look, Recording};
use crate::timeline::{Clock, Order, StackShare, Timeline};

/// A stack, its bytes, how many, the largest, and the size of that.
type StackRow = (u32, u64, usize, u32, u64);

/// A stack, stream, pool or category, its bytes, its pixels and its colour.
type GroupRow = (i64, u64, u64, (u8, u8, u8));

/// An allocation, its size, its stack, and the events that made and freed it.
type AllocationRow = (u32, u64, u32, i64, i64);

/// Allocations of a device, stacked in an order and filtered.
#[pyclass(frozen, name = "Timeline", module = "snapviewer")]
pub(super) struct PyTimeline {
    recording: Arc<Recording>,
    which: usize,
    timeline: Arc<Timeline>,
    style: LastStyle<Look>,
}

impl PyTimeline {
    pub(super) fn new(
        recording: &Arc<Recording>,
        which: usize,
        order: Order,
        filter: Option<Vec<bool>>,
    ) -> PyResult<Self> {
        let timeline = recording.timeline(which, order, filter)?;
        Ok(Self {
            recording: Arc::clone(recording),
            which,
            timeline: Arc::new(timeline),
            style: LastStyle::default(),
        })
    }

    fn lives(&self) -> &Lifetimes {
        self.timeline.lives()
    }

    /// How many events there are.
    fn events(&self) -> usize {
        self.lives().totals.len()
    }

    fn moment(&self, event: &Bound<'_, PyAny>) -> PyResult<u32> {
        let events = self.events();
        match index(event)? {
            -1 => Ok(0),
            place if (0..events.max(1) as i64).contains(&place) => {
                Ok(self.timeline.moment(place as usize))
            }
            _ => Err(PyIndexError::new_err(format!("event {event} of {events}; -1 is before all"))),
        }
    }
}

derefs!(PyTimeline, |this| -> Timeline { &this.timeline });

getters! {
    PyTimeline |this| {
        /// The most live bytes of what is shown, before the first event or after any.
        peak_bytes: u64 = this.peak().1,
        /// The first event with that much; -1 if that was before the first event.
        peak_event: i64 = this.peak().0,
        /// Live bytes of what is shown before the first event.
        initial_bytes: u64 = this.timeline.initial_bytes(),
        /// How many allocations are shown.
        shown: usize = this.timeline.shown(),
    }

    /// Live bytes of what is shown, after each event.
    #[getter]
    fn totals<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<u64>> {
        let this = slf.get();
        lend(slf, (&this.timeline.totals()[..this.events()]).into())
    }

    /// The allocation at a byte of the stack after an event, or None above it; -1 is before all.
    fn at(
        &self,
        py: Python<'_>,
        event: &Bound<'_, PyAny>,
        byte: &Bound<'_, PyAny>,
    ) -> PyResult<Option<u32>> {
        let (moment, byte) = (self.moment(event)?, arguments::byte(byte)?);
        Ok(py.detach(|| self.timeline.at(moment, byte)))
    }

    /// The byte at which an allocation begins in the stack after an event; None if it is not in it.
    fn offset(
        &self,
        allocation: &Bound<'_, PyAny>,
        event: &Bound<'_, PyAny>,
    ) -> PyResult<Option<u64>> {
        let which = arguments::allocation(allocation, self.lives().allocations.len())?;
        Ok(self.timeline.offset(which as usize, self.moment(event)?))
    }

    /// The stack after an event, from the bottom: the allocations, and the byte where each begins.
    fn stack<'py>(
        &self,
        py: Python<'py>,
        event: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let moment = self.moment(event)?;
        let stack = py.detach(|| self.timeline.stack(moment));
        let ids = PyArray1::from_iter(py, stack.iter().map(|one| one.0));
        let offsets = PyArray1::from_iter(py, stack.iter().map(|one| one.1));
        (ids, offsets).into_pyobject(py)
    }

    /// What is alive after an event by stack, the most bytes first: the stack, its bytes, how many,
    /// and the largest (of equals the first) with its size.
    fn alive_by_stack(&self, py: Python<'_>, event: &Bound<'_, PyAny>) -> PyResult<Vec<StackRow>> {
        let moment = self.moment(event)?;
        let shares = py.detach(|| self.timeline.alive_by_stack(moment));
        let size = &self.lives().allocations.size;
        let row = |one: &StackShare| {
            (one.stack, one.bytes, one.count, one.largest, size[one.largest as usize])
        };
        Ok(shares.iter().map(row).collect())
    }

    /// The largest that are alive after an event, the largest first: which, its size, its stack, and
    /// the events that made and freed it.
    fn largest_alive(
        &self,
        py: Python<'_>,
        event: &Bound<'_, PyAny>,
        limit: usize,
    ) -> PyResult<Vec<AllocationRow>> {
        let moment = self.moment(event)?;
        let all = &self.lives().allocations;
        let found = py.detach(|| self.timeline.largest_alive(moment, limit));
        let row = |&which: &u32| {
            let at = which as usize;
            (which, all.size[at], all.stack[at], all.alloc_event[at], all.free_event[at])
        };
        Ok(found.iter().map(row).collect())
    }

    /// Of the events from `first` to before `last`, the first with the most live bytes; how many.
    fn peak_in(&self, first: usize, last: usize) -> PyResult<(u32, u64)> {
        if first >= last || last > self.events() {
            let text = format!("events {first} to {last} of {}", self.events());
            return Err(PyIndexError::new_err(text));
        }
        let highest = self.timeline.extremes(first..last);
        Ok((highest.at, highest.high))
    }

    /// What the colours of a picture stand for, the most bytes first: the stack, stream, pool or
    /// category, its bytes alive after an event, its pixels in the picture, and its colour.
    #[pyo3(signature = (image, event, color="stack", theme="light"))]
    fn color_groups(
        &self,
        py: Python<'_>,
        image: &PyImage,
        event: &Bound<'_, PyAny>,
        color: &str,
        theme: &str,
    ) -> PyResult<Vec<GroupRow>> {
        let by = choice(ColorBy::NAMES, "color", color)?;
        let theme = choice(Theme::NAMES, "theme", theme)?;
        let (moment, owner) = (self.moment(event)?, self.picture(image)?);
        py.detach(|| {
            let alive = self.timeline.stack(moment).into_iter().map(|one| one.0);
            let is_needed = by == ColorBy::Category;
            let categories = self.recording.needed_categories(self.which, is_needed)?;
            let ids = owner.picture().ids();
            let groups = raster::groups(self.lives(), ids, alive, by, &categories);
            let colors = self.recording.colors(self.which, by, theme)?;
            let row = |one: &Group| {
                let [red, green, blue, _] = colors[one.member as usize].to_le_bytes();
                (one.key, one.bytes, one.pixels, (red, green, blue))
            };
            Ok(groups.iter().map(row).collect())
        })
    }

    /// The least and the most size or age in a picture; None if it is coloured by something else,
    /// or shows nothing.
    fn visible_extent(
        &self,
        py: Python<'_>,
        image: &PyImage,
        color: &str,
    ) -> PyResult<Option<(u64, u64)>> {
        let by = choice(ColorBy::NAMES, "color", color)?;
        let owner = self.picture(image)?;
        Ok(py.detach(|| raster::visible_extent(self.lives(), owner.picture().ids(), by)))
    }

    /// The lowest and the highest total of each of some columns.
    #[pyo3(signature = (*, events=None, time=None, clock=None, size))]
    fn overview<'py>(
        &self,
        py: Python<'py>,
        events: Option<(f64, f64)>,
        time: Option<(f64, f64)>,
        clock: Option<&PyClock>,
        size: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let clock = self.clock(time, clock)?;
        let view = view(events, time, 0..1, (pixels(size)?, 1))?;
        let all = py.detach(|| view.overview(&self.timeline, clock.as_deref()));
        let low = PyArray1::from_iter(py, all.iter().map(|one| one.0));
        let high = PyArray1::from_iter(py, all.iter().map(|one| one.1));
        (low, high).into_pyobject(py)
    }

    /// Draws a part of the timeline.
    #[pyo3(signature = (
        *, events=None, time=None, bytes, size, clock=None, color="stack", theme="light", dim=None,
        selected=None, previous=None, threads=None
    ))]
    #[allow(clippy::too_many_arguments)] // Each has a name, and most a default.
    fn image(
        &self,
        py: Python<'_>,
        events: Option<(f64, f64)>,
        time: Option<(f64, f64)>,
        bytes: (Bound<'_, PyAny>, Bound<'_, PyAny>),
        size: (Bound<'_, PyAny>, Bound<'_, PyAny>),
        clock: Option<&PyClock>,
        color: &str,
        theme: &str,
        dim: Option<&Bound<'_, PyAny>>,
        selected: Option<&Bound<'_, PyAny>>,
        previous: Option<&PyImage>,
        threads: Option<usize>,
    ) -> PyResult<PyImage> {
        let clock = self.clock(time, clock)?;
        let bytes = byte(&bytes.0)?..byte(&bytes.1)?;
        let view = view(events, time, bytes, (pixels(&size.0)?, pixels(&size.1)?))?;
        let count = self.lives().allocations.len();
        let (look, selected) = look((color, theme), dim, selected, count)?;
        let previous = previous.and_then(PyImage::give_up);
        py.detach(|| {
            let style = self.style.get(look, |look| self.recording.style(self.which, look))?;
            let style = Style { selected, ..style };
            let timeline = &self.timeline;
            let picture = PooledPicture::draw(timeline, clock, &style, &view, threads, previous);
            Ok(PyImage::new(picture))
        })
    }

    fn __repr__(&self) -> String {
        let shown = self.timeline.shown();
        let all = self.lives().allocations.len();
        format!("Timeline(shown={shown}, allocations={all}, events={})", self.events())
    }
}

impl PyTimeline {
    /// A picture of this device.
    fn picture(&self, image: &PyImage) -> PyResult<Owner> {
        let owner = image.owner()?;
        if owner.is_of(self.lives()) {
            return Ok(owner);
        }
        Err(PyValueError::new_err("the picture is of another device"))
    }

    /// The clock of a picture whose x is time.
    fn clock(
        &self,
        time: Option<(f64, f64)>,
        given: Option<&PyClock>,
    ) -> PyResult<Option<Arc<Clock>>> {
        match (time, given) {
            (None, None) => Ok(None),
            (None, Some(_)) => {
                Err(PyValueError::new_err("a clock goes with time=(from, to), not with events"))
            }
            (Some(_), Some(given)) if given.clock.at_us.len() != self.events() => {
                Err(PyValueError::new_err("the clock is of another device"))
            }
            (Some(_), Some(given)) => Ok(Some(Arc::clone(&given.clock))),
            (Some(_), None) => {
                let clock = Clock::new(&self.recording.times(self.which), false);
                let missing = || Error::argument("the file has no times; draw by events");
                Ok(Some(Arc::new(clock.ok_or_else(missing)?)))
            }
        }
    }
}
