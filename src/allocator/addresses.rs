//! Where a simulated device puts new memory.
//!
//! Addresses matter only through ties: of free blocks of one size the allocator takes the lowest.
//! Drivers go down or up, and use freed ranges again.
//!
//! # Cost
//!
//! A new range: a walk over the ranges in use until a gap fits.

use std::collections::BTreeMap;

use super::Extent;

/// What addresses are multiples of.
const GRANULE: u64 = 2 << 20;

/// Above the addresses that are handed out. Real ones have 47 bits.
const TOP: u64 = 1 << 63;

/// The most addresses that an expandable segment is given.
pub(super) const ROOM: u64 = 1 << 41;

/// The order in which a device hands out addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The highest gap first, as most drivers do.
    #[default]
    Descending,
    /// The lowest gap first.
    Ascending,
    /// Somewhere, by a seed.
    Random(u64),
}

impl Order {
    /// The order in which a recording's device handed out its segments.
    #[must_use]
    pub fn of(extents: &[Extent]) -> Self {
        let mut steps = [0_u64; 2];
        let new = extents.iter().filter(|one| one.born >= 0 && !one.is_expandable);
        let mut last = None;
        for one in new {
            if let Some(last) = last.replace(one.address) {
                steps[usize::from(one.address > last)] += 1;
            }
        }
        if steps[1] > steps[0] { Self::Ascending } else { Self::Descending }
    }
}

/// The ranges in use.
#[derive(Debug)]
pub(super) struct Addresses {
    order: Order,
    used: BTreeMap<u64, u64>,
    /// Between these, everything is handed out.
    low: u64,
    high: u64,
    state: u64,
}

impl Addresses {
    /// Begins with memory that is there already. Expandable segments have room to grow.
    pub fn new(order: Order, kept: &[Extent]) -> Self {
        let mut used: BTreeMap<u64, u64> = kept.iter().map(|one| (one.address, one.size)).collect();
        if kept.iter().any(|one| one.is_expandable)
            && let (Some(first), Some(last)) = (used.first_key_value(), used.last_key_value())
        {
            let (first, end) = (*first.0, last.0.saturating_add(*last.1));
            used = BTreeMap::from([(first, end.saturating_add(ROOM) - first)]);
        }
        let first = used.first_key_value().map(|(&start, _)| start);
        let last = used.last_key_value().map(|(&start, &size)| start.saturating_add(size));
        let low = first.unwrap_or(TOP / 2).clamp(GRANULE, TOP) / GRANULE * GRANULE;
        let high = last.unwrap_or(low).clamp(low, TOP).next_multiple_of(GRANULE);
        let state = if let Order::Random(seed) = order { seed } else { 0 };
        Self { order, used, low, high, state }
    }

    /// A range that nobody uses; None if there are no addresses left.
    pub fn reserve(&mut self, size: u64) -> Option<u64> {
        let size = size.checked_next_multiple_of(GRANULE)?;
        let found = match self.order {
            Order::Ascending => self.gaps().find(|&(from, to)| to - from >= size).map(|gap| gap.0),
            Order::Descending => {
                let gap = self.gaps_down().find(|&(from, to)| to - from >= size);
                gap.map(|(_, to)| to - size)
            }
            Order::Random(_) => None,
        };
        let address = match (found, self.order) {
            (Some(address), _) => address,
            (None, Order::Ascending) => self.above(size)?,
            (None, Order::Descending) => self.below(size).or_else(|| self.above(size))?,
            (None, Order::Random(_)) => {
                self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let is_above = self.state >> 63 == 1;
                let below = if is_above { None } else { self.below(size) };
                below.or_else(|| self.above(size))?
            }
        };
        self.used.insert(address, size);
        Some(address)
    }

    fn below(&mut self, size: u64) -> Option<u64> {
        let address = self.low.checked_sub(size).filter(|&address| address > 0)?;
        self.low = address;
        Some(address)
    }

    fn above(&mut self, size: u64) -> Option<u64> {
        let address = self.high;
        self.high = address.checked_add(size).filter(|&end| end <= TOP)?;
        Some(address)
    }

    fn gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut from = self.low;
        self.used.iter().filter_map(move |(&start, &size)| {
            let gap = (from, start);
            from = from.max(start.saturating_add(size)).next_multiple_of(GRANULE);
            (gap.1 > gap.0).then_some(gap)
        })
    }

    fn gaps_down(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut to = self.high;
        self.used.iter().rev().filter_map(move |(&start, &size)| {
            let gap = (start.saturating_add(size), to);
            to = start / GRANULE * GRANULE;
            (gap.1 > gap.0).then_some(gap)
        })
    }

    /// Gives a range back.
    pub fn release(&mut self, address: u64) {
        self.used.remove(&address);
        if self.used.is_empty() {
            self.high = self.low;
        }
    }

    /// An address, if the range that it is in goes on for so many bytes.
    pub fn room(&self, address: u64, size: u64) -> Option<u64> {
        let (start, bytes) = self.around(address)?;
        (bytes - (address - start) >= size).then_some(address)
    }

    /// The range that an address is in: its start and size.
    pub fn around(&self, address: u64) -> Option<(u64, u64)> {
        let (&start, &size) = self.used.range(..=address).next_back()?;
        (address - start < size).then_some((start, size))
    }
}
