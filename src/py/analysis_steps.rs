//! Categories, steps and leaks as Python sees them.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::columns::lend;
use super::getters::{Tuple, derefs, getters};
use crate::analysis::GroupBy;
use crate::analysis::categories::Categories;
use crate::analysis::leaks::{Leak, Leaks};
use crate::analysis::phases::Run;
use crate::analysis::steps::{Figures, Step, Steps, figures};
use crate::error::Result;
use crate::lifetimes::CATEGORIES;
use crate::recording::Recording;

/// What each allocation is for.
#[pyclass(frozen, name = "Categories", module = "snapviewer")]
pub(super) struct PyCategories(pub Arc<Categories>);

#[pymethods]
impl PyCategories {
    /// The category of each allocation: 1 + its place in `CATEGORIES`.
    #[getter]
    fn category<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<u8>> {
        lend(slf, slf.get().0.category.as_slice().into())
    }

    /// What the file lacks to answer this fully, as a sentence.
    #[getter]
    fn missing(&self) -> Option<&str> {
        self.0.missing
    }

    /// The name of an allocation's category, why, and how sure that is from 0 to 1.
    fn of(&self, allocation: &Bound<'_, PyAny>) -> PyResult<(&'static str, &'static str, f64)> {
        let which = super::arguments::allocation(allocation, self.0.category.len())? as usize;
        let (reason, percent) = self.0.reason(which);
        let name = CATEGORIES[usize::from(self.0.category[which]) - 1];
        Ok((name, reason, f64::from(percent) / 100.0))
    }

    fn __len__(&self) -> usize {
        self.0.category.len()
    }

    fn __repr__(&self) -> String {
        format!("Categories(length={})", self.0.category.len())
    }
}

/// What memory does in a stretch of events.
#[pyclass(frozen, name = "Step", module = "snapviewer")]
pub(super) struct PyStep {
    step: Step,
    new: Vec<(String, u64)>,
}

derefs!(PyStep, |this| -> Step { &this.step });

getters! {
    PyStep |this| {
        /// What it is called.
        name: &str = &this.step.name,
        /// Its first event.
        start: i64,
        /// The first event after it.
        end: i64,
        /// Whether the recording has all of it.
        is_whole: bool,
        /// The most live bytes after one of its events.
        peak_bytes: u64 = this.figures.peak_bytes,
        /// The first event with that much.
        peak_event: i64 = this.figures.peak_event,
        /// Live bytes before it.
        start_bytes: u64 = this.figures.start_bytes,
        /// Live bytes after its last event.
        end_bytes: u64 = this.figures.end_bytes,
        /// By how much live bytes change in it.
        net_bytes: i64 = this.figures.end_bytes as i64 - this.figures.start_bytes as i64,
        /// Bytes that were allocated in it.
        allocated_bytes: u64 = this.figures.allocated_bytes,
        /// How many allocations were made in it.
        allocated_count: u64 = this.figures.allocated_count,
        /// Bytes that were freed in it.
        freed_bytes: u64 = this.figures.freed_bytes,
        /// How many allocations were freed in it.
        freed_count: u64 = this.figures.freed_count,
        /// The index of the largest allocation that was made in it; None if there is none.
        largest: Option<u32> = this.figures.largest,
        /// Lines that allocate more than in the step before, and how many bytes more; the most first.
        new: Tuple<Vec<(String, u64)>> = Tuple(this.new.clone()),
    }

    fn __repr__(&self) -> String {
        let Step { name, start, end, figures: Figures { peak_bytes, .. }, .. } = &self.step;
        format!("Step(name={name:?}, start={start}, end={end}, peak_bytes={peak_bytes})")
    }
}

/// The steps of a trace.
#[pyclass(frozen, name = "Steps", module = "snapviewer")]
pub(super) struct PySteps {
    steps: Arc<Steps>,
    runs: Vec<Run>,
    rows: Py<PyTuple>,
}

impl PySteps {
    pub(super) fn new(py: Python<'_>, recording: &Recording, which: usize) -> PyResult<Self> {
        let (steps, runs, rows) = py.detach(|| -> Result<_> {
            let steps = recording.steps(which)?;
            let (lines, texts) = (recording.keys(which, GroupBy::Line)?, recording.stack_texts()?);
            let row = |step: &Step| PyStep {
                step: step.clone(),
                new: step
                    .new
                    .iter()
                    .map(|&(line, bytes)| (lines.name(line, texts).into_owned(), bytes))
                    .collect(),
            };
            let rows: Vec<PyStep> = steps.steps.iter().map(row).collect();
            Ok((steps, recording.phases(which)?.runs.clone(), rows))
        })?;
        Ok(Self { steps, runs, rows: PyTuple::new(py, rows)?.unbind() })
    }
}

#[pymethods]
impl PySteps {
    /// The steps, in order.
    #[getter]
    fn steps(&self) -> &Py<PyTuple> {
        &self.rows
    }

