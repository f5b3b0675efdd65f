//! Why memory came from the device, and why it went back.

use hashbrown::HashMap;

use super::heap::{Domain, Heap};
use crate::snapshot::{Action, Event, Snapshot};

/// Why free memory could not serve a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The domain had fewer free bytes than were requested.
    Demand,
    /// It had enough, but no block was large enough.
    Fragments,
    /// A large enough block was free, but for another stream, pool or size class.
    OtherDomain,
}

impl Cause {
    /// All of them, with their names.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("demand", Self::Demand),
        ("fragments", Self::Fragments),
        ("other domain", Self::OtherDomain),
    ];
}

/// A request that made the allocator ask the device for memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growth {
    /// The first of its `segment_alloc` or `segment_map` events.
    pub event: usize,
    /// The event before which the allocator searched; earlier than `event` if it waited or released.
    pub searched_event: usize,
    /// The `alloc` that follows.
    pub alloc_event: usize,
    /// The stack that asked.
    pub stack: u32,
    /// The rounded request.
    pub rounded_bytes: u64,
    /// What came from the device.
    pub grown_bytes: u64,
    /// Where it belongs.
    pub domain: Domain,
    /// Free bytes of the domain at that moment.
    pub free_bytes: u64,
    /// The largest free block of the domain.
    pub largest_bytes: u64,
    /// The largest free block of any other domain.
    pub outside_bytes: u64,
    /// Why nothing free would do.
    pub cause: Cause,
}

impl Growth {
    /// Describes the state that a request met.
    pub(super) fn of(heap: &mut Heap, domain: Domain, rounded: u64) -> Self {
        let (free_bytes, largest_bytes) = heap.free_in(domain);
        let outside_bytes = heap.largest_outside(domain);
        let cause = if free_bytes >= rounded {
            Cause::Fragments
        } else if outside_bytes >= rounded {
            Cause::OtherDomain
        } else {
            Cause::Demand
        };
        Self {
            event: 0,
            searched_event: 0,
            alloc_event: 0,
            stack: 0,
            rounded_bytes: rounded,
            grown_bytes: 0,
            domain,
            free_bytes,
            largest_bytes,
            outside_bytes,
            cause,
        }
    }
}

/// Why memory went back to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseCause {
    /// The device had no more memory, and the allocator gave back what it could before it tried again.
    Retry,
    /// The program called `empty_cache`.
    EmptyCache,
    /// The garbage collector, or a reason that the file does not contain.
    Other,
}

impl ReleaseCause {
    /// All of them, with their names.
    pub const NAMES: [(&'static str, Self); 3] =
        [("retry", Self::Retry), ("empty cache", Self::EmptyCache), ("other", Self::Other)];
}

/// Segment events that give memory back, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The first event.
    pub event: usize,
    /// How many there are.
    pub events: usize,
    /// The bytes that went back.
    pub bytes: u64,
    /// Why.
    pub cause: ReleaseCause,
}

/// Whether an event gives memory back to the device.
pub(super) fn is_release(action: Action) -> bool {
    matches!(action, Action::SEGMENT_FREE | Action::SEGMENT_UNMAP)
}

/// Whether an event gets memory from the device.
pub(super) fn is_growth(action: Action) -> bool {
    matches!(action, Action::SEGMENT_ALLOC | Action::SEGMENT_MAP)
}

/// Finds the releases among the segment events of a trace. With garbage collection, what precedes a
/// request to the device may be either.
pub(super) fn releases(
    snapshot: &Snapshot,
    rows: std::ops::Range<usize>,
    segment_rows: &[usize],
    may_collect: bool,
) -> Vec<Release> {
    let events = &snapshot.events;
    let mut all: Vec<Release> = Vec::new();
    let mut last: Option<(usize, Event)> = None;
    for &row in segment_rows.iter().filter(|&&row| is_release(events.action(row))) {
        let event = events.get(row);
        let follows = |(at, one): (usize, Event)| at + 1 == row && one.stack == event.stack;
        match all.last_mut() {
            Some(open) if last.is_some_and(follows) => {
                open.events += 1;
                open.bytes = open.bytes.saturating_add(event.size);
            }
            _ => all.push(Release {
                event: row - rows.start,
                events: 1,
                bytes: event.size,
                cause: ReleaseCause::Other,
            }),
        }
        last = Some((row, event));
    }
    let mut known: HashMap<u32, bool> = HashMap::new();
    for release in &mut all {
        let after = rows.start + release.event + release.events;
        let stack = events.get(after - 1).stack;
        let next = (after < rows.end).then(|| events.get(after));
        let retries = |next: &Event| {
            (is_growth(next.action) || next.action == Action::OOM) && next.stack == stack
        };
        let empties = *known.entry(stack).or_insert_with(|| empties_cache(snapshot, stack));
        release.cause = if empties {
            ReleaseCause::EmptyCache
        } else if !may_collect && next.as_ref().is_some_and(retries) {
            ReleaseCause::Retry
        } else {
            ReleaseCause::Other
        };
    }
    all
}

/// Whether a stack goes through `empty_cache`, in Python or in C++.
fn empties_cache(snapshot: &Snapshot, stack: u32) -> bool {
    snapshot.stacks.get(stack).iter().any(|&frame| {
        let name = snapshot.strings.get(snapshot.stacks.frame(frame).name);
        name == "empty_cache" || name.contains("emptyCache")
    })
}
