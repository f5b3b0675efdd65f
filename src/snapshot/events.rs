//! The events of all traces, in columns.

use std::ops::Range;

use crate::column::Packed;
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

    /// Stands for what is no string, and for all further actions once a file has shown more than a
    /// byte can number.
    pub const OTHER: Self = Self(u8::MAX);

    /// What [`Self::OTHER`] is called.
    pub const NAMELESS: &str = "(none)";

    /// Its name among a file's names; None if the file lacks it.
    #[must_use]
    pub fn name(self, names: &[String]) -> Option<&str> {
        let name = names.get(usize::from(self.0)).map(String::as_str);
        name.or((self == Self::OTHER).then_some(Self::NAMELESS))
    }

    /// Of all possible actions, whether each has this name.
    #[must_use]
    pub fn all_named(name: &str, names: &[String]) -> [bool; 256] {
        std::array::from_fn(|number| Self(number as u8).name(names) == Some(name))
    }
}

/// What few events have, or all have alike: string ids, where 0 is absent or empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Extras {
    /// The compile id; "N/A" outside of `torch.compile`.
    pub compile_context: u32,
    /// The user's metadata for this part of the program.
    pub user_metadata: u32,
    /// The allocator's metadata for its own event.
    pub internal_metadata: u32,
    /// The profiler's category.
    pub category: u32,
    /// The memory pool, 1 + its place among the snapshot's pools; 0 if not recorded.
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

impl Event {
    /// An event of which nothing is known, and that changes nothing.
    pub const EMPTY: Self = Self {
        action: Action::OTHER,
        address: 0,
        size: 0,
        stream: 0,
        time_us: 0,
        stack: 0,
        extras: 0,
    };
}

/// How many events are packed together: as wide as they come, they fit the processor's cache.
pub const CHUNK: usize = 4096;

/// Events in columns: 12 to 16 bytes each.
#[derive(Debug, Default)]
pub struct Events {
    /// All of [`CHUNK`] events but the last.
    chunks: Vec<Chunk>,
    len: usize,
    /// What `Event::extras` counts.
    pub extras_table: Table<Extras>,
}

#[derive(Debug)]
struct Chunk {
    action: Box<[Action]>,
    address: Packed,
    size: Packed,
    stream: Packed,
    time_us: Packed,
    stack: Packed,
    extras: Packed,
}

impl Events {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds [`CHUNK`] events, or fewer if they are the last.
    pub fn push_chunk(&mut self, events: &[Event]) {
        debug_assert!(self.len.is_multiple_of(CHUNK) && events.len() <= CHUNK);
        self.len += events.len();
        self.chunks.push(Chunk {
            action: events.iter().map(|event| event.action).collect(),
            address: Packed::pack(events.iter().map(|event| event.address)),
            size: Packed::pack(events.iter().map(|event| event.size)),
            stream: Packed::pack(events.iter().map(|event| event.stream as u64)),
            time_us: Packed::pack(events.iter().map(|event| event.time_us)),
            stack: Packed::pack(events.iter().map(|event| u64::from(event.stack))),
            extras: Packed::pack(events.iter().map(|event| u64::from(event.extras))),
        });
    }

    /// The event in a row.
    #[must_use]
    #[inline]
    pub fn get(&self, row: usize) -> Event {
        let (chunk, row) = (&self.chunks[row / CHUNK], row % CHUNK);
        Event {
            action: chunk.action[row],
            address: chunk.address.get(row),
            size: chunk.size.get(row),
            stream: chunk.stream.get(row) as i64,
            time_us: chunk.time_us.get(row),
            stack: chunk.stack.get(row) as u32,
            extras: chunk.extras.get(row) as u32,
        }
    }

    /// The events in some rows.
    pub fn iter(&self, rows: Range<usize>) -> impl Iterator<Item = Event> + '_ {
        rows.map(|row| self.get(row))
    }

    /// What an event does.
    #[must_use]
    #[inline]
    pub fn action(&self, row: usize) -> Action {
        self.chunks[row / CHUNK].action[row % CHUNK]
    }

    /// The rows among these whose action is marked.
    pub fn with_action<'a>(
        &'a self,
        rows: Range<usize>,
        is_wanted: &'a [bool; 256],
    ) -> impl Iterator<Item = usize> + 'a {
        let chunks = rows.start / CHUNK..rows.end.div_ceil(CHUNK);
        chunks.flat_map(move |number| {
            let first = number * CHUNK;
            let from = rows.start.max(first);
            let actions =
                &self.chunks[number].action[from - first..rows.end.min(first + CHUNK) - first];
            let found = actions.iter().enumerate();
            found
                .filter(|(_, action)| is_wanted[usize::from(action.0)])
                .map(move |(at, _)| from + at)
        })
    }

    /// When it happened, in Unix microseconds.
    #[must_use]
    #[inline]
    pub fn time_us(&self, row: usize) -> u64 {
        self.chunks[row / CHUNK].time_us.get(row % CHUNK)
    }

    /// The extras of an event.
    #[must_use]
    pub fn extras(&self, row: usize) -> Extras {
        *self.extras_table.get(self.extras_id(row))
    }

    /// The id of an event's extras.
    #[must_use]
    #[inline]
    pub fn extras_id(&self, row: usize) -> u32 {
        self.chunks[row / CHUNK].extras.get(row % CHUNK) as u32
    }

    /// How often each action occurs, by its number.
    #[must_use]
    pub fn action_counts(&self) -> [u64; 256] {
        let mut counts = [0; 256];
        for action in self.chunks.iter().flat_map(|chunk| &chunk.action) {
            counts[action.0 as usize] += 1;
        }
        counts
    }

    /// The same events in another order, or some of them, or some twice.
    #[must_use]
    pub fn gather(&self, rows: impl Iterator<Item = usize>) -> Self {
        let mut events = Self { extras_table: self.extras_table.clone(), ..Self::default() };
        let mut chunk = Vec::with_capacity(CHUNK);
        for row in rows {
            if chunk.len() == CHUNK {
                events.push_chunk(&chunk);
                chunk.clear();
            }
            chunk.push(self.get(row));
        }
        events.push_chunk(&chunk);
        events
    }
}
