//! The replayed allocator as Python sees it.

use std::sync::Arc;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::arguments::{choice, pixels};
use super::columns::lend;
use super::getters::{derefs, getters, record};
use super::memory_map::{Colored, PyMemoryMap, measures};
use crate::allocator::curves::Curve;
use crate::allocator::domains::{DomainUse, domains};
use crate::allocator::growth::{Cause, ReleaseCause};
use crate::allocator::pending::Pending;
use crate::allocator::pins::{Pin, apart, pins};
use crate::allocator::state::{BlockAt, SegmentAt, State};
use crate::allocator::{Domain, Growth, Oom, Release, Replay, Verdict};
use crate::raster::{LastStyle, MemoryMap, SortBy};
use crate::recording::{Look, Recording, Replayed};

/// The replay of PyTorch's caching allocator on one device.
#[pyclass(frozen, name = "Allocator", module = "snapviewer")]
pub(super) struct PyAllocator {
    recording: Arc<Recording>,
    which: usize,
    replayed: Arc<Replayed>,
    style: Arc<LastStyle<Look>>,
}

impl PyAllocator {
    pub(super) fn new(py: Python<'_>, recording: &Arc<Recording>, which: usize) -> Self {
        let replayed = py.detach(|| recording.replayed(which));
        let style = Arc::default();
        Self { recording: Arc::clone(recording), which, replayed, style }
    }

    /// The requests that failed.
    pub(super) fn ooms<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let one = |oom: &Oom| {
            let is_exact = self.first_contradiction.is_none_or(|first| first > oom.event);
            let elsewhere = oom
                .other
                .map(|(domain, bytes)| (self.pool(domain), kind(domain), domain.stream, bytes));
            let pool = self.pool(oom.domain);
            Py::new(py, PyOom { oom: oom.clone(), pool, is_exact, elsewhere })
        };
        PyTuple::new(py, self.ooms.iter().map(one).collect::<PyResult<Vec<_>>>()?)
    }

    fn state_at(&self, py: Python<'_>, event: i64) -> PyResult<State> {
        let count = self.recording.devices[self.which].totals.len() as i64;
        if !(-1..count.max(0)).contains(&event) {
            return Err(PyIndexError::new_err(format!("event {event} of {count}")));
        }
        Ok(py.detach(|| self.recording.state(self.which, &self.replayed, event)))
    }

    fn pool(&self, domain: Domain) -> Option<(i64, i64)> {
        let place = usize::from(domain.pool).checked_sub(1)?;
        self.recording.devices[self.which].pools.get(place).copied()
    }
}

derefs!(PyAllocator, |this| -> Replay { &this.replayed.replay });

