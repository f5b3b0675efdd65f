//! What-if questions as Python asks them.

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::device::PyDevice;
use super::getters::{Tuple, getters};
use crate::allocator::conf;
use crate::allocator::simulate::{Failure, Outcome};
use crate::allocator::whatif::{Answer, Kind, Question, Trust, WhatIf};
use crate::filter::Filter;

/// Simulates a device's requests under other settings, with less memory, or changed.
#[pyfunction]
#[pyo3(signature = (device, conf=None, *, capacity=None, memory=None, without=Vec::new(), scale=Vec::new(), free_early=Vec::new()))]
#[allow(clippy::too_many_arguments)] // Each has a name, and most a default.
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.
pub(super) fn whatif(
    py: Python<'_>,
    device: &PyDevice,
    conf: Option<String>,
    capacity: Option<u64>,
    memory: Option<u64>,
    without: Vec<String>,
    scale: Vec<(String, f64)>,
    free_early: Vec<(String, i64)>,
) -> PyResult<PyWhatIf> {
    if let Some((_, factor)) = scale.iter().find(|(_, factor)| !(0.0..=1e6).contains(factor)) {
        let reason = format!("sizes are scaled by a number from 0 to 1,000,000, not {factor}");
        return Err(PyValueError::new_err(reason));
    }
    let (recording, which) = (&device.recording, device.which);
    let found = py.detach(|| -> crate::error::Result<_> {
        let replayed = recording.replayed(which);
        let (replay, lifetimes) = (&replayed.replay, &recording.devices[which]);
        let all = &lifetimes.allocations;
        let mask = |text: &str| recording.mask(which, &Filter::parse(text)?);
        let mut sizes = all.size.clone();
        let mut matches = Vec::new();
        let removed = without.iter().map(|text| (text, 0.0));
        for (text, factor) in removed.chain(scale.iter().map(|(text, factor)| (text, *factor))) {
            let mask = mask(text)?;
            matches.push(mask.iter().filter(|&&is_in| is_in).count());
            for (size, _) in sizes.iter_mut().zip(&mask).filter(|(_, is_in)| **is_in) {
                let scaled = (*size as f64 * factor).ceil() as u64;
                *size = if factor == 0.0 { 0 } else { scaled.max(1) };
            }
        }
        let mut free_events = all.free_event.clone();
        for (text, event) in &free_early {
            let mask = mask(text)?;
            let matching = mask.iter().enumerate().filter(|(_, is_in)| **is_in);
            let lives =
                |index: usize| all.alloc_event[index] < *event && *event < free_events[index];
            let freed: Vec<usize> =
                matching.map(|(index, _)| index).filter(|&one| lives(one)).collect();
            matches.push(freed.len());
            for index in freed {
                free_events[index] = *event;
            }
        }
        let parsed = match &conf {
            Some(text) => conf::parse(text, &replay.rules)?,
            None => conf::Conf { rules: replay.rules.clone(), fraction: None },
        };
        let question = WhatIf::new(lifetimes, replay);
        let whole = memory.or(capacity).unwrap_or(question.capacities.1);
        let fraction = parsed.fraction.filter(|_| whole < u64::MAX);
        let answer = question.ask(&Question {
            rules: parsed.rules,
            capacity,
            allowed: fraction.map(|fraction| (whole as f64 * fraction) as u64),
            sizes: &sizes,
            free_events: &free_events,
        });
        Ok((answer, question.kind, matches))
    })?;
    let (answer, kind, matches) = found;
    Ok(PyWhatIf(Box::new(Found { answer, kind, matches })))
}

/// An answer, and what was asked.
pub(super) struct Found {
    answer: Answer,
    kind: Kind,
    matches: Vec<usize>,
}

impl Found {
    fn get<'a, T>(&'a self, get: impl FnOnce(&'a Outcome) -> T) -> Option<T> {
        self.answer.outcome.as_ref().map(get)
    }

