//! The allocator's memory at one moment: segments cut into blocks, and the free blocks by size.
//!
//! Blocks are known by their address and linked to their neighbours; free neighbours are always one
//! block. A *domain* is what shares free blocks: a memory pool, small or large, of one stream.
//!
//! # Cost
//!
//! Taking and freeing a block: a look-up by address and a few steps in a tree of the domain's free
//! blocks, about 150 ns. Memory: 40 bytes a block.

use std::collections::BTreeMap;
use std::ops::Bound;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::rules::Rules;

/// What shares free blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Domain {
    /// The memory pool, as in [`crate::lifetimes::Allocations::pool`]; 0 if it is not known.
    pub pool: u16,
    /// Whether it is for requests of at most 1 MiB.
    pub is_small: bool,
    /// The stream.
    pub stream: i64,
}

impl Domain {
    /// The order in which domains are listed: by pool, large before small, by stream.
    #[must_use]
    pub fn order(self) -> (u16, bool, i64) {
        (self.pool, self.is_small, self.stream)
    }
}

/// The owner of a free block.
pub const FREE: u32 = u32::MAX;
/// The owner of a block that belongs to no allocation.
pub const PLACEHOLDER: u32 = u32::MAX - 1;

const NONE: u32 = u32::MAX;

/// A part of a segment.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// Where it begins.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
    /// The number of the allocation that has it, or [`FREE`].
    pub owner: u32,
    domain: u32,
    is_expandable: bool,
    previous: u32,
    next: u32,
    /// What ties between blocks of one size are decided by, before the address.
    rank: u32,
}

impl Block {
    fn end(&self) -> u64 {
        self.address + self.size
    }
}

#[derive(Debug)]
struct DomainBlocks {
    key: Domain,
    /// The free blocks, by size, rank and address.
    free: BTreeMap<(u64, u32, u64), u32>,
    /// The mapped ranges of expandable segments: start, end.
    mapped: BTreeMap<u64, u64>,
    /// The lowest address that was mapped since nothing was.
    base: u64,
    free_bytes: u64,
}

impl DomainBlocks {
    fn largest(&self) -> u64 {
        self.free.last_key_value().map_or(0, |(&(size, ..), _)| size)
    }

    /// Where the next mapped range begins.
    fn next_mapped(&self, from: u64) -> u64 {
        self.mapped.range(from..).next().map_or(u64::MAX, |(&start, _)| start)
    }

    /// The size that a block could grow to.
    fn room(&self, block: &Block) -> u64 {
        if block.is_expandable && block.next == NONE {
            self.next_mapped(block.end()) - block.address
        } else {
            block.size
        }
    }
}

/// What the allocator would do with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Take the free block at this address.
    Reuse(u64),
    /// Get a segment of this size from the device.
    Segment(u64),
    /// Map this many bytes at `at`, after which the block at `block` fits.
    Map {
        /// Where; None in a new range of addresses.
        at: Option<u64>,
        /// How many bytes, in whole pages.
        size: u64,
        /// Where the block begins.
        block: Option<u64>,
    },
}

/// Free memory that could go back to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Releasable {
    /// Where it begins.
    pub address: u64,
    /// Its bytes: a whole segment, or whole pages of an expandable one.
    pub size: u64,
    /// What it is for.
    pub domain: Domain,
    /// Whether it is part of an expandable segment.
    pub is_expandable: bool,
}

/// All segments of a device.
#[derive(Debug)]
pub struct Heap {
    blocks: Vec<Block>,
    /// Numbers of blocks that are no longer used.
    spare: Vec<u32>,
    /// The block that begins at each address.
    at: HashMap<u64, u32, foldhash::fast::RandomState>,
    /// The last block of each mapped range, by the range's end.
    tails: HashMap<u64, u32>,
    domains: Vec<DomainBlocks>,
    numbers: HashMap<Domain, u32>,
    last: Option<(Domain, u32)>,
    /// How many blocks may still be looked at one after the other.
    steps_left: u64,
}

/// How many domains are searched for a block that another one could have used.
const MAX_DOMAINS: usize = 1000;