getters! {
    PyAllocator |this| {
        /// Whether nothing in the file contradicts the allocator's rules.
        exact: bool = this.is_exact(),
        /// Allocations whose placement was predicted.
        placements: u64,
        /// Those that are where the rules put them.
        as_recorded: u64,
        /// The first event that contradicts the rules; None if there is none.
        first_contradiction: Option<usize>,
        /// Whether the file contains the allocator's settings.
        has_settings: bool,
        /// Blocks older than the trace whose size is only known up to 1 MiB.
        uncertain_blocks: u64,
    }

    /// How often the file contradicts the rules, by what is wrong; empty if it does not.
    #[getter]
    fn contradictions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        for (what, count) in self.replayed.replay.contradictions.counters() {
            if count > 0 {
                found.set_item(what, count)?;
            }
        }
        Ok(found)
    }

    /// The settings in force, by PyTorch's names.
    #[getter]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let rules = &self.replayed.replay.rules;
        let found = PyDict::new(py);
        found.set_item("expandable_segments", rules.is_expandable)?;
        let max_split = (rules.max_split != u64::MAX).then_some(rules.max_split);
        found.set_item("max_split_size", max_split)?;
        found.set_item("roundup_power2_divisions", PyTuple::new(py, rules.divisions)?)?;
        found.set_item("garbage_collection_threshold", rules.collect_above)?;
        found.set_item("large_segment_size", rules.large_segment)?;
        Ok(found)
    }

    /// The size of the block of each allocation.
    #[getter]
    fn block_size<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<u64>> {
        lend(slf, slf.get().block_size.as_slice().into())
    }

    /// The requests that made the allocator ask the device for memory.
    #[getter]
    fn growths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let one = |growth: &Growth| {
            Py::new(py, PyGrowth { growth: growth.clone(), pool: self.pool(growth.domain) })
        };
        PyTuple::new(py, self.growths.iter().map(one).collect::<PyResult<Vec<_>>>()?)
    }

    /// The times at which memory went back to the device.
    #[getter]
    fn releases<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let one = |release: &Release| Py::new(py, PyRelease(release.clone()));
        PyTuple::new(py, self.releases.iter().map(one).collect::<PyResult<Vec<_>>>()?)
    }

    /// The frees that waited for other streams, by the stream of the block.
    #[getter]
    fn pending<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let all = py.detach(|| self.recording.pending(self.which, &self.replayed));
        let all = all.into_iter().map(|one| Py::new(py, PyPending(one)));
        PyTuple::new(py, all.collect::<PyResult<Vec<_>>>()?)
    }

    /// What each stack keeps from going back to the device after an event, the most first.
    fn pins<'py>(&self, py: Python<'py>, event: i64) -> PyResult<Bound<'py, PyTuple>> {
        let state = self.state_at(py, event)?;
        let stacks = &self.recording.devices[self.which].allocations.stack;
        let all = pins(&state, stacks, &self.rules);
        let all = all.into_iter().map(|one| Py::new(py, PyPin(one)));
        PyTuple::new(py, all.collect::<PyResult<Vec<_>>>()?)
    }

    /// The allocations that kept free memory in pieces when the allocator grew, by the place of the
    /// growth: between the fewest bytes of live blocks the request would have fit. Empty if no segment
    /// was large enough.
    fn kept_apart(&self, py: Python<'_>, growth: usize) -> PyResult<Vec<u32>> {
        let count = self.growths.len();
        let growth = self.growths.get(growth);
        let growth =
            growth.ok_or_else(|| PyIndexError::new_err(format!("there are {count} growths")))?;
        let state = self.state_at(py, growth.event as i64 - 1)?;
        Ok(apart(&state, growth.domain, growth.rounded_bytes).unwrap_or_default())
    }

    /// The segments and their blocks after an event; -1 is before the first.
    fn state(&self, py: Python<'_>, event: i64) -> PyResult<PyState> {
        let state = self.state_at(py, event)?;
        let pools = state.segments.iter().map(|one| self.pool(one.domain)).collect();
        let domains = domains(&state, &self.rules).into_iter();
        let domains = domains.map(|one| PyDomain { pool: self.pool(one.domain), sums: one });
        let domains = domains.map(|one| Py::new(py, one)).collect::<PyResult<Vec<_>>>()?;
        let domains = PyTuple::new(py, domains)?.unbind();
        let colored = Colored {
            recording: Arc::clone(&self.recording),
            which: self.which,
            style: Arc::clone(&self.style),
        };
        Ok(PyState { event, state: Arc::new(state), pools, domains, colored })
    }

    fn __repr__(&self) -> String {
        let Replay { placements, as_recorded, .. } = &**self;
        format!("Allocator(placements={placements}, as_recorded={as_recorded})")
    }
}

/// A request that made the allocator ask the device for memory.
#[pyclass(frozen, name = "Growth", module = "snapviewer")]
pub(super) struct PyGrowth {
    growth: Growth,
    pool: Option<(i64, i64)>,
}

derefs!(PyGrowth, |this| -> Growth { &this.growth });

getters! {
    PyGrowth |this| {
        /// The first of its segment events.
        event: usize,
        /// The `alloc` that follows.
        alloc_event: usize,
        /// The stack that asked.
        stack: u32,
        /// The rounded request.
        rounded_bytes: u64,
        /// What came from the device.
        grown_bytes: u64,
        /// Free bytes for such requests at that moment.
        free_bytes: u64,
        /// The largest free block for such requests.
        largest_bytes: u64,
        /// The largest free block for other requests.
        outside_bytes: u64,
        /// The stream.
        stream: i64 = this.domain.stream,
        /// The memory pool; None if it is not known.
        pool: Option<(i64, i64)> = this.pool,
        /// For which requests: "small" or "large".
        kind: &str = kind(this.domain),
        /// Why nothing free would do: "demand", "fragments" or "other domain".
        cause: &str = cause(this.cause),
    }
}