    fn failure<T>(&self, get: impl FnOnce(&Failure) -> T) -> Option<T> {
        self.get(|run| run.failures.first().map(get)).flatten()
    }
}

fn name<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> &'static str {
    names.iter().find(|(_, known)| known == value).map_or("", |(name, _)| name)
}

/// What a simulation found.
#[pyclass(frozen, name = "WhatIf", module = "snapviewer")]
pub(super) struct PyWhatIf(Box<Found>);

getters! {
    PyWhatIf |this| {
        /// How far it can be trusted: "exact", "interval" or "refused".
        trust: &'static str = name(&Trust::NAMES, &this.0.answer.trust),
        /// Why not further; empty if it is exact.
        why: &str = &this.0.answer.why,
        /// How the recording begins: "whole" (with an empty allocator), "grows" or "steady".
        kind: &'static str = name(&Kind::NAMES, &this.0.kind),
        /// How many allocations each filter changes, in the order of the arguments.
        matches: Tuple<&[usize]> = Tuple(&this.0.matches),
        /// The most that is requested; None if it was refused, as below.
        peak_requested_bytes: Option<u64> = this.0.get(|run| run.requested.bytes),
        /// The most that blocks take.
        peak_active_bytes: Option<u64> = this.0.get(|run| run.active.bytes),
        /// The most that comes from the device.
        peak_reserved_bytes: Option<u64> = this.0.get(|_| this.0.answer.peak_bytes),
        /// The first event after which so much is reserved; -1 is before the first.
        peak_event: Option<i64> = this.0.get(|run| run.reserved.event),
        /// The least that the peak of reserved memory may be.
        low_bytes: Option<u64> = this.0.get(|_| this.0.answer.low_bytes),
        /// The most that it may be.
        high_bytes: Option<u64> = this.0.get(|_| this.0.answer.high_bytes),
        /// What the device can give; None if that is no limit.
        capacity_bytes: Option<u64> =
            Some(this.0.answer.capacity).filter(|&bytes| bytes < u64::MAX),
        /// The events at which the device was full and cached memory went back to it.
        retries: Tuple<Vec<i64>> = Tuple(this.0.get(|run| run.retries.clone()).unwrap_or_default()),
        /// The events at which memory runs out: those of the recording, and one more at most.
        oom_events: Tuple<Vec<i64>> = Tuple(
            this.0
                .get(|run| run.failures.iter().map(|one| one.event).collect::<Vec<_>>())
                .unwrap_or_default()
        ),
        /// The first of them; None if there is none.
        oom_event: Option<i64> = this.0.failure(|one| one.event),
        /// What the device would have had to give then.
        oom_needed_bytes: Option<u64> = this.0.failure(|one| one.needed_bytes),
        /// What it had.
        oom_available_bytes: Option<u64> = this.0.failure(|one| one.available_bytes),
        /// The event at which the recording ran out of memory, and this does not: what follows is
        /// not known.
        rescued_event: Option<i64> = this.0.get(|run| run.rescued).flatten(),
    }

    /// Reserved bytes as steps: the events that change them, -1 first, and the bytes after each.
    #[getter]
    fn reserved<'py>(&self, py: Python<'py>) -> Steps<'py> {
        let steps = self.0.get(|run| run.curve.as_slice()).unwrap_or_default();
        let events = PyArray1::from_iter(py, steps.iter().map(|&(event, _)| event));
        (events, PyArray1::from_iter(py, steps.iter().map(|&(_, bytes)| bytes)))
    }

    fn __repr__(&self) -> String {
        let trust = name(&Trust::NAMES, &self.0.answer.trust);
        let peak = self.0.get(|_| self.0.answer.peak_bytes);
        let peak = peak.map_or("None".to_owned(), |bytes| bytes.to_string());
        format!("WhatIf(trust={trust:?}, peak_reserved_bytes={peak})")
    }
}

/// Events, and bytes.
type Steps<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u64>>);