/// About a second of work, and some more for each event.
const MAX_STEPS: u64 = 1 << 26;
const MAX_STEPS_AN_EVENT: u64 = 64;

impl Heap {
    /// Nothing yet, for a trace of so many events.
    #[must_use]
    pub fn new(events: usize) -> Self {
        Self {
            blocks: Vec::new(),
            spare: Vec::new(),
            at: HashMap::default(),
            tails: HashMap::new(),
            domains: Vec::new(),
            numbers: HashMap::new(),
            last: None,
            steps_left: MAX_STEPS + MAX_STEPS_AN_EVENT * events as u64,
        }
    }

    /// How many blocks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// The block that begins at an address.
    #[must_use]
    pub fn block(&self, address: u64) -> Option<&Block> {
        self.at.get(&address).map(|&id| &self.blocks[id as usize])
    }

    /// The domain of a block.
    #[must_use]
    pub fn domain(&self, block: &Block) -> Domain {
        self.domains[block.domain as usize].key
    }

    /// The free bytes of a domain, and its largest free block.
    pub fn free_in(&mut self, key: Domain) -> (u64, u64) {
        let number = self.number(key) as usize;
        (self.domains[number].free_bytes, self.domains[number].largest())
    }

    /// The largest free block of any other domain.
    #[must_use]
    pub fn largest_outside(&self, key: Domain) -> u64 {
        let others = self.domains.iter().filter(|domain| domain.key != key);
        others.take(MAX_DOMAINS).map(DomainBlocks::largest).max().unwrap_or(0)
    }

    /// The other domain with the most free bytes, and how many.
    #[must_use]
    pub fn most_free_outside(&self, key: Domain) -> Option<(Domain, u64)> {
        let others = self.domains.iter().filter(|domain| domain.key != key).take(MAX_DOMAINS);
        let free = others.map(|domain| (domain.key, domain.free_bytes));
        free.filter(|one| one.1 > 0).max_by_key(|&(key, bytes)| (bytes, std::cmp::Reverse(key)))
    }

    /// The free memory of a pool that could go back to the device.
    #[must_use]
    pub fn releasable(&self, rules: &Rules, pool: u16) -> Vec<Releasable> {
        let mut found = Vec::new();
        for one in self.domains.iter().filter(|one| one.key.pool == pool) {
            let page = rules.page(one.key.is_small);
            for &id in one.free.values() {
                let block = &self.blocks[id as usize];
                let (mut address, mut size) = (block.address, block.size);
                if block.is_expandable {
                    let first = (address - one.base).div_ceil(page);
                    let last = (block.end() - one.base) / page;
                    address = one.base + first * page;
                    size = last.saturating_sub(first) * page;
                } else if block.previous != NONE || block.next != NONE {
                    continue;
                }
                let is_expandable = block.is_expandable;
                if size > 0 {
                    found.push(Releasable { address, size, domain: one.key, is_expandable });
                }
            }
        }
        found
    }

    /// Whether a domain has any expandable memory.
    #[must_use]
    pub fn has_mapped(&self, key: Domain) -> bool {
        let number = self.numbers.get(&key);
        number.is_some_and(|&number| !self.domains[number as usize].mapped.is_empty())
    }

    fn number(&mut self, key: Domain) -> u32 {
        if let Some((last, number)) = self.last
            && last == key
        {
            return number;
        }
        let domains = &mut self.domains;
        let number = *self.numbers.entry(key).or_insert_with(|| {
            let (free, mapped) = (BTreeMap::new(), BTreeMap::new());
            domains.push(DomainBlocks { key, free, mapped, base: u64::MAX, free_bytes: 0 });
            domains.len() as u32 - 1
        });
        self.last = Some((key, number));
        number
    }

    fn add(&mut self, block: Block) -> u32 {
        let id = match self.spare.pop() {
            Some(id) => {
                self.blocks[id as usize] = block;
                id
            }
            None => {
                self.blocks.push(block);
                self.blocks.len() as u32 - 1
            }
        };
        self.at.insert(block.address, id);
        id
    }

