//! The allocator run freely: the requests of a trace under other settings, with other sizes or less
//! memory.
//!
//! Taken from the recording: what is requested and freed when, and when the program emptied the cache.
//! Not taken: segments, addresses, retries. What a program would have done after a request that failed
//! only here, or that failed only in the recording, nobody knows: the run ends there.
//!
//! # Invariants
//!
//! With the settings of the recording, from its first state, the run has the recording's curve of
//! reserved memory. At every event reserved memory is at least the active blocks.
//!
//! # Cost
//!
//! About 150 ns an event, as the replay; a release looks at every free block.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::addresses::{Addresses, Order, ROOM};
use super::growth::{Release, ReleaseCause};
use super::heap::{Block, Domain, FREE, Heap, Plan};
use super::rules::{MAX_SMALL, Rules};
use super::{Extent, Replay};
use crate::lifetimes::{BEFORE, Lifetimes};

/// The default memory pool, as in [`Domain::pool`].
const DEFAULT_POOL: u16 = 1;

/// What memory looks like before the first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// The segments and blocks of the recording.
    #[default]
    Kept,
    /// The blocks of the recording, allocated one after the other by the rules of the case.
    Rebuilt,
}

/// What is different from the recording.
#[derive(Debug, Clone)]
pub struct Case<'a> {
    /// The settings.
    pub rules: Rules,
    /// How many bytes the device can give; [`u64::MAX`] if that is no limit.
    pub capacity: u64,
    /// The part of the device that the program limits itself to; without it nothing is collected.
    pub allowed: Option<u64>,
    /// The requested bytes of each allocation; 0 leaves it out.
    pub sizes: &'a [u64],
    /// The event that frees each allocation.
    pub free_events: &'a [i64],
    /// Whether the program's calls of `empty_cache` are left out.
    pub keeps_cache: bool,
    /// How memory looks before the first event.
    pub start: Start,
    /// Where the device puts new segments.
    pub order: Order,
}

/// A request that failed in the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// When.
    pub event: i64,
    /// The rounded request.
    pub rounded_bytes: u64,
    /// What the device would have had to give.
    pub needed_bytes: u64,
    /// What the device had.
    pub available_bytes: u64,
    /// Whether the same request failed in the recording.
    pub was_recorded: bool,
}

/// The most of something, and when that was first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peak {
    /// How much.
    pub bytes: u64,
    /// After which event; [`BEFORE`] if that was before all events.
    pub event: i64,
}

impl Default for Peak {
    fn default() -> Self {
        Self { bytes: 0, event: BEFORE }
    }
}

impl Peak {
    fn see(&mut self, bytes: u64, event: i64) {
        if bytes > self.bytes {
            *self = Self { bytes, event };
        }
    }
}

/// How a simulation went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The most that was requested.
    pub requested: Peak,
    /// The most that blocks took.
    pub active: Peak,
    /// The most that came from the device.
    pub reserved: Peak,
    /// The events at which the device refused, so that cached memory went back to it.
    pub retries: Vec<i64>,
    /// The requests that failed; the last one ends the run unless it was recorded.
    pub failures: Vec<Failure>,
    /// A request that failed in the recording, and not here: what follows is not known.
    pub rescued: Option<i64>,
    /// Reserved memory after each event that changed it; the first is before all events.
    pub curve: Vec<(i64, u64)>,
    /// Whether the limit of work ended it.
    pub is_cut: bool,
}

/// How much may be looked at in releases: a few seconds.
const MAX_RELEASE_STEPS: u64 = 1 << 28;