fn kind(domain: Domain) -> &'static str {
    if domain.is_small { "small" } else { "large" }
}

fn cause(cause: Cause) -> &'static str {
    Cause::NAMES.iter().find(|(_, one)| *one == cause).map_or("", |(name, _)| name)
}

/// A request that failed, and why.
#[pyclass(frozen, name = "Oom", module = "snapviewer")]
pub(super) struct PyOom {
    oom: Oom,
    pool: Option<(i64, i64)>,
    is_exact: bool,
    elsewhere: Option<Elsewhere>,
}

/// The pool, kind, stream and free bytes of a domain.
type Elsewhere = (Option<(i64, i64)>, &'static str, i64, u64);

derefs!(PyOom, |this| -> Oom { &this.oom });

getters! {
    PyOom |this| {
        /// The `oom` event.
        event: usize = this.event,
        /// The stack that asked.
        stack: u32 = this.stack,
        /// The rounded request.
        requested_bytes: u64 = this.requested_bytes,
        /// What the device had free.
        device_free_bytes: u64 = this.device_free_bytes,
        /// What the program had asked for and not given back.
        live_bytes: u64 = this.live_bytes,
        /// Blocks in use.
        active_bytes: u64 = this.active_bytes,
        /// Memory from the device.
        reserved_bytes: u64 = this.reserved_bytes,
        /// What of it no block used.
        free_bytes: u64 = this.oom.free_bytes(),
        /// What of that was for requests like this one.
        domain_free_bytes: u64 = this.domain_free_bytes,
        /// The largest free block for requests like this one.
        largest_free_bytes: u64 = this.largest_free_bytes,
        /// What the device would have had to give; 0 if a block became free after the search.
        needed_bytes: u64 = this.needed_bytes,
        /// What the allocator gave back in vain right before.
        released_bytes: u64 = this.released_bytes,
        /// All memory that the allocator could have had then.
        capacity_bytes: u64 = this.oom.capacity_bytes(),
        /// The most that it had, or could have had, before.
        capacity_seen_bytes: u64 = this.capacity_seen_bytes,
        /// Whether the device had enough: then a limit of the program refused.
        is_limited: bool = this.oom.is_limited(),
        /// The stream.
        stream: i64 = this.domain.stream,
        /// The memory pool; None if it is not known.
        pool: Option<(i64, i64)> = this.pool,
        /// For which requests: "small" or "large".
        kind: &str = kind(this.domain),
        /// The pool, kind, stream and free bytes of what had the most free memory for other requests.
        elsewhere: Option<Elsewhere> = this.elsewhere,
        /// Why it failed: "demand", "fragmentation", "isolation" or "outside".
        verdict: &str = verdict(this.verdict),
        /// How many bytes were missing.
        short_by_bytes: u64,
        /// Whether nothing before it contradicts the allocator's rules.
        exact: bool = this.is_exact,
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    Verdict::NAMES.iter().find(|(_, one)| *one == verdict).map_or("", |(name, _)| name)
}

record! {
    /// Memory that went back to the device at once.
    PyRelease(Release) as "Release" |this| {
        /// The first event.
        event: usize,
        /// How many events there are.
        events: usize,
        /// The bytes that went back.
        bytes: u64,
        /// Why: "retry" (the device was full), "empty cache" or "other".
        cause: &str = release_cause(this.0.cause),
    }
}

fn release_cause(cause: ReleaseCause) -> &'static str {
    ReleaseCause::NAMES.iter().find(|(_, one)| *one == cause).map_or("", |(name, _)| name)
}

record! {
    /// The frees of one stream's blocks that waited for other streams.
    PyPending(Pending) as "Pending" |this| {
        /// The stream that the blocks belong to.
        stream: i64,
        /// How many frees waited.
        frees: u64,
        /// The bytes of their blocks.
        bytes: u64,
        /// The most that waited at one moment.
        most_bytes: u64,
        /// The longest wait, in events.
        longest_events: u64,
        /// The allocation that waited longest.
        longest: u32,
        /// The longest wait in microseconds; 0 without times.
        longest_us: u64,
        /// MiB times microseconds; 0 without times.
        mib_us: u64,
    }
}

record! {
    /// Free memory that the blocks of one stack keep from going back to the device.
    PyPin(Pin) as "Pin" |this| {
        /// The stack.
        stack: u32,
        /// Its share of that memory; stacks with blocks in one segment have equal shares.
        pinned_bytes: u64,
        /// Its blocks in segments with such memory.
        blocks: u64,
        /// Their bytes.
        block_bytes: u64,
    }
}

/// Four amounts of memory after each event.
#[pyclass(frozen, name = "Curves", module = "snapviewer")]
pub(super) struct PyCurves(pub PyAllocator);

impl PyCurves {
    fn requested(&self) -> &[u64] {
        &self.0.recording.devices[self.0.which].totals
    }

    fn curve(&self, py: Python<'_>, pick: Pick) -> &Curve {
        let PyAllocator { recording, which, replayed, .. } = &self.0;
        let curves = py.detach(|| recording.curves(*which, replayed));
        match pick {
            Pick::Allocated => &curves.allocated,
            Pick::Active => &curves.active,
            Pick::Reserved => &curves.reserved,
        }
    }
}

#[derive(Clone, Copy)]
enum Pick {
    Allocated,
    Active,
    Reserved,
}

#[pymethods]
impl PyCurves {
    /// What the program asked for.
    #[getter(requested)]
    fn get_requested<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<u64>> {
        lend(slf, slf.get().requested().into())
    }

    /// The blocks that the program has.
    #[getter]
    fn allocated<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_iter(py, self.curve(py, Pick::Allocated).iter())
    }

    /// Those, and the blocks that wait for another stream.
    #[getter]
    fn active<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_iter(py, self.curve(py, Pick::Active).iter())
    }

    /// Memory from the device.
    #[getter]
    fn reserved<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_iter(py, self.curve(py, Pick::Reserved).iter())
    }

    /// All four after one event, in bytes; -1 is before the first.
    fn at<'py>(&self, py: Python<'py>, event: i64) -> PyResult<Bound<'py, PyDict>> {
        let lifetimes = &self.0.recording.devices[self.0.which];
        let requested = match usize::try_from(event) {
            Ok(event) => *lifetimes.totals.get(event).ok_or_else(|| {
                PyIndexError::new_err(format!("event {event} of {}", lifetimes.totals.len()))
            })?,
            Err(_) => lifetimes.initial_bytes,
        };
        amounts(py, requested, |pick| self.curve(py, pick).at(event))
    }

    /// All four after some events, in bytes; -1 is before the first.
    #[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        events: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let lifetimes = &self.0.recording.devices[self.0.which];
        let events = events.as_array();
        let requested = |event: i64| match usize::try_from(event) {
            Ok(event) => lifetimes.totals.get(event).copied().unwrap_or(lifetimes.final_bytes()),
            Err(_) => lifetimes.initial_bytes,
        };
        let found = PyDict::new(py);
        let column = PyArray1::from_iter(py, events.iter().map(|&event| requested(event)));
        found.set_item("requested", column)?;
        for (name, pick) in
            [("allocated", Pick::Allocated), ("active", Pick::Active), ("reserved", Pick::Reserved)]
        {
            let curve = self.curve(py, pick);
            let column = PyArray1::from_iter(py, events.iter().map(|&event| curve.at(event)));
            found.set_item(name, column)?;
        }
        Ok(found)
    }

    /// The most of each, in bytes.
    #[getter]
    fn peaks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let requested = self.0.recording.devices[self.0.which].peak_bytes;
        amounts(py, requested, |pick| self.curve(py, pick).peak)
    }
}

