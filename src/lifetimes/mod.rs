//! The lifetime of every allocation, the stacks that made and freed it, and whether the file is
//! consistent.
//!
//! A trace lists calls, not lifetimes. Per device, in list order: an `alloc` opens an address and a
//! `free_completed` closes it; a free of an address that is not open shows an allocation older
//! than the recording; and what the segments hold at the end, but no event mentions, was there all
//! the time. (docs/internals/lifetimes.md has the rules one by one.)
//!
//! Allocations are numbered in stacking order: those that were there all the time, then other older
//! ones in reverse order of their free, then by allocation.
//!
//! # Invariants
//!
//! Totals are the sums of live sizes after each event. Tests compare everything with a slow model in
//! Python, on random and on real files.
//!
//! # Cost
//!
//! `O(events)`, about 25 ns an event, spent on a second thread while the file is being read
//! ([`Following`]); 60 bytes an allocation and 8 an event.

mod categories;
mod pools;

use std::ops::Range;

use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};

pub use categories::CATEGORIES;
pub(crate) use pools::are_pools;

use self::pools::Pools;
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::snapshot::{self, Action, Event, Follow, Snapshot, Trace};

/// The stack of an allocation whose stack is not known.
pub const NO_STACK: u32 = u32::MAX;

/// The event before the first one.
pub const BEFORE: i64 = -1;

/// What is special about an allocation.
pub mod flag {
    /// Its free was lost: another allocation took its address.
    pub const IMPLICIT_FREE: u8 = 1;
    /// The trace leaves it alive, but the segments do not have it.
    pub const MISSING_BLOCK: u8 = 2;
    /// Not in the trace, only in the segments.
    pub const ONLY_IN_SEGMENTS: u8 = 4;
}