/// Runs a case.
#[must_use]
pub fn simulate(lifetimes: &Lifetimes, replay: &Replay, case: &Case<'_>) -> Outcome {
    let events = lifetimes.totals.len();
    let kept = replay.extents.iter().filter(|one| one.born == BEFORE && case.start == Start::Kept);
    let kept: Vec<Extent> = kept.copied().collect();
    let mut run = Run {
        lifetimes,
        case,
        heap: Heap::new(events),
        addresses: Addresses::new(case.order, &kept),
        placed: vec![None; lifetimes.allocations.len()],
        requested: 0,
        active: 0,
        reserved: 0,
        searches: 0,
        free_since: HashMap::new(),
        ranges: HashMap::new(),
        held: Vec::new(),
        steps_left: MAX_RELEASE_STEPS,
        outcome: Outcome::default(),
    };
    for one in &kept {
        run.reserved = run.reserved.saturating_add(one.size);
        if one.is_expandable {
            run.heap.map(one.address, one.size, one.domain);
        } else {
            run.heap.add_segment(one.address, one.size, one.domain, 0);
        }
    }
    let older = run.begin(replay);
    run.see(BEFORE);
    run.outcome.curve.push((BEFORE, run.reserved));
    run.go(replay, older);
    run.outcome
}

struct Run<'a> {
    lifetimes: &'a Lifetimes,
    case: &'a Case<'a>,
    heap: Heap,
    addresses: Addresses,
    /// Where each allocation is, while it lives.
    placed: Vec<Option<u64>>,
    requested: u64,
    active: u64,
    reserved: u64,
    /// How often large blocks were searched, and since which search each whole segment is free.
    searches: u64,
    free_since: HashMap<u64, u64>,
    /// The expandable range of each domain.
    ranges: HashMap<Domain, u64>,
    /// Frees that the recorded allocator waited for after its search, and the `alloc` that waited.
    held: Vec<u32>,
    steps_left: u64,
    outcome: Outcome,
}

/// The device refused.
struct Refused {
    needed: u64,
}