fn amounts(
    py: Python<'_>,
    requested: u64,
    get: impl Fn(Pick) -> u64,
) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("requested", requested)?;
    found.set_item("allocated", get(Pick::Allocated))?;
    found.set_item("active", get(Pick::Active))?;
    found.set_item("reserved", get(Pick::Reserved))?;
    Ok(found)
}

/// The segments and their blocks after an event, in columns.
#[pyclass(frozen, name = "State", module = "snapviewer")]
pub(super) struct PyState {
    event: i64,
    state: Arc<State>,
    pools: Vec<Option<(i64, i64)>>,
    domains: Py<PyTuple>,
    colored: Colored,
}

/// The memory of one pool for small or large requests of one stream.
#[pyclass(frozen, name = "Domain", module = "snapviewer")]
pub(super) struct PyDomain {
    sums: DomainUse,
    pool: Option<(i64, i64)>,
}

derefs!(PyDomain, |this| -> DomainUse { &this.sums });

getters! {
    PyDomain |this| {
        /// The memory pool; None if it is not known.
        pool: Option<(i64, i64)> = this.pool,
        /// For which requests: "small" or "large".
        kind: &str = kind(this.domain),
        /// The stream.
        stream: i64 = this.domain.stream,
        /// How many segments it has.
        segments: u64,
        /// Their bytes.
        reserved_bytes: u64,
        /// Bytes of blocks that the program has.
        allocated_bytes: u64,
        /// Bytes of blocks that wait for another stream.
        pending_bytes: u64,
        /// Requested bytes of both.
        requested_bytes: u64,
        /// Free bytes.
        free_bytes: u64 = (**this).free_bytes(),
        /// The largest free block.
        largest_free_bytes: u64,
        /// Free bytes that could go back to the device.
        releasable_bytes: u64,
    }
}

