//! Applies the events of a trace to a heap, and compares each placement with the predicted one.
//!
//! A prediction is made of the state in which the allocator searched. For an allocation that needed
//! memory from the device that is before its segment events; if the device refused at first, before
//! the frees that the allocator waited for and the segments that it gave back.

use std::ops::Range;

use hashbrown::HashSet;

use super::extents::{Domains, Extent, Extents};
use super::growth::{self, Growth, is_growth, is_release};
use super::heap::{Block, Domain, FREE, Heap, PLACEHOLDER, Plan};
use super::oom::{self, Facts, Oom};
use super::rules::{MAX_SMALL, MIN_BLOCK, Rules, Ties};
use super::{Contradictions, Replay, start};
use crate::lifetimes::Lifetimes;
use crate::snapshot::{Action, Event, HOST, Snapshot};

/// Replays the trace of one device with these rules.
pub(super) fn run(
    snapshot: &Snapshot,
    which: usize,
    lifetimes: &Lifetimes,
    rules: Rules,
) -> Replay {
    let trace = &snapshot.traces[which];
    let rows = trace.rows.clone();
    let mut is_wanted = [false; 256];
    for number in 0..=u8::MAX {
        is_wanted[usize::from(number)] = is_growth(Action(number)) || is_release(Action(number));
    }
    let segment_rows: Vec<usize> = snapshot.events.with_action(rows.clone(), &is_wanted).collect();
    let mut contradictions = Contradictions::default();
    let domains = Domains::new(snapshot, lifetimes, &rules);
    let (extents, event_domains) = domains.at_start(trace, &segment_rows, &mut contradictions);
    let start = start::find(snapshot, lifetimes, &extents, &rules);
    let counts = snapshot.events.action_counts();
    let mut pass = Pass {
        snapshot,
        lifetimes,
        rules: &rules,
        domains: &domains,
        rows: rows.clone(),
        heap: Heap::new(rows.len()),
        alive: extents,
        gone: Vec::new(),
        attempts: attempts(snapshot, &rows, &segment_rows),
        active_bytes: 0,
        reserved_bytes: 0,
        capacity_seen: 0,
        ends_at_request: counts[usize::from(Action::FREE_COMPLETED.0)] == 0,
        next_made: start.sizes.len(),
        next_segment: 0,
        next_attempt: 0,
        expected: None,
        known_contradictions: 0,
        bookkeeping: bookkeeping(snapshot),
        result: Replay {
            uncertain_blocks: start.uncertain,
            pending_at_start: start.pending,
            contradictions,
            ..Replay::default()
        },
    };
    pass.begin(&start.sizes);
    pass.known_contradictions = pass.result.contradictions.total();
    for row in rows.clone() {
        pass.step(row, &event_domains);
    }
    pass.finish();
    let mut result = pass.result;
    result.releases = growth::releases(snapshot, rows, &segment_rows, rules.collect_above > 0.0);
    oom::add_releases(&mut result.ooms, &result.releases);
    result.rules = rules;
    result
}

/// The extras of the allocator's own bookkeeping.
fn bookkeeping(snapshot: &Snapshot) -> HashSet<u32> {
    let extras = (0..).zip(snapshot.events.extras_table.items());
    let is_ours = |metadata: u32| snapshot.strings.get(metadata) == "mallocWithAddress";
    extras.filter(|(_, one)| is_ours(one.internal_metadata)).map(|(id, _)| id).collect()
}

/// An allocation that needed memory from the device.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    /// The row before which the allocator searched.
    searched: usize,
    /// The first segment event of the memory that it got, and its place among all segment events.
    growth: usize,
    segment: usize,
    /// Its `alloc`.
    alloc: usize,
}

/// What the rules predict for an attempt.
#[derive(Debug)]
struct Prediction {
    attempt: Attempt,
    domain: Domain,
    rounded: u64,
    /// Whether a free block would have done.
    fits: bool,
    /// How memory comes from the device.
    plan: Option<Plan>,
}

