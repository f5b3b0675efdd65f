//! The blocks at the start of a trace.
//!
//! Of an allocation older than the trace only the requested size is known, if it is freed before the
//! end. Its block is that size rounded up, plus the rest that was too small to be split off: in a
//! plain segment for large blocks no block is as small as 1 MiB, so a gap of at most that much behind
//! it belongs to it. The gap is that to the nearest block that was ever behind it.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::{HashMap, HashSet};

use super::extents::Extents;
use super::rules::{MAX_SMALL, Rules};
use crate::lifetimes::{BEFORE, Lifetimes};
use crate::snapshot::{Action, Block, BlockState, Snapshot};

/// The blocks of allocations older than the trace.
pub(super) struct Start {
    /// The block size of each, by the number of the allocation; 0 if it is in no segment, or if its
    /// memory was given to another before it was freed: such a free is wrong.
    pub sizes: Vec<u64>,
    /// How many could be up to 1 MiB larger.
    pub uncertain: u64,
    /// The allocations that were given back before the trace, but not free yet, in ascending order.
    pub pending: Vec<u32>,
}

/// An allocation in a plain segment for large blocks that is freed in the trace.
struct Open {
    index: usize,
    free_event: i64,
    /// Where the next block begins, or the segment ends.
    next: u64,
}

/// Finds the sizes of the blocks before the first event.
pub(super) fn find(
    snapshot: &Snapshot,
    lifetimes: &Lifetimes,
    extents: &Extents,
    rules: &Rules,
) -> Start {
    let all = &lifetimes.allocations;
    let older = all.alloc_event.partition_point(|&event| event == BEFORE);
    let end = lifetimes.totals.len() as i64;
    let at_end = active_blocks(snapshot, lifetimes.device);
    // Some recordings leave the requests out.
    let has_requests = snapshot.events.action_counts()[usize::from(Action::FREE_REQUESTED.0)] > 0;
    let mut by_address: Vec<usize> = (0..older).collect();
    by_address.sort_unstable_by_key(|&index| all.address[index]);
    let doubtful = doubtful(lifetimes, older, end);
    let mut sizes = vec![0; older];
    let mut open: BTreeMap<u64, Open> = BTreeMap::new();
    let mut pending = Vec::new();
    for (place, &index) in by_address.iter().enumerate() {
        let (address, free_event) = (all.address[index], all.free_event[index]);
        let Some(extent) = extents.around(address) else { continue };
        if doubtful.contains(&index) {
            continue;
        }
        let rounded = rules.round(all.size[index]);
        let block = at_end.get(&address).filter(|_| free_event == end);
        let is_pending = match block {
            Some(block) => block.state == BlockState::PendingFree,
            None => has_requests && free_event < end,
        };
        if is_pending && all.free_requested[index] == BEFORE {
            pending.push(index as u32);
        }
        let known = block.map(|block| block.size);
        sizes[index] = known.unwrap_or(rounded);
        let is_plain = !extent.is_expandable && !extent.domain.is_small && !rules.is_expandable;
        if known.is_none() && is_plain {
            let next = by_address.get(place + 1).map_or(u64::MAX, |&next| all.address[next]);
            open.insert(address, Open { index, free_event, next: next.min(extent.end()) });
        }
    }
    narrow(lifetimes, older, &mut open);
    let mut uncertain = 0;
    for (address, one) in open {
        let rounded = sizes[one.index];
        let gap = one.next.saturating_sub(address.saturating_add(rounded));
        if gap <= MAX_SMALL || rounded >= rules.max_split {
            sizes[one.index] = rounded + gap;
        } else {
            uncertain += 1;
        }
    }
    pending.sort_unstable();
    Start { sizes, uncertain, pending }
}

/// The allocations that only a free shows, although another one got their memory before it.
fn doubtful(lifetimes: &Lifetimes, older: usize, end: i64) -> HashSet<usize> {
    let all = &lifetimes.allocations;
    let mut frees: Vec<(i64, usize)> =
        (0..older).map(|index| (all.free_event[index], index)).filter(|one| one.0 < end).collect();
    frees.sort_unstable();
    let mut alive: BTreeMap<u64, usize> = BTreeMap::new();
    let mut found = HashSet::new();
    for &(_, index) in &frees {
        if *alive.entry(all.address[index]).or_insert(index) != index {
            found.insert(index);
        }
    }
    let mut frees = frees.into_iter().peekable();
    for made in older..all.len() {
        let (address, event) = (all.address[made], all.alloc_event[made]);
        while let Some((_, freed)) = frees.next_if(|&(free_event, _)| free_event <= event) {
            alive.remove(&all.address[freed]);
        }
        if alive.is_empty() {
            break;
        }
        let until = address.saturating_add(all.size[made].max(1));
        while let Some((&at, &index)) = alive.range(address..until).next() {
            alive.remove(&at);
            found.insert(index);
        }
    }
    found
}

/// Moves `next` down to the lowest allocation that was ever made behind each while it lived.
fn narrow(lifetimes: &Lifetimes, older: usize, open: &mut BTreeMap<u64, Open>) {
    let all = &lifetimes.allocations;
    let mut alive: BTreeSet<u64> = open.keys().copied().collect();
    let mut frees: Vec<(i64, u64)> = open.iter().map(|(&at, one)| (one.free_event, at)).collect();
    frees.sort_unstable();
    let mut frees = frees.into_iter().peekable();
    for index in older..all.len() {
        let (address, event) = (all.address[index], all.alloc_event[index]);
        while let Some((_, freed)) = frees.next_if(|&(free_event, _)| free_event <= event) {
            alive.remove(&freed);
        }
        if alive.is_empty() {
            break;
        }
        let before = alive.range(..address).next_back();
        if let Some(one) = before.and_then(|before| open.get_mut(before)) {
            one.next = one.next.min(address);
        }
    }
}

fn active_blocks(snapshot: &Snapshot, device: i32) -> HashMap<u64, &Block> {
    let segments = snapshot.segments.iter().filter(|segment| segment.device == device);
    let blocks = segments.flat_map(|segment| &snapshot.blocks[segment.blocks.clone()]);
    let active = blocks.filter(|block| block.state.is_active());
    active.map(|block| (block.address, block)).collect()
}
