//! Groups, peaks and cuts as Python sees them.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;

use super::columns::lend;
use super::getters::{Tuple, derefs, getters, record};
use crate::analysis::groups::{self, Group};
use crate::analysis::peaks::{self, Peak};
use crate::analysis::{GroupBy, Keys};
use crate::error::Result;
use crate::recording::Recording;

/// The allocations with one key.
#[pyclass(frozen, eq, hash, get_all, name = "Group", module = "snapviewer")]
#[derive(PartialEq, Eq, Hash, Clone)]
pub(super) struct PyGroup {
    /// What they have in common: a line of code, a module, a category, ….
    key: String,
    /// Its number in `Device.keys(by).ids`.
    id: u32,
    /// Their bytes.
    bytes: u64,
    /// How many there are.
    count: u64,
    /// The index of the largest.
    largest: u32,
    /// The index of the one that was made first.
    oldest: u32,
}

#[pymethods]
impl PyGroup {
    fn __repr__(&self) -> String {
        let Self { key, bytes, count, .. } = self;
        format!("Group(key={key:?}, bytes={bytes}, count={count})")
    }
}

/// What is alive after an event, by group.
#[pyclass(frozen, name = "Groups", module = "snapviewer")]
pub(super) struct PyGroups {
    by: &'static str,
    groups: groups::Groups,
    shown: Vec<PyGroup>,
    missing: Option<&'static str>,
}

fn group(recording: &Recording, keys: &Keys, group: &Group) -> Result<PyGroup> {
    let Group { id, bytes, count, largest, oldest } = *group;
    let key = keys.name(id, recording.stack_texts()?).into_owned();
    Ok(PyGroup { key, id, bytes, count, largest, oldest })
}

fn name(by: GroupBy) -> &'static str {
    GroupBy::NAMES.iter().find(|(_, one)| *one == by).map_or("", |(name, _)| name)
}

impl PyGroups {
    pub(super) fn new(
        recording: &Recording,
        which: usize,
        by: GroupBy,
        event: i64,
        subset: Option<&[bool]>,
        top: Option<usize>,
    ) -> Result<Self> {
        let keys = recording.keys(which, by)?;
        let groups = groups::alive(&recording.devices[which], &keys, event, subset);
        let shown = groups.groups.iter().take(top.unwrap_or(usize::MAX));
        let shown = shown.map(|one| group(recording, &keys, one)).collect::<Result<_>>()?;
        Ok(Self { by: name(by), groups, shown, missing: keys.missing })
    }
}

derefs!(PyGroups, |this| -> groups::Groups { &this.groups });

getters! {
    PyGroups |this| {
        /// The event; -1 is before the first.
        event: i64,
        /// What they are grouped by.
        by: &str = this.by,
        /// All bytes that are alive.
        total_bytes: u64,
        /// How many allocations are alive.
        count: u64,
        /// The groups, the most bytes first; at most `top`.
        groups: Tuple<Vec<PyGroup>> = Tuple(this.shown.clone()),
        /// How many groups there are.
        group_count: usize = this.groups.groups.len(),
        /// Bytes of the groups that were left out.
        other_bytes: u64 =
            this.total_bytes - this.shown.iter().map(|one| one.bytes).sum::<u64>(),
        /// Allocations of the groups that were left out.
        other_count: u64 = this.count - this.shown.iter().map(|one| one.count).sum::<u64>(),
        /// What the file lacks to answer this fully, as a sentence.
        missing: Option<&str> = this.missing,
    }

    fn __len__(&self) -> usize {
        self.shown.len()
    }

    fn __repr__(&self) -> String {
        let groups::Groups { event, total_bytes, .. } = self.groups;
        let (by, len) = (self.by, self.groups.groups.len());
        format!("Groups(by={by:?}, event={event}, total_bytes={total_bytes}, groups={len})")
    }
}

/// The group of each allocation.
#[pyclass(frozen, name = "Keys", module = "snapviewer")]
pub(super) struct PyKeys {
    recording: Arc<Recording>,
    by: GroupBy,
    keys: Arc<Keys>,
}

impl PyKeys {
    pub(super) fn new(recording: &Arc<Recording>, which: usize, by: GroupBy) -> Result<Self> {
        let keys = recording.keys(which, by)?;
        Ok(Self { recording: Arc::clone(recording), by, keys })
    }
}

derefs!(PyKeys, |this| -> Keys { &this.keys });

getters! {
    PyKeys |this| {
        /// What they are grouped by.
        by: &str = name(this.by),
        /// What the file lacks to answer this fully, as a sentence.
        missing: Option<&str> = this.keys.missing,
    }

    /// The number of each allocation's group.
    #[getter]
    fn ids<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<u32>> {
        lend(slf, slf.get().keys.ids.as_slice().into())
    }

    /// The name of a group.
    fn name(&self, id: u32) -> PyResult<String> {
        if id as usize >= self.keys.count {
            let reason = format!("group {id} of {}", self.keys.count);
            return Err(pyo3::exceptions::PyIndexError::new_err(reason));
        }
        Ok(self.keys.name(id, self.recording.stack_texts()?).into_owned())
    }

    fn __len__(&self) -> usize {
        self.keys.count
    }

    fn __repr__(&self) -> String {
        format!("Keys(by={:?}, groups={})", name(self.by), self.keys.count)
    }
}

record! {
    /// A moment that is higher than those around it.
    PyPeak(Peak) as "Peak" |this| {
        /// The first event with that much; -1 is before the first.
        event: i64,
        /// Live bytes.
        bytes: u64,
    }
}

/// What must go to get below a limit.
#[pyclass(frozen, get_all, name = "Cut", module = "snapviewer")]
pub(super) struct PyCut {
    /// The limit.
    limit_bytes: u64,
    /// The groups that must go, each with the event at which it was chosen.
    groups: Py<pyo3::types::PyTuple>,
    /// The most bytes that are alive without them.
    left_bytes: u64,
    /// The first event with that much.
    left_event: i64,
}

impl PyCut {
    pub(super) fn new(
        py: Python<'_>,
        recording: &Recording,
        which: usize,
        by: GroupBy,
        limit: u64,
    ) -> PyResult<Self> {
        let (groups, left) = py.detach(|| -> Result<_> {
            let keys = recording.keys(which, by)?;
            let cut = peaks::cut(&recording.devices[which], &keys, limit);
            let named = |(event, one): &(i64, Group)| Ok((*event, group(recording, &keys, one)?));
            Ok((cut.groups.iter().map(named).collect::<Result<Vec<_>>>()?, cut.left))
        })?;
        let left = left.unwrap_or(Peak { event: -1, bytes: 0 });
        Ok(Self {
            limit_bytes: limit,
            groups: pyo3::types::PyTuple::new(py, groups)?.unbind(),
            left_bytes: left.bytes,
            left_event: left.event,
        })
    }
}
