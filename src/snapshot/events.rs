//! The events of all traces, in columns.

use crate::column::{Lazy32, Split64};
use crate::snapshot::intern::Table;

/// What an event does, as a number: the known actions first, others as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Action(pub u8);

impl Action {
    /// Memory was handed out.
    pub const ALLOC: Self = Self(0);
    /// Memory was given back, but may still be in use by another stream.
    pub const FREE_REQUESTED: Self = Self(1);
    /// Memory is free again.
    pub const FREE_COMPLETED: Self = Self(2);
    /// The device was asked for memory.
    pub const SEGMENT_ALLOC: Self = Self(3);
    /// Memory went back to the device.
    pub const SEGMENT_FREE: Self = Self(4);
    /// Physical memory was mapped into an expandable segment.
    pub const SEGMENT_MAP: Self = Self(5);
    /// Physical memory was unmapped from an expandable segment.
    pub const SEGMENT_UNMAP: Self = Self(6);
    /// The snapshot was taken; its size is what was active then.
    pub const SNAPSHOT: Self = Self(7);
    /// An allocation failed.
    pub const OOM: Self = Self(8);

    /// The names of the known ones, in the order of their numbers.
    pub const NAMES: [&str; 9] = [
        "alloc",
        "free_requested",
        "free_completed",
        "segment_alloc",
        "segment_free",
        "segment_map",
        "segment_unmap",
        "snapshot",
        "oom",
    ];

    /// Stands for all further actions once a file has shown more than a byte can number.
    pub const OTHER: Self = Self(u8::MAX);
}

/// What few events have, or all have alike: string ids, where 0 is absent or empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Extras {
    /// The compile id; "N/A" outside of `torch.compile`.
    pub compile_context: u32,
    /// What the user said of this stretch of the program.
    pub user_metadata: u32,
    /// What the allocator says of its own event.
    pub internal_metadata: u32,
    /// The profiler's category.
    pub category: u32,
    /// The memory pool, 1 + its place among the snapshot's pools; 0 if not told.
    pub pool: u32,
    /// The forward stack of a backward allocation, 1 + its place among the text lists; 0 if none.
    pub forward_frames: u32,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What it does.
    pub action: Action,
    /// The address; for an OOM, the bytes that were free on the device.
    pub address: u64,
    /// Bytes: as requested for alloc and free, physical for segments.
    pub size: u64,
    /// The stream.
    pub stream: i64,
    /// Unix time in microseconds; 0 if not recorded.
    pub time_us: u64,
    /// The stack's id; 0 if there is none.
    pub stack: u32,
    /// An id into the extras.
    pub extras: u32,
}

/// Events in columns: about 22 bytes each.
#[derive(Debug, Default)]
pub struct Events {
    action: Vec<Action>,
    address: Split64,
    size: Split64,
    time_us: Split64,
    stack: Vec<u32>,
    stream: Lazy32,
    extras: Lazy32,
    /// The streams that `stream` counts.
    pub streams: Table<i64>,
    /// What `extras` counts.
    pub extras_table: Table<Extras>,
}

impl Events {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.action.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.action.is_empty()
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, event: &Event) {
        self.action.push(event.action);
        self.address.push(event.address);
        self.size.push(event.size);
        self.time_us.push(event.time_us);
        self.stack.push(event.stack);
        let stream = self.streams.intern(&event.stream);
        self.stream.push(stream);
        self.extras.push(event.extras);
    }

    /// Replaces an event.
    pub fn set(&mut self, row: usize, event: &Event) {
        self.action[row] = event.action;
        self.address.set(row, event.address);
        self.size.set(row, event.size);
        self.time_us.set(row, event.time_us);
        self.stack[row] = event.stack;
        let stream = self.streams.intern(&event.stream);
        self.stream.set(row, stream);
        self.extras.set(row, event.extras);
    }

    /// The event in a row.
    #[must_use]
    #[inline]
    pub fn get(&self, row: usize) -> Event {
        Event {
            action: self.action[row],
            address: self.address.get(row),
            size: self.size.get(row),
            stream: *self.streams.get(self.stream.get(row)),
            time_us: self.time_us.get(row),
            stack: self.stack[row],
            extras: self.extras.get(row),
        }
    }

    /// What an event does.
    #[must_use]
    #[inline]
    pub fn action(&self, row: usize) -> Action {
        self.action[row]
    }

    /// When it happened, in Unix microseconds.
    #[must_use]
    #[inline]
    pub fn time_us(&self, row: usize) -> u64 {
        self.time_us.get(row)
    }

    /// The extras of an event.
    #[must_use]
    pub fn extras(&self, row: usize) -> Extras {
        *self.extras_table.get(self.extras.get(row))
    }

    /// The same events in another order, or some of them, or some twice.
    #[must_use]
    pub fn gather(&self, rows: impl Iterator<Item = usize>) -> Self {
        let mut events = Self {
            streams: self.streams.clone(),
            extras_table: self.extras_table.clone(),
            ..Self::default()
        };
        rows.for_each(|row| events.push(&self.get(row)));
        events
    }
}