macro_rules! columns {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = $rows:ident |$one:ident| $get:expr,)+) => {
        #[pymethods]
        impl PyState {
            /// The event.
            #[getter]
            fn event(&self) -> i64 {
                self.event
            }

            /// How much is in use: one record per pool, kind and stream.
            #[getter]
            fn domains(&self) -> &Py<PyTuple> {
                &self.domains
            }

            /// The memory pools of the segments; None where it is not known.
            #[getter]
            fn segment_pool<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
                PyTuple::new(py, &self.pools)
            }

            $($(#[doc = $doc])+
            #[getter]
            fn $name<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<$type>> {
                PyArray1::from_iter(py, self.state.$rows.iter().map(|$one| $get))
            })+

            /// Lays the segments out in rows; sizes are in pixels.
            #[pyo3(signature = (*, width, row_bytes, row=14, gap=3, heading=22, sort="address"))]
            #[allow(clippy::too_many_arguments)] // Each has a name, and most a default.
            fn map(
                &self,
                py: Python<'_>,
                width: &Bound<'_, PyAny>,
                row_bytes: u64,
                row: u16,
                gap: u16,
                heading: u16,
                sort: &str,
            ) -> PyResult<PyMemoryMap> {
                let sort = choice(SortBy::NAMES, "sort", sort)?;
                let measures = measures(pixels(width)?, row_bytes, (row, gap, heading))?;
                let map = py.detach(|| MemoryMap::new(&self.state, sort, measures));
                Ok(PyMemoryMap::new(map, &self.state, &self.colored, measures.width))
            }

            /// Live allocations that have no block of their own: the file contradicts itself.
            #[getter]
            fn unplaced<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
                PyArray1::from_slice(py, &self.state.unplaced)
            }

            fn __repr__(&self) -> String {
                let (segments, blocks) = (self.state.segments.len(), self.state.blocks.len());
                format!("State(event={}, segments={segments}, blocks={blocks})", self.event)
            }
        }
    };
}

columns! {
    /// Where the segments begin.
    segment_address: u64 = segments |one| one.address,
    /// Their bytes.
    segment_size: u64 = segments |one| one.size,
    /// Their streams.
    segment_stream: i64 = segments |one| one.domain.stream,
    /// Whether they are for requests of at most 1 MiB.
    segment_is_small: bool = segments |one| one.domain.is_small,
    /// Whether they are part of an expandable segment.
    segment_is_expandable: bool = segments |one| one.is_expandable,
    /// The event that they came with; -1 if they are older than the trace.
    segment_born: i64 = segments |one| one.born,
    /// The place of their first block.
    segment_first_block: usize = segments |one| SegmentAt::first_block(one),
    /// Where the blocks begin, segment by segment.
    block_address: u64 = blocks |one| one.address,
    /// Their bytes.
    block_size: u64 = blocks |one| one.size,
    /// The requested bytes; 0 if free.
    block_requested: u64 = blocks |one| one.requested,
    /// 0 allocated, 1 pending, 2 free.
    block_state: u8 = blocks |one| one.state as u8,
    /// The allocations that have them; -1 if free.
    block_allocation: i64 = blocks |one| BlockAt::owner(one),
}
