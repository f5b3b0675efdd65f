//! Clocks as Python sees them.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use super::arguments::index;
use super::columns::lend;
use super::getters::{Tuple, derefs, getters};
use crate::recording::Recording;
use crate::timeline::Clock;

/// When events happened, in microseconds since the first one.
#[pyclass(frozen, name = "Clock", module = "snapviewer")]
pub(super) struct PyClock {
    pub clock: Arc<Clock>,
}

impl PyClock {
    pub(super) fn new(recording: &Recording, which: usize, compress: bool) -> Option<Self> {
        let clock = Arc::new(Clock::new(&recording.times(which), compress)?);
        Some(Self { clock })
    }
}

derefs!(PyClock, |this| -> Clock { &this.clock });

getters! {
    PyClock |this| {
        /// The Unix time of the first event, in microseconds.
        start_us: u64,
        /// From the first to the last event, on this clock.
        length_us: u64 = this.clock.length_us(),
        /// Where time without events was cut short: the event before, from and to on this clock, and
        /// how long it was.
        gaps: Tuple<Vec<(usize, u64, u64, u64)>> = Tuple(
            this.gaps
                .iter()
                .map(|gap| (gap.after, gap.from_us, gap.from_us + gap.shown_us, gap.real_us))
                .collect(),
        ),
    }

    /// The time of each event on this clock, which never runs backwards.
    #[getter]
    fn times<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<u64>> {
        lend(slf, slf.get().clock.at_us.as_slice().into())
    }

    /// The time of an event on this clock.
    fn at(&self, event: &Bound<'_, PyAny>) -> PyResult<u64> {
        let found = usize::try_from(index(event)?).ok();
        let found = found.and_then(|event| self.clock.at_us.get(event));
        let count = self.clock.at_us.len();
        found.copied().ok_or_else(|| PyIndexError::new_err(format!("event {event} of {count}")))
    }

    /// The events that a stretch of this clock shows: the first, and the one after the last.
    fn events(&self, from_us: f64, to_us: f64) -> (usize, usize) {
        let events = self.clock.events(from_us.floor() as i64, to_us.ceil() as i64);
        (events.start, events.end)
    }

    /// The real time since the first event that this clock shows as `us`.
    fn real(&self, us: f64) -> f64 {
        self.clock.real_us(us)
    }

    fn __repr__(&self) -> String {
        format!("Clock(length_us={})", self.clock.length_us())
    }
}