    fn set_free(&mut self, id: u32, is_free: bool) {
        let block = self.blocks[id as usize];
        let domain = &mut self.domains[block.domain as usize];
        if is_free {
            domain.free.insert((block.size, block.rank, block.address), id);
            domain.free_bytes += block.size;
        } else {
            domain.free.remove(&(block.size, block.rank, block.address));
            domain.free_bytes -= block.size;
        }
    }

    /// Adds a plain segment: one free block. Among blocks of one size, a low rank comes first.
    pub fn add_segment(&mut self, address: u64, size: u64, domain: Domain, rank: u32) {
        let domain = self.number(domain);
        let block = Block {
            address,
            size,
            owner: FREE,
            domain,
            is_expandable: false,
            previous: NONE,
            next: NONE,
            rank,
        };
        let id = self.add(block);
        self.set_free(id, true);
    }

    /// Removes a plain segment that is one free block of this size; returns whether it was there.
    pub fn remove_segment(&mut self, address: u64, size: u64) -> bool {
        let Some(&id) = self.at.get(&address) else { return false };
        let block = self.blocks[id as usize];
        let is_whole = block.previous == NONE && block.next == NONE && block.size == size;
        if !is_whole || block.owner != FREE || block.is_expandable {
            return false;
        }
        self.set_free(id, false);
        self.at.remove(&address);
        self.spare.push(id);
        true
    }

    /// Maps memory into an expandable segment. It joins free neighbours.
    pub fn map(&mut self, address: u64, size: u64, domain: Domain) {
        let domain = self.number(domain);
        let ranges = &mut self.domains[domain as usize];
        let (mut start, mut end) = (address, address + size);
        ranges.base = if ranges.mapped.is_empty() { address } else { ranges.base.min(address) };
        let mut block = Block {
            address,
            size,
            owner: FREE,
            domain,
            is_expandable: true,
            previous: NONE,
            next: NONE,
            rank: 0,
        };
        if let Some((&before, &its_end)) = ranges.mapped.range(..address).next_back()
            && its_end == address
        {
            ranges.mapped.remove(&before);
            start = before;
            block.previous = self.tails.remove(&address).unwrap_or(NONE);
        }
        if let Some(its_end) = ranges.mapped.remove(&end) {
            block.next = self.at.get(&end).copied().unwrap_or(NONE);
            end = its_end;
        }
        ranges.mapped.insert(start, end);
        let id = self.add(block);
        if block.previous != NONE {
            self.blocks[block.previous as usize].next = id;
        }
        if block.next == NONE {
            self.tails.insert(address + size, id);
        } else {
            self.blocks[block.next as usize].previous = id;
        }
        self.merge(id);
    }

    /// Unmaps free memory of an expandable segment; returns whether it was mapped and free.
    pub fn unmap(&mut self, address: u64, size: u64, domain: Domain) -> bool {
        let number = self.number(domain);
        let Some(end) = address.checked_add(size) else { return false };
        let found = self.at.get(&address).copied().or_else(|| self.free_around(number, address));
        let Some(id) = found else { return false };
        let block = self.blocks[id as usize];
        if block.owner != FREE
            || !block.is_expandable
            || block.domain != number
            || block.end() < end
        {
            return false;
        }
        self.set_free(id, false);
        self.at.remove(&block.address);
        self.spare.push(id);
        let piece =
            |address: u64, size: u64| Block { address, size, previous: NONE, next: NONE, ..block };
        if block.address < address {
            let mut before = piece(block.address, address - block.address);
            before.previous = block.previous;
            let before = self.add(before);
            if block.previous != NONE {
                self.blocks[block.previous as usize].next = before;
            }
            self.tails.insert(address, before);
            self.set_free(before, true);
        } else if block.previous != NONE {
            self.blocks[block.previous as usize].next = NONE;
            self.tails.insert(address, block.previous);
        }
        if end < block.end() {
            let mut after = piece(end, block.end() - end);
            after.next = block.next;
            let after = self.add(after);
            if block.next == NONE {
                self.tails.insert(block.end(), after);
            } else {
                self.blocks[block.next as usize].previous = after;
            }
            self.set_free(after, true);
        } else if block.next == NONE {
            self.tails.remove(&end);
        } else {
            self.blocks[block.next as usize].previous = NONE;
        }
        let ranges = &mut self.domains[number as usize].mapped;
        if let Some((&start, &its_end)) = ranges.range(..=address).next_back() {
            ranges.remove(&start);
            if start < address {
                ranges.insert(start, address);
            }
            if end < its_end {
                ranges.insert(end, its_end);
            }
        }
        true
    }