impl Run<'_> {
    /// Places the allocations that are older than the trace; returns how many these are.
    fn begin(&mut self, replay: &Replay) -> usize {
        let all = &self.lifetimes.allocations;
        let older = all.alloc_event.partition_point(|&event| event == BEFORE);
        if self.case.start == Start::Rebuilt {
            for index in 0..older {
                if self.case.sizes[index] > 0 && replay.block_size[index] > 0 {
                    // One that does not fit is left out; the peak then shows it.
                    let _ = self.allocate(index, BEFORE);
                }
            }
            return older;
        }
        let kept = replay.extents.iter().filter(|one| one.born == BEFORE);
        let kept: BTreeMap<u64, &Extent> = kept.map(|one| (one.address, one)).collect();
        let mut by_address: Vec<usize> = (0..older).collect();
        by_address.sort_unstable_by_key(|&index| all.address[index]);
        for index in by_address {
            let (address, size) = (all.address[index], self.case.sizes[index]);
            let block = replay.block_size[index];
            let is_same = size == all.size[index];
            let taken = if is_same { block } else { self.case.rules.round(size).min(block) };
            let around = kept.range(..=address).next_back().map(|(_, one)| one);
            let around = around.filter(|one| address < one.end());
            let is_there = self.heap.block(address).is_some()
                || around.is_some_and(|one| self.heap.cut(address, one.domain));
            let fits = |found: &Block| found.owner == FREE && found.size >= taken;
            if size > 0 && block > 0 && is_there && self.heap.block(address).is_some_and(fits) {
                self.take(index, address, taken);
            }
        }
        older
    }

    /// Goes through the trace.
    fn go(&mut self, replay: &Replay, older: usize) {
        let all = &self.lifetimes.allocations;
        let end = self.lifetimes.totals.len() as i64;
        let frees = self.frees(end);
        let (waits, private) = (waits(replay), private_releases(replay));
        let (mut free, mut release, mut oom, mut wait) = (0, 0, 0, 0);
        let mut made = older;
        loop {
            let next_made = all.alloc_event.get(made).copied().unwrap_or(end);
            let next_oom = replay.ooms.get(oom).map_or(end, |one| one.event as i64);
            let next_release = replay.releases.get(release).map_or(end, |one| one.event as i64);
            let next_free = frees.get(free).map_or(end, |&(event, _)| event);
            let event = next_made.min(next_oom).min(next_release).min(next_free);
            if event >= end || self.outcome.is_cut {
                return;
            }
            if next_free == event {
                let index = frees[free].1;
                free += 1;
                while waits.get(wait).is_some_and(|&(_, until)| until <= event) {
                    wait += 1;
                }
                if waits.get(wait).is_some_and(|&(from, until)| (from..until).contains(&event)) {
                    self.held.push(index);
                } else {
                    self.free(index as usize);
                }
            } else if next_release == event {
                let empties = replay.releases[release].cause == ReleaseCause::EmptyCache;
                if empties && !self.case.keeps_cache {
                    for pool in pools_of(&replay.releases[release], &private) {
                        self.release_pool(pool, event);
                    }
                }
                release += 1;
            } else if next_made == event {
                if self.case.sizes[made] > 0 && !self.try_allocate(made, event) {
                    return;
                }
                made += 1;
            } else {
                let request = &replay.ooms[oom];
                oom += 1;
                if !self.retry_failed(request.domain, request.requested_bytes, event) {
                    return;
                }
            }
            self.see(event);
        }
    }

    /// The frees in the order of events.
    fn frees(&self, end: i64) -> Vec<(i64, u32)> {
        let events = (0..).zip(self.case.free_events).map(|(index, &event)| (event, index));
        let mut frees: Vec<(i64, u32)> = events.filter(|&(event, _)| event < end).collect();
        frees.sort_unstable();
        frees
    }

    /// Serves a request; returns whether the run goes on.
    fn try_allocate(&mut self, index: usize, event: i64) -> bool {
        let Err(refused) = self.allocate(index, event) else {
            self.end_waits();
            return true;
        };
        let rounded_bytes = self.case.rules.round(self.case.sizes[index]);
        self.fail(event, rounded_bytes, refused.needed, false);
        false
    }

    /// Tries a request that failed in the recording; returns whether the run goes on.
    fn retry_failed(&mut self, domain: Domain, rounded: u64, event: i64) -> bool {
        match self.place(domain, rounded, event) {
            Ok(_) => {
                self.outcome.rescued = Some(event);
                false
            }
            Err(refused) => {
                self.fail(event, rounded, refused.needed, true);
                true
            }
        }
    }

    fn fail(&mut self, event: i64, rounded_bytes: u64, needed_bytes: u64, was_recorded: bool) {
        let most = self.case.allowed.unwrap_or(u64::MAX).min(self.case.capacity);
        let available_bytes = most.saturating_sub(self.reserved);
        let failure = Failure { event, rounded_bytes, needed_bytes, available_bytes, was_recorded };
        self.outcome.failures.push(failure);
    }

    fn see(&mut self, event: i64) {
        self.outcome.requested.see(self.requested, event);
        self.outcome.active.see(self.active, event);
        self.outcome.reserved.see(self.reserved, event);
    }

    fn domain(&self, index: usize, rounded: u64) -> Domain {
        let all = &self.lifetimes.allocations;
        let pool = all.pool[index].max(DEFAULT_POOL);
        Domain { pool, is_small: rounded <= MAX_SMALL, stream: all.stream[index] }
    }

    fn allocate(&mut self, index: usize, event: i64) -> Result<(), Refused> {
        let rounded = self.case.rules.round(self.case.sizes[index]);
        let domain = self.domain(index, rounded);
        let address = self.place(domain, rounded, event)?;
        let found = self.heap.block(address).map_or(rounded, |block| block.size);
        let size = self.case.rules.taken(found.max(rounded), rounded, domain.is_small);
        self.take(index, address, size);
        Ok(())
    }

    fn take(&mut self, index: usize, address: u64, size: u64) {
        self.heap.take(address, size, index as u32);
        self.placed[index] = Some(address);
        self.active += size;
        self.requested = self.requested.saturating_add(self.case.sizes[index]);
    }

    fn free(&mut self, index: usize) {
        let Some(address) = self.placed[index].take() else { return };
        self.active -= self.heap.free(address).unwrap_or(0);
        self.requested = self.requested.saturating_sub(self.case.sizes[index]);
        if self.collects()
            && let Some((start, size)) = self.addresses.around(address)
            && let Some(block) = self.heap.block(start)
            && (block.owner, block.size) == (FREE, size)
        {
            self.free_since.insert(start, self.searches);
        }
    }

    /// Does the frees that waited for a request, after it.
    fn end_waits(&mut self) {
        for index in std::mem::take(&mut self.held) {
            self.free(index as usize);
        }
    }

    fn collects(&self) -> bool {
        self.case.allowed.is_some() && self.case.rules.collect_above > 0.0
    }

    /// Finds or makes the free block for a request; returns where it begins.
    fn place(&mut self, domain: Domain, rounded: u64, event: i64) -> Result<u64, Refused> {
        self.searches += u64::from(!domain.is_small && domain.pool == DEFAULT_POOL);
        if let Some(address) = self.heap.reusable(domain, rounded, &self.case.rules) {
            return Ok(address);
        }
        if self.collects() {
            self.collect(event);
        }
        if let Ok(address) = self.grow(domain, rounded, event) {
            return Ok(address);
        }
        if self.case.rules.max_split < u64::MAX
            && self.release_oversize(domain, rounded, event)
            && let Ok(address) = self.grow(domain, rounded, event)
        {
            return Ok(address);
        }
        self.end_waits();
        let before = self.reserved;
        self.release_pool(DEFAULT_POOL, event);
        // One that gives nothing back leaves no event in a recording, either.
        if self.reserved < before {
            self.outcome.retries.push(event);
        }
        self.grow(domain, rounded, event)
    }

    /// Gets memory from the device.
    fn grow(&mut self, domain: Domain, rounded: u64, event: i64) -> Result<u64, Refused> {
        let rules = &self.case.rules;
        // A program that limits itself counts a whole segment, even where less would be mapped.
        let segment = rules.segment_size(rounded);
        if self.case.allowed.is_some_and(|most| self.reserved.saturating_add(segment) > most) {
            return Err(Refused { needed: segment });
        }
        loop {
            let (address, size, block) = match self.heap.plan_growth(domain, rounded, rules) {
                Plan::Reuse(address) => return Ok(address),
                Plan::Segment(size) => {
                    let address = self.get(size, event, |addresses| addresses.reserve(size))?;
                    self.heap.add_segment(address, size, domain, 0);
                    return Ok(address);
                }
                Plan::Map { at: None, size, .. } => {
                    // PyTorch reserves 9/8 of the device's memory, which is never too little.
                    let range = ROOM.max(size);
                    let address = self.get(size, event, |addresses| addresses.reserve(range))?;
                    self.ranges.insert(domain, address);
                    (address, size, address)
                }
                Plan::Map { at: Some(at), size, block } => {
                    let address = self.get(size, event, |addresses| addresses.room(at, size))?;
                    (address, size, block.unwrap_or(address))
                }
            };
            self.heap.map(address, size, domain);
            let is_enough = |found: &Block| found.size >= rounded;
            if self.heap.block(block).is_some_and(is_enough) {
                return Ok(block);
            }
        }
    }

    /// Counts memory that comes from the device, if it has so much, and finds its address.
    fn get(
        &mut self,
        size: u64,
        event: i64,
        find: impl FnOnce(&mut Addresses) -> Option<u64>,
    ) -> Result<u64, Refused> {
        let refused = Refused { needed: size };
        let Some(reserved) = self.reserved.checked_add(size) else { return Err(refused) };
        if reserved > self.case.capacity {
            return Err(refused);
        }
        let address = find(&mut self.addresses).ok_or(refused)?;
        self.reserved = reserved;
        self.draw(event);
        Ok(address)
    }

    fn draw(&mut self, event: i64) {
        let curve = &mut self.outcome.curve;
        match curve.last_mut() {
            Some(last) if last.0 == event => last.1 = self.reserved,
            _ => curve.push((event, self.reserved)),
        }
    }

    /// Gives back all of a pool that is free and whole.
    fn release_pool(&mut self, pool: u16, event: i64) {
        let found = self.heap.releasable(&self.case.rules, pool);
        self.steps_left = self.steps_left.saturating_sub(self.heap.len() as u64);
        self.outcome.is_cut = self.steps_left == 0;
        for part in found {
            if part.is_expandable {
                self.heap.unmap(part.address, part.size, part.domain);
                if !self.heap.has_mapped(part.domain)
                    && let Some(start) = self.ranges.remove(&part.domain)
                {
                    self.addresses.release(start);
                }
            } else {
                self.give_back(part.address, part.size);
            }
            self.reserved -= if part.is_expandable { part.size } else { 0 };
        }
        self.draw(event);
    }

    fn give_back(&mut self, address: u64, size: u64) -> bool {
        let is_gone = self.heap.remove_segment(address, size);
        if is_gone {
            self.addresses.release(address);
            self.free_since.remove(&address);
            self.reserved -= size;
        }
        is_gone
    }

    /// Gives back blocks that are too large to be split: one that is enough, or the largest ones.
    fn release_oversize(&mut self, domain: Domain, rounded: u64, event: i64) -> bool {
        let wanted = rounded.max(self.case.rules.max_split);
        let mut found = self.heap.releasable(&self.case.rules, domain.pool);
        self.steps_left = self.steps_left.saturating_sub(self.heap.len() as u64);
        found.retain(|one| one.domain == domain && !one.is_expandable);
        found.sort_unstable_by_key(|one| (one.size, one.address));
        let enough = found.partition_point(|one| one.size < wanted);
        let mut released = 0;
        if let Some(one) = found.get(enough) {
            released = if self.give_back(one.address, one.size) { wanted } else { 0 };
        } else {
            for one in found.iter().rev().filter(|one| one.size >= self.case.rules.max_split) {
                if released >= wanted {
                    break;
                }
                released += if self.give_back(one.address, one.size) { one.size } else { 0 };
            }
        }
        self.draw(event);
        released >= wanted
    }

    /// Collects garbage: whole large segments that have been free for longer than others, until
    /// reserved memory is below the threshold.
    fn collect(&mut self, event: i64) {
        let allowed = self.case.allowed.unwrap_or(u64::MAX);
        let threshold = (self.case.rules.collect_above * allowed as f64) as u64;
        if self.reserved <= threshold {
            return;
        }
        let target = self.reserved - threshold;
        let mut found = self.heap.releasable(&self.case.rules, DEFAULT_POOL);
        self.steps_left = self.steps_left.saturating_sub(self.heap.len() as u64);
        found.retain(|one| !one.domain.is_small && !one.is_expandable);
        let age = |run: &Self, address: u64| {
            run.searches - run.free_since.get(&address).copied().unwrap_or(0)
        };
        let mut total: u64 = found.iter().map(|one| age(self, one.address)).sum();
        let mut reclaimed = 0;
        while reclaimed < target && !found.is_empty() {
            let mean = total as f64 / found.len() as f64;
            let before = found.len();
            found.retain(|one| {
                let years = age(self, one.address);
                let is_old = years as f64 >= mean;
                if is_old && self.give_back(one.address, one.size) {
                    total -= years;
                    reclaimed += one.size;
                }
                !is_old
            });
            if found.len() == before {
                break;
            }
        }
        self.draw(event);
    }
}

/// The memory of other pools than the default one that went back: when, and of which pool.
fn private_releases(replay: &Replay) -> Vec<(i64, u16)> {
    let private = replay.extents.iter().filter(|one| one.domain.pool != DEFAULT_POOL);
    let mut found: Vec<(i64, u16)> = private.map(|one| (one.died, one.domain.pool)).collect();
    found.sort_unstable();
    found
}

/// The pools that a release gave memory back of, and the default one: whether another pool could have
/// given any is not in the file.
fn pools_of(release: &Release, private: &[(i64, u16)]) -> BTreeSet<u16> {
    let from = release.event as i64;
    let to = from + release.events as i64;
    let first = private.partition_point(|&(event, _)| event < from);
    let gone = private[first..].iter().take_while(|&&(event, _)| event < to);
    gone.map(|&(_, pool)| pool).chain([DEFAULT_POOL]).collect()
}

/// The events between a search and the memory that the device gave in the end: frees among them were
/// waited for.
fn waits(replay: &Replay) -> Vec<(i64, i64)> {
    let all = replay.growths.iter().map(|one| (one.searched_event as i64, one.event as i64));
    all.filter(|(from, until)| from < until).collect()
}