/// Finds the allocations that needed memory from the device, in order.
fn attempts(snapshot: &Snapshot, rows: &Range<usize>, segment_rows: &[usize]) -> Vec<Attempt> {
    let events = &snapshot.events;
    let mut all: Vec<Attempt> = Vec::new();
    let mut next = rows.start;
    for (segment, &growth) in segment_rows.iter().enumerate() {
        if growth < next || !is_growth(events.action(growth)) {
            continue;
        }
        next = (growth..rows.end).find(|&row| !is_growth(events.action(row))).unwrap_or(rows.end);
        if next < rows.end && events.action(next) == Action::ALLOC {
            let floor = all.last().map_or(rows.start, |last| last.alloc + 1);
            let searched = search_row(snapshot, floor, growth);
            all.push(Attempt { searched, growth, segment, alloc: next });
        }
    }
    all
}

/// The row before which the allocator searched: before what it gave back, what it waited for and what
/// it had mapped in vain after the device had refused.
fn search_row(snapshot: &Snapshot, floor: usize, growth: usize) -> usize {
    let events = &snapshot.events;
    let stack = events.get(growth).stack;
    let before = |row: usize| {
        let before = (row > floor).then(|| events.get(row - 1));
        before.filter(|one| one.stack == stack)
    };
    let mut searched = growth;
    while let Some(one) = before(searched) {
        let has_failed = searched < growth;
        let is_part = is_release(one.action)
            || has_failed && is_growth(one.action)
            || has_failed && one.action == Action::FREE_COMPLETED && {
                let request = before(searched - 1);
                request.is_none_or(|request| {
                    (request.action, request.address) != (Action::FREE_REQUESTED, one.address)
                })
            };
        if !is_part {
            break;
        }
        searched -= 1;
    }
    searched
}

struct Pass<'a> {
    snapshot: &'a Snapshot,
    lifetimes: &'a Lifetimes,
    rules: &'a Rules,
    domains: &'a Domains<'a>,
    rows: Range<usize>,
    heap: Heap,
    /// The extents that are there, and those that are not any more.
    alive: Extents,
    gone: Vec<Extent>,
    attempts: Vec<Attempt>,
    active_bytes: u64,
    reserved_bytes: u64,
    /// How much of the device's memory the allocator is known to have been able to get.
    capacity_seen: u64,
    /// Whether frees end at the request, because the file has no completions.
    ends_at_request: bool,
    /// The allocation that the next `alloc` makes.
    next_made: usize,
    next_segment: usize,
    next_attempt: usize,
    /// What the attempt under way should do.
    expected: Option<Prediction>,
    /// How many contradictions there were before the event.
    known_contradictions: u64,
    bookkeeping: HashSet<u32>,
    result: Replay,
}