    /// Gives `size` bytes at the start of a free block to an owner. The rest stays free.
    pub fn take(&mut self, address: u64, size: u64, owner: u32) {
        let Some(&id) = self.at.get(&address) else { return };
        self.set_free(id, false);
        let block = self.blocks[id as usize];
        self.blocks[id as usize].owner = owner;
        if size < block.size {
            self.blocks[id as usize].size = size;
            let rest =
                Block { address: address + size, size: block.size - size, previous: id, ..block };
            let rest = self.add(rest);
            self.blocks[id as usize].next = rest;
            if block.next != NONE {
                self.blocks[block.next as usize].previous = rest;
            } else if block.is_expandable {
                self.tails.insert(block.end(), rest);
            }
            self.set_free(rest, true);
        }
    }

    /// Cuts a free block so that one begins at `address`; returns whether there was one around it.
    pub fn cut(&mut self, address: u64, domain: Domain) -> bool {
        let number = self.number(domain);
        let Some(id) = self.free_around(number, address) else { return false };
        self.cut_at(self.blocks[id as usize].address, address);
        true
    }

    /// Cuts the free block at `start` so that one begins at `address`, which is in it.
    pub fn cut_at(&mut self, start: u64, address: u64) {
        let Some(&id) = self.at.get(&start) else { return };
        self.take(start, address - start, PLACEHOLDER);
        // Not joined with what follows, as the caller takes that.
        self.blocks[id as usize].owner = FREE;
        self.set_free(id, true);
    }

    /// The free block that an address is in the middle of. Few files need it; the work is limited.
    fn free_around(&mut self, number: u32, address: u64) -> Option<u32> {
        let Self { blocks, domains, steps_left, .. } = self;
        let free = domains[number as usize].free.values();
        let mut free = free.take(usize::try_from(*steps_left).unwrap_or(usize::MAX)).copied();
        *steps_left = steps_left.saturating_sub(domains[number as usize].free.len() as u64);
        free.find(|&id| {
            let block = &blocks[id as usize];
            block.address < address && block.end() > address
        })
    }

    /// Frees the block at an address; returns its size, or None if none is in use there.
    pub fn free(&mut self, address: u64) -> Option<u64> {
        let &id = self.at.get(&address)?;
        let Block { owner, size, .. } = self.blocks[id as usize];
        if owner == FREE {
            return None;
        }
        self.blocks[id as usize].owner = FREE;
        self.merge(id);
        Some(size)
    }

    /// Joins a block, which is not among the free ones yet, with its free neighbours.
    fn merge(&mut self, id: u32) {
        let next = self.blocks[id as usize].next;
        if next != NONE && self.blocks[next as usize].owner == FREE {
            self.swallow(id, next);
        }
        let previous = self.blocks[id as usize].previous;
        let mut merged = id;
        if previous != NONE && self.blocks[previous as usize].owner == FREE {
            self.set_free(previous, false);
            self.absorb(previous, id);
            merged = previous;
        }
        self.set_free(merged, true);
    }

    /// Takes the free block behind `id` into it.
    fn swallow(&mut self, id: u32, next: u32) {
        self.set_free(next, false);
        self.absorb(id, next);
    }

    fn absorb(&mut self, id: u32, next: u32) {
        let gone = self.blocks[next as usize];
        self.at.remove(&gone.address);
        self.spare.push(next);
        let block = &mut self.blocks[id as usize];
        block.size += gone.size;
        block.next = gone.next;
        if gone.next != NONE {
            self.blocks[gone.next as usize].previous = id;
        } else if gone.is_expandable {
            self.tails.insert(gone.end(), id);
        }
    }