/// An allocation, and the same as columns.
macro_rules! columns {
    ($($(#[$doc:meta])+ $field:ident: $type:ty,)+) => {
        /// One allocation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Allocation {
            $($(#[$doc])+ pub $field: $type,)+
        }

        /// Allocations in columns.
        #[derive(Debug, Default, Clone, PartialEq, Eq)]
        pub struct Allocations {
            $($(#[$doc])+ pub $field: Vec<$type>,)+
        }

        impl Allocations {
            /// Makes room for some more.
            pub fn reserve(&mut self, more: usize) {
                $(self.$field.reserve(more);)+
            }

            /// Adds one.
            pub fn push(&mut self, one: &Allocation) {
                $(self.$field.push(one.$field);)+
            }

            /// One of them.
            #[must_use]
            pub fn get(&self, index: usize) -> Allocation {
                Allocation { $($field: self.$field[index],)+ }
            }

            /// Puts others, which are usually few, before these.
            fn prepend(&mut self, first: Self) {
                $(self.$field.splice(0..0, first.$field);)+
            }
        }
    };
}

columns! {
    /// Where it is.
    address: u64,
    /// The requested bytes.
    size: u64,
    /// The stream it was made on.
    stream: i64,
    /// The event that made it, or [`BEFORE`].
    alloc_event: i64,
    /// The event that ended it, or the number of events.
    free_event: i64,
    /// The event that asked for its end, or [`BEFORE`]; from there to `free_event` it is pending.
    free_requested: i64,
    /// The stack that made it; 0 if not recorded.
    stack: u32,
    /// The stack that freed it, or [`NO_STACK`].
    free_stack: u32,
    /// See [`flag`].
    flags: u8,
    /// The memory pool, 1 + its place in [`Lifetimes::pools`]; 0 if not known.
    pool: u16,
    /// The profiler's category, 1 + a place in [`CATEGORIES`]; 0 if not known.
    category: u8,
}

impl Allocations {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.size.len()
    }

    /// The first event that mentions an allocation: its `alloc`, or for an older one its free.
    fn first_event(&self, index: usize) -> Option<usize> {
        let (alloc, request) = (self.alloc_event[index], self.free_requested[index]);
        if self.flags[index] & flag::ONLY_IN_SEGMENTS != 0 {
            return None;
        }
        let event = if alloc != BEFORE {
            alloc
        } else if request != BEFORE {
            request
        } else {
            self.free_event[index]
        };
        usize::try_from(event).ok()
    }
}

/// How far trace and segments agree.
#[derive(Debug, Default, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Check {
    /// Whether the file has the final state at all.
    pub has_segments: bool,
    /// Requested bytes of the blocks that are active at the end.
    pub expected_final_bytes: u64,
    /// Requested bytes alive at the end of the trace.
    pub final_bytes: u64,
    /// Requested bytes alive before the first event.
    pub initial_bytes: u64,
    /// The most that was alive after any event.
    pub peak_bytes: u64,
    /// The most memory that was reserved from the device.
    pub reserved_peak_bytes: u64,
    /// Allocations that ended because another took their address.
    pub implicit_frees: u64,
    /// Frees of addresses that were not open: allocations older than the recording.
    pub unknown_frees: u64,
    /// Allocations alive at the end that the segments do not have.
    pub missing_blocks: u64,
    /// Frees whose size is not that of the allocation they end.
    pub size_mismatches: u64,
    /// `snapshot` events, and those whose bytes are below what was requested at that moment.
    pub snapshots: u64,
    /// See `snapshots`.
    pub snapshots_below: u64,
    /// Whether segments were released whose origin is not in the file.
    pub is_reserved_negative: bool,
}

impl Check {
    /// Whether the live bytes at the end are those of the active blocks.
    #[must_use]
    pub fn reconciles(&self) -> bool {
        self.has_segments && self.expected_final_bytes == self.final_bytes
    }

    /// What does not agree, in sentences.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut all = Vec::new();
        let difference = self.final_bytes.abs_diff(self.expected_final_bytes);
        if !self.has_segments {
            all.push("the file has no segments: the final state cannot be checked".to_owned());
        } else if difference != 0 {
            let is_more = self.final_bytes > self.expected_final_bytes;
            let more = if is_more { "trace has" } else { "segments have" };
            let less = if is_more { "segments" } else { "trace" };
            all.push(format!(
                "at the end the {more} {difference} bytes more alive than the {less}"
            ));
        }
        if self.has_segments && self.peak_bytes > self.reserved_peak_bytes {
            all.push(format!(
                "at the peak {} bytes are alive, but only {} bytes were ever reserved from the \
                 device: the file lacks segments",
                self.peak_bytes, self.reserved_peak_bytes
            ));
        }
        let mut count = |count: u64, one: &str, many: &str| match count {
            0 => {}
            1 => all.push(format!("1 {one}")),
            _ => all.push(format!("{count} {many}")),
        };
        count(
            self.missing_blocks,
            "allocation is alive at the end of the trace but in no segment",
            "allocations are alive at the end of the trace but in no segment",
        );
        count(
            self.implicit_frees,
            "allocation ends without a free: another one took its address",
            "allocations end without a free: another one took their address",
        );
        count(
            self.size_mismatches,
            "free has another size than the allocation it ends",
            "frees have another size than the allocation they end",
        );
        count(
            self.snapshots_below,
            "`snapshot` event reports fewer bytes than are alive",
            "`snapshot` events report fewer bytes than are alive",
        );
        if self.is_reserved_negative {
            let sentence = "segments were released that the file does not account for";
            all.push(sentence.to_owned());
        }
        all
    }
}

/// What is known of one device.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Lifetimes {
    /// The device's ordinal, or [`crate::snapshot::HOST`].
    pub device: i32,
    /// All allocations, in stacking order.
    pub allocations: Allocations,
    /// The memory pools that segments and events name: (0, 0), the default one, first, then ascending.
    pub pools: Vec<(i64, i64)>,
    /// Live requested bytes after each event.
    pub totals: Vec<u64>,
    /// Live requested bytes before the first event.
    pub initial_bytes: u64,
    /// The most live bytes, before the first event or after any.
    pub peak_bytes: u64,
    /// The first event after which there was that much; [`BEFORE`] if that was before all events.
    pub peak_event: i64,
    /// Bytes reserved from the device before the first event.
    pub reserved_initial_bytes: u64,
    /// The most bytes reserved from the device.
    pub reserved_peak_bytes: u64,
    /// The events where an allocation failed.
    pub oom_events: Vec<u64>,
    /// How far trace and segments agree.
    pub check: Check,
}

impl Lifetimes {
    /// Live requested bytes after the last event.
    #[must_use]
    pub fn final_bytes(&self) -> u64 {
        self.totals.last().copied().unwrap_or(self.initial_bytes)
    }
}

/// Reads a snapshot and finds the lifetime of every allocation of every device.
pub fn read(bytes: &[u8], progress: &Progress<'_>) -> Result<(Snapshot, Vec<Lifetimes>)> {
    let (snapshot, following) = snapshot::read::<Following>(bytes, progress)?;
    let lifetimes = following.finish(&snapshot)?;
    Ok((snapshot, lifetimes))
}

/// The lifetime of every allocation of every device.
pub fn lifetimes(snapshot: &Snapshot) -> Result<Vec<Lifetimes>> {
    Following::default().finish(snapshot)
}

/// Finds lifetimes while a file is being read, with one pass for each list of events.
#[derive(Default)]
pub struct Following {
    passes: HashMap<u32, Pass>,
    /// How many events may still come.
    expected: usize,
}

impl Follow for Following {
    fn expect(&mut self, events: usize) {
        self.expected = events;
    }

    fn rows(&mut self, list: u32, rows: Range<usize>, events: &[Event]) {
        // The first trace is nearly always the longest.
        let expected = &mut self.expected;
        let new = || Pass::new(rows.start, true).with_room(std::mem::take(expected));
        let pass = self.passes.entry(list).or_insert_with(new);
        // Rows that do not follow make the pass one of no trace; `finish` then starts again.
        pass.is_whole &= pass.rows.end == rows.start;
        pass.rows.end = rows.end;
        pass.run(events);
    }
}

impl Following {
    /// Takes the passes that turn out to be of a device's trace, and makes those that are missing.
    fn finish(mut self, snapshot: &Snapshot) -> Result<Vec<Lifetimes>> {
        let events = &snapshot.events;
        let extras = ExtrasSummary::of(snapshot);
        // Actions can be left out of a recording. A file without any completion ends at the request.
        let has_completions = events.action_counts()[Action::FREE_COMPLETED.0 as usize] > 0;
        let can_reuse = has_completions && extras.bookkeeping.is_empty();
        let mut passes: Vec<Pass> = self.passes.drain().map(|(_, pass)| pass).collect();
        let mut one = |trace: &Trace| {
            let is_of_trace = |pass: &Pass| pass.is_whole && pass.rows == trace.rows;
            let pass = match passes.iter().position(is_of_trace) {
                Some(found) if can_reuse => passes.swap_remove(found),
                _ => {
                    let mut pass = Pass::new(trace.rows.start, has_completions);
                    for row in trace.rows.clone() {
                        let event = events.get(row);
                        let is_ours = !extras.bookkeeping.contains(&event.extras);
                        pass.step(&if is_ours { event } else { Event::EMPTY });
                    }
                    pass
                }
            };
            pass.finish(snapshot, trace, &extras)
        };
        snapshot.traces.iter().map(&mut one).collect()
    }
}

/// What the extras of the file's events contain.
struct ExtrasSummary {
    /// The extras of the allocator's own bookkeeping, which are not allocations.
    bookkeeping: Vec<u32>,
    /// Whether any of them names a pool.
    have_pools: bool,
    /// See [`categories::of_extras`].
    categories: Vec<u8>,
}

impl ExtrasSummary {
    fn of(snapshot: &Snapshot) -> Self {
        let is_bookkeeping = |extras: &snapshot::Extras| {
            snapshot.strings.get(extras.internal_metadata) == "mallocWithAddress"
        };
        let all = snapshot.events.extras_table.items();
        let numbered = (0..).zip(all);
        Self {
            bookkeeping: numbered
                .filter(|(_, one)| is_bookkeeping(one))
                .map(|(id, _)| id)
                .collect(),
            have_pools: all.iter().any(|extras| extras.pool != 0),
            categories: categories::of_extras(snapshot),
        }
    }
}

/// Marks an index as one into `Pass::older`.
const OLDER: u32 = 1 << 31;

/// In place of the number of events, while that is not known.
const OPEN: i64 = i64::MAX;

/// The walk through one trace.
struct Pass {
    rows: Range<usize>,
    /// Whether it has seen all of `rows`, in order.
    is_whole: bool,
    has_completions: bool,
    /// Those with an `alloc`.
    made: Allocations,
    /// Those older than the recording, in the order in which they show up.
    older: Allocations,
    /// The allocation at each address that is taken.
    open: HashMap<u64, u32, foldhash::fast::RandomState>,
    /// Live bytes, relative to those before the first event.
    live: u64,
    totals: Vec<u64>,
    /// The most of them, and the first event that has it.
    peak: Option<(i64, usize)>,
    /// Bytes reserved from the device, relative to those before the first event, and their maximum.
    reserved: (i128, i128),
    /// `snapshot` events: number, bytes.
    snapshots: Vec<(usize, u64)>,
    /// Whether frees carry their own stacks rather than the allocation's.
    has_free_stacks: bool,
    result: Lifetimes,
}

impl Pass {
    fn new(first_row: usize, has_completions: bool) -> Self {
        Self {
            rows: first_row..first_row,
            is_whole: true,
            has_completions,
            made: Allocations::default(),
            older: Allocations::default(),
            open: HashMap::default(),
            live: 0,
            totals: Vec::new(),
            peak: None,
            reserved: (0, 0),
            snapshots: Vec::new(),
            has_free_stacks: false,
            result: Lifetimes::default(),
        }
    }

    /// Makes room for some events, so that columns of many megabytes need not grow by copying. Room
    /// that is not used costs nothing.
    fn with_room(mut self, events: usize) -> Self {
        self.totals.reserve(events);
        self.made.reserve(events / 3);
        self
    }

    fn run(&mut self, events: &[Event]) {
        for event in events {
            self.step(event);
        }
    }

    #[inline]
    fn step(&mut self, event: &Event) {
        let now = self.totals.len();
        match event.action {
            Action::ALLOC => self.alloc(now as i64, event),
            Action::FREE_REQUESTED => self.free_requested(now as i64, event),
            Action::FREE_COMPLETED => self.free_completed(now as i64, event),
            Action::SEGMENT_ALLOC | Action::SEGMENT_MAP => self.reserve(i128::from(event.size)),
            Action::SEGMENT_FREE | Action::SEGMENT_UNMAP => self.reserve(-i128::from(event.size)),
            Action::OOM => self.result.oom_events.push(now as u64),
            Action::SNAPSHOT => self.snapshots.push((now, event.size)),
            _ => {}
        }
        self.totals.push(self.live);
        // Relative to the first event's, live bytes may be negative.
        if self.peak.is_none_or(|(most, _)| self.live as i64 > most) {
            self.peak = Some((self.live as i64, now));
        }
    }

    fn finish(
        mut self,
        snapshot: &Snapshot,
        trace: &Trace,
        extras: &ExtrasSummary,
    ) -> Result<Lifetimes> {
        self.result.device = trace.device;
        self.result.check.has_segments = snapshot.has_segments(trace.device);
        let pools = Pools::of(snapshot, trace, extras.have_pools);
        self.end(snapshot, &pools);
        self.number()?;
        let allocations = &mut self.result.allocations;
        pools.find(allocations);
        categories::find(&extras.categories, snapshot, trace, allocations);
        self.result.pools = pools.list;
        self.add_up();
        self.finish_reserved(snapshot);
        Ok(self.result)
    }

    fn reserve(&mut self, bytes: i128) {
        self.reserved.0 += bytes;
        self.reserved.1 = self.reserved.1.max(self.reserved.0);
    }

    #[inline]
    fn table(&mut self, index: u32) -> (&mut Allocations, usize) {
        if index & OLDER == 0 {
            (&mut self.made, index as usize)
        } else {
            (&mut self.older, (index & !OLDER) as usize)
        }
    }

    #[inline]
    fn alloc(&mut self, now: i64, event: &Event) {
        let new = self.made.len() as u32;
        if let Some(old) = self.open.insert(event.address, new) {
            let (table, index) = self.table(old);
            table.flags[index] |= flag::IMPLICIT_FREE;
            self.close(old, now);
            self.result.check.implicit_frees += 1;
        }
        self.live = self.live.wrapping_add(event.size);
        self.made.push(&begun(event, now));
    }

    /// Ends an allocation that is no longer in `open`.
    #[inline]
    fn close(&mut self, which: u32, now: i64) {
        let (table, index) = self.table(which);
        table.free_event[index] = now;
        let size = table.size[index];
        self.live = self.live.wrapping_sub(size);
    }

    /// Notes an allocation older than the recording, known by its free.
    fn add_older(&mut self, event: &Event) -> u32 {
        self.result.check.unknown_frees += 1;
        self.older.push(&begun(event, BEFORE));
        (self.older.len() as u32 - 1) | OLDER
    }

    #[inline]
    fn free_requested(&mut self, now: i64, event: &Event) {
        let which = match self.open.get(&event.address) {
            Some(&which) => which,
            None => {
                let which = self.add_older(event);
                self.open.insert(event.address, which);
                which
            }
        };
        let (table, index) = self.table(which);
        if table.free_requested[index] == BEFORE {
            table.free_requested[index] = now;
            self.note_free(which, event);
        }
        if !self.has_completions {
            self.open.remove(&event.address);
            self.close(which, now);
        }
    }

    #[inline]
    fn free_completed(&mut self, now: i64, event: &Event) {
        let which = match self.open.entry(event.address) {
            Entry::Occupied(entry) => entry.remove(),
            Entry::Vacant(_) => self.add_older(event),
        };
        let (table, index) = self.table(which);
        // A completion may come late, inside an unrelated call: the request's stack is the right one.
        if table.free_requested[index] == BEFORE {
            self.note_free(which, event);
        }
        self.close(which, now);
    }

    /// Records the stack that freed an allocation, and whether the free has the same size.
    #[inline]
    fn note_free(&mut self, which: u32, event: &Event) {
        let (table, index) = self.table(which);
        let is_same_size = table.size[index] == event.size;
        let is_known = which & OLDER == 0;
        if event.stack != 0 && table.free_stack[index] == NO_STACK {
            table.free_stack[index] = event.stack;
            let stack = table.stack[index];
            self.has_free_stacks |= is_known && stack != 0 && stack != event.stack;
        }
        self.result.check.size_mismatches += u64::from(!is_same_size);
    }

    /// Compares what is open after the last event with what the segments hold.
    fn end(&mut self, snapshot: &Snapshot, pools: &Pools<'_>) {
        let mut always = Allocations::default();
        let mut active = HashSet::<u64, foldhash::fast::RandomState>::default();
        let device = self.result.device;
        for segment in snapshot.segments.iter().filter(|segment| segment.device == device) {
            for block in &snapshot.blocks[segment.blocks.clone()] {
                if !block.state.is_active() {
                    continue;
                }
                let expected = &mut self.result.check.expected_final_bytes;
                *expected = expected.saturating_add(block.requested_size);
                match self.open.get(&block.address) {
                    // The block has its stack, even where the trace begins too late for that.
                    Some(&which) if which & OLDER != 0 => {
                        let (table, index) = self.table(which);
                        table.stack[index] = block.stack;
                    }
                    Some(_) => {}
                    None => always.push(&Allocation {
                        address: block.address,
                        size: block.requested_size,
                        stream: segment.stream,
                        alloc_event: BEFORE,
                        free_event: OPEN,
                        free_requested: BEFORE,
                        stack: block.stack,
                        free_stack: NO_STACK,
                        flags: flag::ONLY_IN_SEGMENTS,
                        pool: pools.number(segment.pool),
                        category: 0,
                    }),
                }
                active.insert(block.address);
            }
        }
        if self.result.check.has_segments {
            let open = self.open.iter().filter(|(address, _)| !active.contains(*address));
            let missing: Vec<u32> = open.map(|(_, &which)| which).collect();
            for &which in &missing {
                let (table, index) = self.table(which);
                table.flags[index] |= flag::MISSING_BLOCK;
            }
            self.result.check.missing_blocks = missing.len() as u64;
        }
        for index in (0..self.older.len()).rev() {
            let mut one = self.older.get(index);
            // A free has the stack that freed, unless the recording put the allocation's there.
            if self.has_free_stacks && one.free_event != OPEN {
                one.stack = 0;
            }
            always.push(&one);
        }
        let end_of_trace = self.totals.len() as i64;
        for one in [&mut always, &mut self.made] {
            for (free_stack, &stack) in one.free_stack.iter_mut().zip(&one.stack) {
                if *free_stack == stack {
                    *free_stack = NO_STACK;
                }
            }
            for free_event in &mut one.free_event {
                *free_event = (*free_event).min(end_of_trace);
            }
        }
        self.older = always;
    }

    /// Puts all allocations in order.
    fn number(&mut self) -> Result<()> {
        let sizes = self.made.size.iter().chain(&self.older.size);
        let sum: u128 = sizes.map(|&size| u128::from(size)).sum();
        if sum > i64::MAX as u128 {
            let reason = "the sizes of its allocations add up to more than 63 bits can hold";
            return Err(Error::malformed(reason, 0));
        }
        self.result.initial_bytes = self.older.size.iter().sum();
        self.result.allocations = std::mem::take(&mut self.made);
        self.result.allocations.prepend(std::mem::take(&mut self.older));
        Ok(())
    }

    /// Makes the totals absolute.
    fn add_up(&mut self) {
        let result = &mut self.result;
        let initial = result.initial_bytes;
        for total in &mut self.totals {
            *total = total.wrapping_add(initial);
        }
        result.totals = std::mem::take(&mut self.totals);
        let highest = self.peak.map(|(_, number)| (number, result.totals[number]));
        (result.peak_event, result.peak_bytes) = peak_of(initial, highest);
        result.check.initial_bytes = initial;
        result.check.peak_bytes = result.peak_bytes;
        result.check.final_bytes = result.final_bytes();
        result.check.snapshots = self.snapshots.len() as u64;
        let below = self.snapshots.iter().filter(|&&(number, size)| size < result.totals[number]);
        result.check.snapshots_below = below.count() as u64;
    }

    fn finish_reserved(&mut self, snapshot: &Snapshot) {
        let device = self.result.device;
        let segments = snapshot.segments.iter().filter(|segment| segment.device == device);
        let end: i128 = segments.map(|segment| i128::from(segment.total_size)).sum();
        let (now, most) = self.reserved;
        let initial = end - now;
        self.result.check.is_reserved_negative = initial < 0;
        let bytes = |bytes: i128| u64::try_from(bytes.max(0)).unwrap_or(u64::MAX);
        self.result.reserved_initial_bytes = bytes(initial);
        self.result.reserved_peak_bytes = bytes(initial.max(0) + most);
        self.result.check.reserved_peak_bytes = self.result.reserved_peak_bytes;
    }
}

/// The event and bytes of the peak, from the live bytes before the first event and the first event
/// with the largest total. An event wins a tie, so that the peak is in the picture.
#[must_use]
pub fn peak_of(initial_bytes: u64, highest: Option<(usize, u64)>) -> (i64, u64) {
    match highest {
        Some((event, bytes)) if bytes >= initial_bytes => (event as i64, bytes),
        _ => (BEFORE, initial_bytes),
    }
}

/// An allocation as its event shows it.
fn begun(event: &Event, alloc_event: i64) -> Allocation {
    Allocation {
        address: event.address,
        size: event.size,
        stream: event.stream,
        alloc_event,
        free_event: OPEN,
        free_requested: BEFORE,
        stack: event.stack,
        free_stack: NO_STACK,
        flags: 0,
        pool: 0,
        category: 0,
    }
}