    /// Where they come from; "" if there are none.
    #[getter]
    fn source(&self) -> &str {
        self.steps.source
    }

    /// What the file lacks to answer this fully, as a sentence.
    #[getter]
    fn missing(&self) -> Option<&str> {
        self.steps.missing
    }

    /// What the program was doing: "forward", "backward", "optimizer", "construct" or "outside", with
    /// the first event and the first one after.
    #[getter]
    fn phases(&self) -> Tuple<Vec<(&'static str, i64, i64)>> {
        Tuple(self.runs.iter().map(|run| (run.phase.name(), run.start, run.end)).collect())
    }

    fn __len__(&self) -> usize {
        self.steps.steps.len()
    }

    fn __repr__(&self) -> String {
        format!("Steps(length={}, source={:?})", self.steps.steps.len(), self.steps.source)
    }
}

/// The figures of any stretch of events, such as an annotation's.
pub(super) fn stretch(recording: &Recording, which: usize, start: i64, end: i64) -> Result<PyStep> {
    let facts = recording.facts(which)?;
    let found = figures(&facts, &[(start, end)]).first().copied().unwrap_or_default();
    let step =
        Step { name: String::new(), start, end, is_whole: true, figures: found, new: Vec::new() };
    Ok(PyStep { step, new: Vec::new() })
}

/// A group that grows from step to step.
#[pyclass(frozen, name = "Leak", module = "snapviewer")]
pub(super) struct PyLeak {
    leaks: Arc<Leaks>,
    place: usize,
    key: String,
    shared: Vec<String>,
}

derefs!(PyLeak, |this| -> Leak { &this.leaks.leaks[this.place] });

getters! {
    PyLeak |this| {
        /// The line that allocates.
        key: &str = &this.key,
        /// Its group in `Device.keys("line")`.
        id: u32,
        /// How many bytes it grows by in a step.
        bytes_per_step: f64,
        /// The first step that adds to it: a place among the whole steps of `Device.steps`.
        first_step: usize,
        /// How sure that is, from 0 to 1.
        confidence: f64,
        /// Bytes that it has added by the end.
        grown_bytes: u64,
        /// The frames that the stacks of its allocations share, innermost first.
        shared_frames: Tuple<Vec<String>> = Tuple(this.shared.clone()),
    }

    /// The indexes of the allocations that it has added and that are alive at the end.
    #[getter]
    fn allocations<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<u32>> {
        let this = slf.get();
        lend(slf, this.leaks.leaks[this.place].allocations.as_slice().into())
    }

    fn __repr__(&self) -> String {
        let Leak { bytes_per_step, confidence, .. } = &**self;
        let key = &self.key;
        format!("Leak(key={key:?}, bytes_per_step={bytes_per_step:.0}, confidence={confidence:.2})")
    }
}

/// What grows from step to step.
#[pyclass(frozen, name = "Leaks", module = "snapviewer")]
pub(super) struct PyLeaks {
    leaks: Arc<Leaks>,
    rows: Py<PyTuple>,
}

impl PyLeaks {
    pub(super) fn new(py: Python<'_>, recording: &Recording, which: usize) -> PyResult<Self> {
        let (leaks, rows) = py.detach(|| -> Result<_> {
            let leaks = recording.leaks(which)?;
            let (lines, texts) = (recording.keys(which, GroupBy::Line)?, recording.stack_texts()?);
            let row = |(place, leak): (usize, &Leak)| PyLeak {
                key: lines.name(leak.id, texts).into_owned(),
                shared: leak
                    .shared_frames
                    .iter()
                    .map(|&frame| texts.frames()[frame as usize].clone())
                    .collect(),
                leaks: Arc::clone(&leaks),
                place,
            };
            let rows: Vec<PyLeak> = leaks.leaks.iter().enumerate().map(row).collect();
            Ok((Arc::clone(&leaks), rows))
        })?;
        Ok(Self { leaks, rows: PyTuple::new(py, rows)?.unbind() })
    }
}

#[pymethods]
impl PyLeaks {
    /// The leaks, the fastest first.
    #[getter]
    fn leaks(&self) -> &Py<PyTuple> {
        &self.rows
    }

    /// Over how many whole steps.
    #[getter]
    fn steps(&self) -> usize {
        self.leaks.steps
    }

    /// Whether the file has no steps, so that equal parts of the trace stand for them.
    #[getter]
    fn is_guess(&self) -> bool {
        self.leaks.is_guess
    }

    /// What the file lacks to answer this fully, as a sentence.
    #[getter]
    fn missing(&self) -> Option<&str> {
        self.leaks.missing
    }

    fn __len__(&self) -> usize {
        self.leaks.leaks.len()
    }

    fn __repr__(&self) -> String {
        format!("Leaks(length={}, steps={})", self.leaks.leaks.len(), self.leaks.steps)
    }
}
