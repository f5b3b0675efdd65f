//! The memory pool of every allocation: the default one, or a private one of a CUDA graph or `MemPool`.
//!
//! Recent events name their pool. In older files only the segments do, and those are the state at the
//! end: an address in a segment was of its pool for as long as the segment was there, and is of no
//! known pool before.
//!
//! # Cost
//!
//! Where all segments are of the default pool and no event names another, a constant column.
//! Otherwise `O(events + allocations × log segments)`, about 30 ns an allocation.

use std::collections::{BTreeMap, BTreeSet};

use crate::lifetimes::{Allocations, BEFORE};
use crate::snapshot::{Action, Segment, Snapshot, Trace};

/// The pool of memory for which the program asked for no other.
const DEFAULT: (i64, i64) = (0, 0);

/// How many pools of a device have a number; there is no room for more in the column.
const MAX_POOLS: usize = u16::MAX as usize - 1;

/// The pools of one device.
pub(super) struct Pools<'a> {
    snapshot: &'a Snapshot,
    trace: &'a Trace,
    /// All that its segments and events name: the default one first, then ascending.
    pub list: Vec<(i64, i64)>,
    /// Whether any of its events names its pool.
    are_named: bool,
}

impl<'a> Pools<'a> {
    /// Collects them. `may_be_named`: whether any event of the file could name its pool.
    pub fn of(snapshot: &'a Snapshot, trace: &'a Trace, may_be_named: bool) -> Self {
        let segments = segments(snapshot, trace);
        let mut sorted: BTreeSet<_> = segments.map(|segment| order(segment.pool)).collect();
        let mut previous = 0;
        for row in if may_be_named { trace.rows.clone() } else { 0..0 } {
            let pool = snapshot.events.extras(row).pool;
            if pool != 0 && pool != previous {
                sorted.insert(order(snapshot.pools[pool as usize - 1]));
                previous = pool;
            }
        }
        let list = sorted.into_iter().map(|(_, pool)| pool).take(MAX_POOLS).collect();
        Self { snapshot, trace, list, are_named: previous != 0 }
    }

    /// 1 + the place of a pool in the list; 0 if it has none.
    pub fn number(&self, pool: (i64, i64)) -> u16 {
        let found = self.list.binary_search_by_key(&order(pool), |&one| order(one));
        found.map_or(0, |place| place as u16 + 1)
    }

    /// Finds the pools of all allocations that are in the trace; the others have theirs.
    pub fn find(&self, allocations: &mut Allocations) {
        if !self.are_named && self.list == [DEFAULT] {
            // There may have been a private pool all of whose segments were released before the end.
            // It cannot be seen in such a file.
            allocations.pool.fill(1);
        } else if !self.list.is_empty() {
            self.look_up(allocations);
        }
    }

    fn look_up(&self, allocations: &mut Allocations) {
        let Self { snapshot: Snapshot { events, pools, .. }, trace, .. } = self;
        let places = self.places();
        for index in 0..allocations.len() {
            let Some(event) = allocations.first_event(index) else { continue };
            let named =
                if self.are_named { events.extras(trace.rows.start + event).pool } else { 0 };
            allocations.pool[index] = if named == 0 {
                let (address, end) = (allocations.address[index], allocations.free_event[index]);
                let after = places.partition_point(|place| place.from <= address);
                let place = after.checked_sub(1).map(|at| &places[at]);
                // If its memory came after its end, it was in a segment that is gone.
                place.filter(|place| place.came <= end).map_or(0, |place| place.pool)
            } else {
                self.number(pools[named as usize - 1])
            };
        }
    }

    /// What is known of each address: ranges without gaps, in order, each up to the next.
    fn places(&self) -> Vec<Place> {
        let events = &self.snapshot.events;
        let mut at_end = Ranges(BTreeMap::new());
        for segment in segments(self.snapshot, self.trace) {
            at_end.set(segment.address, segment.total_size, self.number(segment.pool));
        }
        let mut came = Ranges(BTreeMap::new());
        for (number, row) in (0..).zip(self.trace.rows.clone()) {
            if matches!(events.action(row), Action::SEGMENT_ALLOC | Action::SEGMENT_MAP) {
                let event = events.get(row);
                came.set(event.address, event.size, number);
            }
        }
        let all: BTreeSet<u128> = at_end.0.keys().chain(came.0.keys()).copied().collect();
        let place = |from: u128| {
            let (pool, came) = (at_end.at(from).unwrap_or(0), came.at(from).unwrap_or(BEFORE));
            // What begins where 64 bits end is nowhere.
            Some(Place { from: u64::try_from(from).ok()?, pool, came })
        };
        all.into_iter().filter_map(place).collect()
    }
}

/// A range of addresses.
struct Place {
    from: u64,
    /// The pool of the segment that is there at the end; 0 if there is none.
    pool: u16,
    /// The last event that got memory there from the device.
    came: i64,
}

/// Whether a list is one that [`Lifetimes::pools`](super::Lifetimes::pools) could be.
pub(crate) fn are_pools(pools: &[(i64, i64)]) -> bool {
    pools.len() <= MAX_POOLS && pools.is_sorted_by(|&one, &next| order(one) < order(next))
}

/// What pools are sorted by.
fn order(pool: (i64, i64)) -> (bool, (i64, i64)) {
    (pool != DEFAULT, pool)
}

fn segments<'a>(snapshot: &'a Snapshot, trace: &Trace) -> impl Iterator<Item = &'a Segment> {
    let device = trace.device;
    snapshot.segments.iter().filter(move |segment| segment.device == device)
}

/// Ranges of addresses with a value each, up to the next. Where two overlap, the later set counts.
struct Ranges<T>(BTreeMap<u128, Option<T>>);

impl<T: Copy> Ranges<T> {
    fn set(&mut self, start: u64, size: u64, value: T) {
        // It may end where 64 bits do.
        let (start, end) = (u128::from(start), u128::from(start) + u128::from(size));
        let beyond = self.at(end);
        let hidden: Vec<u128> = self.0.range(start..end).map(|(&from, _)| from).collect();
        for from in hidden {
            self.0.remove(&from);
        }
        self.0.insert(start, Some(value));
        self.0.insert(end, beyond);
    }

    fn at(&self, address: u128) -> Option<T> {
        self.0.range(..=address).next_back().and_then(|(_, &value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_the_default_one_first_then_ascending_each_once() {
        assert!(are_pools(&[DEFAULT, (-1, 5), (0, 1), (1, 0)]));
        assert!(!are_pools(&[(0, 1), DEFAULT]), "the default one is first");
        assert!(!are_pools(&[DEFAULT, (1, 0), (0, 1)]), "they are in order");
        assert!(!are_pools(&[DEFAULT, (1, 0), (1, 0)]), "each is there once");
        let many = |count: i64| (0..count).map(|pool| (0, pool)).collect::<Vec<_>>();
        assert!(are_pools(&many(MAX_POOLS as i64)));
        assert!(!are_pools(&many(MAX_POOLS as i64 + 1)), "there are too many");
    }
}