    /// What the allocator would do with a request of this rounded size.
    #[must_use]
    pub fn plan(&mut self, key: Domain, rounded: u64, rules: &Rules) -> Plan {
        match self.reusable(key, rounded, rules) {
            Some(address) => Plan::Reuse(address),
            None => self.plan_growth(key, rounded, rules),
        }
    }

    /// Where the free block is that the allocator finds for a request of this rounded size.
    #[must_use]
    pub fn reusable(&mut self, key: Domain, rounded: u64, rules: &Rules) -> Option<u64> {
        let number = self.number(key);
        let found = self.best_fit(number, rounded, rules);
        found.map(|id| self.blocks[id as usize].address)
    }

    /// What the allocator would do after its search has found nothing.
    #[must_use]
    pub fn plan_growth(&mut self, key: Domain, rounded: u64, rules: &Rules) -> Plan {
        if rules.is_expandable {
            let number = self.number(key);
            self.plan_map(number, rounded, rules)
        } else {
            Plan::Segment(rules.segment_size(rounded))
        }
    }

    /// The smallest block that fits, the lowest address among equals. Blocks at the end of a mapped
    /// range count as what they could grow to.
    fn best_fit(&mut self, number: u32, rounded: u64, rules: &Rules) -> Option<u32> {
        let Self { blocks, domains, steps_left, .. } = self;
        let domain = &domains[number as usize];
        let mut candidates =
            domain.free.range((Bound::Included((rounded, 0, 0)), Bound::Unbounded));
        let (_, &first) = candidates.next()?;
        let mut found = first;
        if blocks[found as usize].is_expandable {
            let limit = usize::try_from(*steps_left).unwrap_or(usize::MAX);
            let mut steps = 0;
            let mut candidates = candidates.map(|(_, &id)| id).take(limit).inspect(|_| steps += 1);
            if rules.is_expandable {
                for next in candidates {
                    if !blocks[found as usize].is_expandable
                        || domain.room(&blocks[next as usize])
                            >= domain.room(&blocks[found as usize])
                    {
                        break;
                    }
                    found = next;
                }
            } else {
                let plain = candidates.find(|&id| !blocks[id as usize].is_expandable);
                *steps_left = steps_left.saturating_sub(steps);
                found = plain?;
                steps = 0;
            }
            *steps_left = steps_left.saturating_sub(steps);
        }
        rules.may_serve(blocks[found as usize].size, rounded).then_some(found)
    }

    /// The first unmapped range, in the order of addresses, that has room for a request together with
    /// the free blocks around it.
    fn plan_map(&mut self, number: u32, rounded: u64, rules: &Rules) -> Plan {
        let Self { blocks, at, tails, domains, steps_left, .. } = self;
        let domain = &domains[number as usize];
        let page = rules.page(domain.key.is_small);
        let pages = |bytes: u64| bytes.checked_next_multiple_of(page).unwrap_or(u64::MAX);
        let free = |id: Option<&u32>| {
            id.map(|&id| &blocks[id as usize]).filter(|block| block.owner == FREE)
        };
        let first = domain.mapped.keys().next().copied();
        let head = first.filter(|&first| domain.base < first).map(|first| (domain.base, first));
        let starts = domain.mapped.keys().skip(1).copied().chain([u64::MAX]);
        let behind = domain.mapped.values().copied().zip(starts);
        // Up to here there is not enough room.
        let mut passed = 0;
        for (from, to) in head.into_iter().chain(behind) {
            if *steps_left == 0 {
                break;
            }
            *steps_left -= 1;
            if from < passed {
                continue;
            }
            let start = free(tails.get(&from)).map_or(from, |block| block.address);
            let mut end = to;
            while end - start < rounded && *steps_left > 0 {
                let Some(block) = free(at.get(&end)) else { break };
                *steps_left -= 1;
                end =
                    if block.next == NONE { domain.next_mapped(block.end()) } else { block.end() };
            }
            if end - start >= rounded {
                let missing = rounded.saturating_sub(from - start);
                if missing == 0 {
                    return Plan::Reuse(start);
                }
                let size = pages(missing).min(to - from);
                return Plan::Map { at: Some(from), size, block: Some(start) };
            }
            passed = end;
        }
        Plan::Map { at: None, size: pages(rounded), block: None }
    }
}
