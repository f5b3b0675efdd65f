//! An event with the names that its numbers stand for.

use std::ops::Range;

use crate::snapshot::{Action, Event, Snapshot};

/// A decoded event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventText {
    /// What it does, as the file calls it.
    pub action: String,
    /// The address; 0 if there is none.
    pub address: u64,
    /// Bytes: as requested for alloc and free, physical for segments.
    pub size: u64,
    /// The stream.
    pub stream: i64,
    /// Unix time in microseconds, if recorded.
    pub time_us: Option<u64>,
    /// The stack's id; 0 if there is none.
    pub stack: u32,
    /// What few events have.
    pub extras: ExtrasText,
    /// Of an OOM, instead of an address: the bytes that were free on the device.
    pub device_free: Option<u64>,
}

/// What few events have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ExtrasText {
    /// The compile id; "N/A" outside of `torch.compile`.
    pub compile_context: Option<String>,
    /// The user's metadata for this part of the program.
    pub user_metadata: Option<String>,
    /// The allocator's metadata for its own event.
    pub internal_metadata: Option<String>,
    /// The profiler's category.
    pub category: Option<String>,
    /// The memory pool.
    pub pool: Option<(i64, i64)>,
    /// The forward stack of a backward allocation, a line each.
    pub forward_frames: Vec<String>,
}

impl EventText {
    /// An event, whose action and extras are numbers, with their meaning.
    pub(crate) fn new(event: &Event, action: &str, extras: ExtrasText) -> Self {
        let is_oom = event.action == Action::OOM;
        Self {
            action: action.to_owned(),
            address: if is_oom { 0 } else { event.address },
            size: event.size,
            stream: event.stream,
            time_us: Some(event.time_us).filter(|&time| time != 0),
            stack: event.stack,
            extras,
            device_free: is_oom.then_some(event.address),
        }
    }
}

/// The events in some rows of a snapshot.
pub(crate) fn of_rows(snapshot: &Snapshot, rows: Range<usize>) -> Vec<EventText> {
    let text = |event: Event| {
        let action = event.action.name(&snapshot.actions).unwrap_or(Action::NAMELESS);
        EventText::new(&event, action, extras(snapshot, event.extras))
    };
    snapshot.events.iter(rows).map(text).collect()
}

/// All extras of a snapshot, by id.
pub(crate) fn all_extras(snapshot: &Snapshot) -> Vec<ExtrasText> {
    let count = snapshot.events.extras_table.items().len() as u32;
    (0..count).map(|id| extras(snapshot, id)).collect()
}

fn extras(snapshot: &Snapshot, id: u32) -> ExtrasText {
    let one = snapshot.events.extras_table.get(id);
    let text = |id: u32| (id != 0).then(|| snapshot.strings.get(id).to_owned());
    let pool = one.pool.checked_sub(1).and_then(|id| snapshot.pools.get(id as usize)).copied();
    let lines = one.forward_frames.checked_sub(1);
    let lines = lines.and_then(|id| snapshot.text_lists.get(id as usize));
    let lines = lines.into_iter().flatten().map(|&line| snapshot.strings.get(line));
    ExtrasText {
        compile_context: text(one.compile_context),
        user_metadata: text(one.user_metadata),
        internal_metadata: text(one.internal_metadata),
        category: text(one.category),
        pool,
        // What has several lines is several: a bundle keeps the lines only.
        forward_frames: lines.flat_map(|line| line.split('\n')).map(Into::into).collect(),
    }
}