impl Pass<'_> {
    /// Puts the blocks of the start into their segments.
    fn begin(&mut self, sizes: &[u64]) {
        for extent in self.alive.iter() {
            self.reserved_bytes += extent.size;
            if extent.is_expandable {
                self.heap.map(extent.address, extent.size, extent.domain);
            } else {
                self.heap.add_segment(extent.address, extent.size, extent.domain, 0);
            }
        }
        self.capacity_seen = self.reserved_bytes;
        self.result.block_size = vec![0; self.lifetimes.allocations.len()];
        let all = &self.lifetimes.allocations;
        let mut by_address: Vec<usize> = (0..sizes.len()).collect();
        by_address.sort_unstable_by_key(|&index| all.address[index]);
        for index in by_address {
            let (address, size) = (all.address[index], sizes[index]);
            if size == 0 && all.free_event[index] < self.rows.len() as i64 {
                // Only its free shows it, which will be found to be wrong.
                continue;
            }
            self.result.block_size[index] = size.max(self.rules.round(all.size[index]));
            // Two allocations may claim the same memory; the second then has no block.
            let domain = self.alive.around(address).map(|extent| extent.domain);
            let is_placed = domain.is_some_and(|domain| {
                (self.heap.block(address).is_some() || self.heap.cut(address, domain))
                    && self.fits(address, size)
            });
            if is_placed {
                self.heap.take(address, size, index as u32);
                self.active_bytes += size;
            } else {
                self.result.contradictions.not_free += 1;
                self.result.first_contradiction.get_or_insert(0);
            }
        }
    }

    fn fits(&self, address: u64, size: u64) -> bool {
        self.heap.block(address).is_some_and(|block| block.owner == FREE && block.size >= size)
    }

    fn step(&mut self, row: usize, domains: &[Domain]) {
        if self.attempts.get(self.next_attempt).is_some_and(|one| one.searched == row) {
            self.search(domains);
        }
        if let Some(expected) = self.expected.as_mut().filter(|one| one.attempt.growth == row) {
            let plan = self.heap.plan_growth(expected.domain, expected.rounded, self.rules);
            expected.plan = Some(plan);
        }
        let action = self.snapshot.events.action(row);
        match action {
            Action::ALLOC => self.alloc(row),
            Action::FREE_COMPLETED => self.free(row),
            Action::FREE_REQUESTED if self.ends_at_request => self.free(row),
            Action::SEGMENT_ALLOC
            | Action::SEGMENT_FREE
            | Action::SEGMENT_MAP
            | Action::SEGMENT_UNMAP => {
                let domain = domains[self.next_segment];
                self.next_segment += 1;
                self.segment(row, domain);
            }
            Action::OOM if self.lifetimes.device != HOST => self.oom(row),
            Action::SNAPSHOT if self.lifetimes.device != HOST => {
                let size = self.snapshot.events.get(row).size;
                let is_same = size == 0 || size == self.active_bytes;
                self.result.contradictions.snapshot_bytes += u64::from(!is_same);
            }
            // Nothing has changed.
            _ => return,
        }
        let contradictions = self.result.contradictions.total();
        if contradictions != self.known_contradictions {
            self.known_contradictions = contradictions;
            self.result.first_contradiction.get_or_insert(row - self.rows.start);
        }
    }

    /// Predicts what the attempt that begins here does.
    fn search(&mut self, domains: &[Domain]) {
        let attempt = self.attempts[self.next_attempt];
        self.next_attempt += 1;
        let events = &self.snapshot.events;
        let alloc = events.get(attempt.alloc);
        let rounded = self.rules.round(alloc.size);
        let pool = domains[attempt.segment].pool;
        let domain = Domain { pool, is_small: rounded <= MAX_SMALL, stream: alloc.stream };
        let fits = self.heap.reusable(domain, rounded, self.rules).is_some();
        let mut found = Growth::of(&mut self.heap, domain, rounded);
        found.event = attempt.growth - self.rows.start;
        found.searched_event = attempt.searched - self.rows.start;
        found.alloc_event = attempt.alloc - self.rows.start;
        found.stack = alloc.stack;
        let grown = (attempt.growth..attempt.alloc).map(|row| events.get(row).size);
        found.grown_bytes = grown.fold(0, u64::saturating_add);
        self.result.growths.push(found);
        self.expected = Some(Prediction { attempt, domain, rounded, fits, plan: None });
    }

    fn segment(&mut self, row: usize, domain: Domain) {
        let Event { action, address, size, .. } = self.snapshot.events.get(row);
        let event = (row - self.rows.start) as i64;
        let end = self.rows.len() as i64;
        let is_expandable = matches!(action, Action::SEGMENT_MAP | Action::SEGMENT_UNMAP);
        if is_growth(action) {
            let new = Extent { address, size, domain, is_expandable, born: event, died: end };
            if !self.alive.add(new) {
                self.result.contradictions.segment_overlaps += 1;
                return;
            }
            self.reserved_bytes += size;
            self.capacity_seen = self.capacity_seen.max(self.reserved_bytes);
            if is_expandable {
                self.heap.map(address, size, domain);
            } else {
                // The order of those that are older than the trace is not known.
                let rank = match self.rules.ties {
                    Ties::Address => 0,
                    Ties::Segment => event as u32 + 1,
                };
                self.heap.add_segment(address, size, domain, rank);
            }
            return;
        }
        let domain = self.alive.around(address).map_or(domain, |extent| extent.domain);
        let is_free = if is_expandable {
            self.heap.unmap(address, size, domain)
        } else {
            self.heap.remove_segment(address, size)
        };
        if !is_free {
            self.result.contradictions.busy_releases += 1;
            return;
        }
        let removed = if is_expandable {
            self.alive.remove_range(address, size)
        } else {
            self.alive.remove(address, size).into_iter().collect()
        };
        for one in removed {
            self.reserved_bytes -= one.size;
            self.gone.push(Extent { died: event, ..one });
        }
    }

    fn alloc(&mut self, row: usize) {
        let event = self.snapshot.events.get(row);
        let owner = if self.bookkeeping.contains(&event.extras) {
            PLACEHOLDER
        } else {
            self.next_made += 1;
            self.next_made as u32 - 1
        };
        let rounded = self.rules.round(event.size);
        if owner != PLACEHOLDER {
            self.result.block_size[owner as usize] = rounded;
        }
        let is_taken = |found: &Block| found.owner != FREE;
        if self.heap.block(event.address).is_some_and(is_taken) && self.end(event.address) {
            // Its free was lost.
            self.result.contradictions.not_free += 1;
        }
        if self.lifetimes.device != HOST {
            self.compare(row, &event, rounded);
        }
        self.align(&event, rounded);
        if self.heap.block(event.address).is_none() {
            self.result.contradictions.not_free += 1;
            let around = self.alive.around(event.address).map(|extent| extent.domain);
            if !around.is_some_and(|domain| self.heap.cut(event.address, domain)) {
                return;
            }
        }
        let Some(block) = self.heap.block(event.address) else { return };
        let domain = self.heap.domain(block);
        if block.size < rounded {
            self.result.contradictions.too_small += 1;
            return;
        }
        let is_small = rounded <= MAX_SMALL;
        let size = if self.lifetimes.device == HOST {
            block.size
        } else {
            let is_right = domain.is_small == is_small && domain.stream == event.stream;
            self.result.contradictions.wrong_domain += u64::from(!is_right);
            self.rules.taken(block.size, rounded, is_small)
        };
        self.heap.take(event.address, size, owner);
        self.active_bytes += size;
        if owner != PLACEHOLDER {
            self.result.block_size[owner as usize] = size;
        }
    }

    /// Compares where an allocation is with where the rules put it.
    fn compare(&mut self, row: usize, event: &Event, rounded: u64) {
        let expected = self.expected.take().filter(|one| one.attempt.alloc == row);
        let is_right = if let Some(Prediction { attempt, fits, plan, .. }) = expected {
            let growth = self.snapshot.events.get(attempt.growth);
            match plan {
                _ if fits => false,
                None | Some(Plan::Reuse(_)) => false,
                Some(Plan::Segment(size)) => {
                    growth.action == Action::SEGMENT_ALLOC
                        && (growth.size, growth.address) == (size, event.address)
                }
                Some(Plan::Map { at, size, block }) => {
                    // Memory below all that was ever mapped: where the range begins is not known.
                    growth.action == Action::SEGMENT_MAP
                        && at.is_none_or(|at| at == growth.address)
                        && size == growth.size
                        && block.is_none_or(|block| self.begins(block, rounded) == event.address)
                }
            }
        } else {
            let Some(domain) = self.searched(event) else { return };
            let domain = Domain { is_small: rounded <= MAX_SMALL, stream: event.stream, ..domain };
            let plan = self.heap.plan(domain, rounded, self.rules);
            self.is_here(plan, event, rounded)
                || self.is_retry(row, event) && {
                    let plan = self.heap.plan_growth(domain, rounded, self.rules);
                    self.is_here(plan, event, rounded)
                }
        };
        self.result.placements += 1;
        self.result.as_recorded += u64::from(is_right);
        self.result.contradictions.mispredicted += u64::from(!is_right);
    }

    /// The domain of the memory that an allocation is in; None if it begins in no free block.
    fn searched(&self, event: &Event) -> Option<Domain> {
        match self.heap.block(event.address) {
            Some(block) => Some(self.heap.domain(block)),
            None if self.rules.align > 0 => Some(self.alive.around(event.address)?.domain),
            None => None,
        }
    }

    /// Whether the rules put an allocation where it is.
    fn is_here(&self, plan: Plan, event: &Event, rounded: u64) -> bool {
        matches!(plan, Plan::Reuse(block) if self.begins(block, rounded) == event.address)
    }

    /// Where a request begins in the free block at an address.
    fn begins(&self, block: u64, rounded: u64) -> u64 {
        let size = self.heap.block(block).map_or(0, |one| one.size);
        self.rules.begins(block, size, rounded)
    }

    /// Cuts off what a fork leaves free before a large request.
    fn align(&mut self, event: &Event, rounded: u64) {
        if self.rules.align == 0 || self.heap.block(event.address).is_some() {
            return;
        }
        let Some(domain) = self.alive.around(event.address).map(|one| one.domain) else { return };
        if let Some(block) = self.heap.reusable(domain, rounded, self.rules)
            && self.begins(block, rounded) == event.address
        {
            self.heap.cut_at(block, event.address);
        }
    }

    /// Whether the allocator may have searched before the events that precede an `alloc`: it does
    /// not search again after it has waited for other streams and given memory back.
    fn is_retry(&self, row: usize, event: &Event) -> bool {
        let before = (row > self.rows.start).then(|| self.snapshot.events.get(row - 1));
        before.is_some_and(|one| {
            one.stack == event.stack
                && (is_release(one.action) || one.action == Action::FREE_COMPLETED)
        })
    }

    fn free(&mut self, row: usize) {
        let is_known = self.end(self.snapshot.events.get(row).address);
        self.result.contradictions.unplaced_frees += u64::from(!is_known);
    }

    /// Frees the block at an address; returns whether there was one in use.
    fn end(&mut self, address: u64) -> bool {
        let freed = self.heap.free(address);
        self.active_bytes -= freed.unwrap_or(0);
        freed.is_some()
    }

    /// Describes a request that the device could not serve.
    fn oom(&mut self, row: usize) {
        let event = self.snapshot.events.get(row);
        let at = row - self.rows.start;
        // The event has the rounded size.
        let rounded = event.size.max(MIN_BLOCK);
        let is_small = rounded <= MAX_SMALL;
        let domain = Domain { pool: self.domains.pool_of(&event), is_small, stream: event.stream };
        let (domain_free_bytes, largest_free_bytes) = self.heap.free_in(domain);
        let needed_bytes = match self.heap.plan_growth(domain, rounded, self.rules) {
            Plan::Reuse(_) => 0,
            _ if largest_free_bytes >= rounded
                && self.heap.reusable(domain, rounded, self.rules).is_some() =>
            {
                0
            }
            Plan::Segment(size) | Plan::Map { size, .. } => size,
        };
        let oom = Oom::judged(Facts {
            event: at,
            stack: event.stack,
            domain,
            requested_bytes: rounded,
            device_free_bytes: event.address,
            live_bytes: self.lifetimes.totals.get(at).copied().unwrap_or(0),
            active_bytes: self.active_bytes,
            reserved_bytes: self.reserved_bytes,
            domain_free_bytes,
            largest_free_bytes,
            other: self.heap.most_free_outside(domain),
            needed_bytes,
            capacity_seen_bytes: self.capacity_seen,
            released_bytes: 0,
        });
        if !oom.is_limited() {
            self.capacity_seen = self.capacity_seen.max(oom.capacity_bytes());
        }
        self.result.ooms.push(oom);
    }

    /// Compares the blocks with those that the file has at the end.
    fn finish(&mut self) {
        self.gone.extend(self.alive.iter());
        self.gone.sort_by_key(|extent| (extent.born, extent.address));
        self.result.extents = std::mem::take(&mut self.gone);
        let device = self.lifetimes.device;
        let segments = self.snapshot.segments.iter().filter(|one| one.device == device);
        let mut count = 0;
        let mut wrong = 0;
        for segment in segments {
            for block in &self.snapshot.blocks[segment.blocks.clone()] {
                count += 1;
                let ours = self.heap.block(block.address);
                let is_same = ours.is_some_and(|ours| {
                    ours.size == block.size && (ours.owner == FREE) != block.state.is_active()
                });
                wrong += u64::from(!is_same);
            }
        }
        if self.snapshot.has_segments(device) {
            wrong += (self.heap.len() as u64).saturating_sub(count);
            self.result.contradictions.final_blocks = wrong;
        }
        if wrong > 0 {
            self.result.first_contradiction.get_or_insert(self.rows.len().saturating_sub(1));
        }
    }
}
