//! The memory that the allocator got from the device, from when to when.
//!
//! A snapshot has the segments at the end. What was there at the start follows by undoing the
//! segment events from the last to the first.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::Contradictions;
use super::heap::Domain;
use super::rules::{MAX_SMALL, Rules, SMALL_SEGMENT};
use crate::lifetimes::{BEFORE, Lifetimes};
use crate::snapshot::{Action, Event, Snapshot, Trace};

/// A range of memory that came from the device at once: a segment, or pages of an expandable one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where it begins.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
    /// What it is for.
    pub domain: Domain,
    /// Whether it is part of an expandable segment.
    pub is_expandable: bool,
    /// The event that it came with, or [`BEFORE`].
    pub born: i64,
    /// The event that it went with, or the number of events.
    pub died: i64,
}

impl Extent {
    /// Where it ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.address + self.size
    }
}

/// How many extents may be looked at in vain: a fraction of a second.
const MAX_STEPS: usize = 1 << 23;

/// Extents that are there at one moment, by their address. None overlaps another.
#[derive(Debug)]
pub(super) struct Extents(BTreeMap<u64, Extent>, usize);

impl Extents {
    /// All of them, in the order of addresses.
    pub fn iter(&self) -> impl Iterator<Item = &Extent> {
        self.0.values()
    }

    /// The extent that an address is in.
    pub fn around(&self, address: u64) -> Option<&Extent> {
        let (_, extent) = self.0.range(..=address).next_back()?;
        (address < extent.end()).then_some(extent)
    }

    /// An expandable extent that touches a range.
    pub fn beside(&self, address: u64, size: u64) -> Option<&Extent> {
        let before = self.0.range(..address).next_back().map(|(_, one)| one);
        let after = self.0.get(&address.saturating_add(size));
        let touches = |one: &&Extent| one.is_expandable && one.end() >= address;
        before.filter(touches).or(after.filter(touches))
    }

    /// Adds one; returns whether its place was empty.
    pub fn add(&mut self, extent: Extent) -> bool {
        let Some(end) = extent.address.checked_add(extent.size) else { return false };
        let before = self.0.range(..end).next_back();
        if extent.size == 0 || before.is_some_and(|(_, one)| one.end() > extent.address) {
            return false;
        }
        self.0.insert(extent.address, extent);
        true
    }

    /// Removes a plain segment; None if it is not there with this size.
    pub fn remove(&mut self, address: u64, size: u64) -> Option<Extent> {
        let found = self.0.get(&address).filter(|one| !one.is_expandable && one.size == size);
        found.is_some().then(|| self.0.remove(&address)).flatten()
    }

    /// Removes a range of expandable memory, which may be parts of several extents; none if any of it
    /// is missing.
    pub fn remove_range(&mut self, address: u64, size: u64) -> Vec<Extent> {
        let Some(end) = address.checked_add(size) else { return Vec::new() };
        let Some(first) = self.around(address).map(|one| one.address) else { return Vec::new() };
        let mut found: Vec<Extent> = Vec::new();
        let mut reached = first;
        for (_, &one) in self.0.range(first..end).take(self.1) {
            if !one.is_expandable || one.address != reached {
                break;
            }
            reached = one.end();
            found.push(one);
        }
        if size == 0 || reached < end {
            self.1 = self.1.saturating_sub(found.len());
            return Vec::new();
        }
        let part =
            |one: &Extent, from: u64, to: u64| Extent { address: from, size: to - from, ..*one };
        let mut removed = Vec::with_capacity(found.len());
        for one in &found {
            self.0.remove(&one.address);
            if one.address < address {
                self.0.insert(one.address, part(one, one.address, address));
            }
            if one.end() > end {
                self.0.insert(end, part(one, end, one.end()));
            }
            removed.push(part(one, one.address.max(address), one.end().min(end)));
        }
        removed
    }
}

/// The domain of an event's memory.
pub(super) struct Domains<'a> {
    snapshot: &'a Snapshot,
    lifetimes: &'a Lifetimes,
    rules: &'a Rules,
    /// 1 + the place of each pool in the device's list.
    pools: HashMap<(i64, i64), u16>,
}

impl<'a> Domains<'a> {
    pub fn new(snapshot: &'a Snapshot, lifetimes: &'a Lifetimes, rules: &'a Rules) -> Self {
        let pools = lifetimes.pools.iter().copied().zip(1..=u16::MAX).collect();
        Self { snapshot, lifetimes, rules, pools }
    }

    /// 1 + the place of a pool in the device's list; 0 if it is not there.
    fn pool(&self, pool: (i64, i64)) -> u16 {
        self.pools.get(&pool).copied().unwrap_or(0)
    }

    /// The pool that an event names; the default one if it names none.
    pub fn pool_of(&self, event: &Event) -> u16 {
        let named = self.snapshot.events.extras_table.get(event.extras).pool;
        let pool = named.checked_sub(1).map(|at| self.snapshot.pools[at as usize]);
        self.pool(pool.unwrap_or((0, 0)))
    }

    /// The domain of the memory of a segment event.
    fn of_event(&self, event: &Event) -> Domain {
        let is_page = matches!(event.action, Action::SEGMENT_MAP | Action::SEGMENT_UNMAP);
        let is_small = if is_page {
            !event.size.is_multiple_of(self.rules.large_segment)
        } else {
            event.size == SMALL_SEGMENT
        };
        Domain { pool: self.pool_of(event), is_small, stream: event.stream }
    }

    /// The extents at the end of the trace, as the file has them.
    fn at_end(&self, device: i32, events: i64, wrong: &mut Contradictions) -> Extents {
        let mut extents = Extents(BTreeMap::new(), MAX_STEPS);
        for segment in self.snapshot.segments.iter().filter(|one| one.device == device) {
            let is_small = self.snapshot.strings.get(segment.segment_type) == "small";
            let is_added = extents.add(Extent {
                address: segment.address,
                size: segment.total_size,
                domain: Domain { pool: self.pool(segment.pool), is_small, stream: segment.stream },
                is_expandable: segment.is_expandable,
                born: BEFORE,
                died: events,
            });
            wrong.segment_overlaps += u64::from(!is_added);
        }
        extents
    }

    /// The extents before the first event, and the domain of the memory of each segment event.
    pub fn at_start(
        &self,
        trace: &Trace,
        segment_rows: &[usize],
        wrong: &mut Contradictions,
    ) -> (Extents, Vec<Domain>) {
        let died = trace.rows.len() as i64;
        let mut extents = self.at_end(trace.device, died, wrong);
        let mut domains = Vec::with_capacity(segment_rows.len());
        for &row in segment_rows.iter().rev() {
            let event = self.snapshot.events.get(row);
            let Event { address, size, .. } = event;
            // What is there later has a known pool.
            let known = match event.action {
                Action::SEGMENT_ALLOC => extents.remove(address, size),
                Action::SEGMENT_MAP => {
                    let known = extents.remove_range(address, size).first().copied();
                    known.map(|known| self.sized(known, &event))
                }
                action => {
                    let is_expandable = action == Action::SEGMENT_UNMAP;
                    let near = extents.beside(address, size).filter(|_| is_expandable);
                    let domain = near.map_or_else(|| self.of_event(&event), |near| near.domain);
                    let new = Extent { address, size, domain, is_expandable, born: BEFORE, died };
                    extents.add(new).then_some(new)
                }
            };
            wrong.absent_segments += u64::from(known.is_none());
            domains.push(known.map_or_else(|| self.of_event(&event), |known| known.domain));
        }
        domains.reverse();
        if domains.len() > self.maps(segment_rows) {
            self.settle(&mut extents);
        }
        (extents, domains)
    }

    /// An extent with the kind that its `segment_map` event shows: small ones are of one page.
    fn sized(&self, known: Extent, event: &Event) -> Extent {
        if self.rules.large_segment == SMALL_SEGMENT {
            return known;
        }
        let is_small = self.of_event(event).is_small;
        Extent { domain: Domain { is_small, ..known.domain }, ..known }
    }

    /// How many segment events map memory.
    fn maps(&self, segment_rows: &[usize]) -> usize {
        let is_map = |&&row: &&usize| self.snapshot.events.action(row) == Action::SEGMENT_MAP;
        segment_rows.iter().filter(is_map).count()
    }

    /// Finds out what the expandable extents of the start are for: the size of what was unmapped at
    /// once need not show it, but the first allocation in each does.
    fn settle(&self, extents: &mut Extents) {
        let all = &self.lifetimes.allocations;
        let mut open: BTreeMap<u64, u64> = extents
            .iter()
            .filter(|one| one.is_expandable)
            .map(|one| (one.address, one.end()))
            .collect();
        for (&address, &size) in all.address.iter().zip(&all.size) {
            if open.is_empty() {
                break;
            }
            let around = open.range(..=address).next_back();
            if let Some((&start, _)) = around.filter(|&(_, &end)| address < end) {
                open.remove(&start);
                if let Some(extent) = extents.0.get_mut(&start) {
                    extent.domain.is_small = self.rules.round(size) <= MAX_SMALL;
                }
            }
        }
    }
}
