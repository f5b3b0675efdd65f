//! Why a request failed: what it needed, what there was, and why that did not do.
//!
//! When the device refuses, the allocator waits for other streams, gives back all that it can, and
//! asks once more. What it still has at the `oom` event is in use, or pinned by blocks that are.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use super::growth::Release;
use super::heap::Domain;

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The program wanted more than there is, however it is arranged.
    Demand,
    /// There was enough for this request, but in pieces, or lost to rounding.
    Fragmentation,
    /// There was enough, but kept for another stream, pool or size class.
    Isolation,
    /// There had been enough before something else took memory of the device.
    Outside,
}

impl Verdict {
    /// All of them, with their names.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("demand", Self::Demand),
        ("fragmentation", Self::Fragmentation),
        ("isolation", Self::Isolation),
        ("outside", Self::Outside),
    ];
}

/// What is known of a request that failed. All bytes are those at its `oom` event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The `oom` event.
    pub event: usize,
    /// The stack that asked.
    pub stack: u32,
    /// Where the block would have been.
    pub domain: Domain,
    /// The rounded request.
    pub requested_bytes: u64,
    /// What the device had free.
    pub device_free_bytes: u64,
    /// What the program had asked for and not given back.
    pub live_bytes: u64,
    /// Blocks in use.
    pub active_bytes: u64,
    /// Memory from the device.
    pub reserved_bytes: u64,
    /// Free bytes of the domain.
    pub domain_free_bytes: u64,
    /// The largest free block of the domain.
    pub largest_free_bytes: u64,
    /// The other domain with the most free bytes, and how many.
    pub other: Option<(Domain, u64)>,
    /// What the device would have had to give; 0 if a free block would have done after all.
    pub needed_bytes: u64,
    /// The most memory that the allocator had, or could have had, until then.
    pub capacity_seen_bytes: u64,
    /// What the allocator gave back in vain right before.
    pub released_bytes: u64,
}

impl Facts {
    /// Whether the device had enough: then the program limits itself.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.needed_bytes > 0 && self.device_free_bytes >= self.needed_bytes
    }

    /// All memory that the allocator could have had then; at most so much if it is limited.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.reserved_bytes.saturating_add(self.available_bytes())
    }

    /// What the program would have had with the request.
    #[must_use]
    pub fn wanted_bytes(&self) -> u64 {
        self.live_bytes.saturating_add(self.requested_bytes)
    }

    /// The memory that the allocator had and that no block used.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.reserved_bytes.saturating_sub(self.active_bytes)
    }

    fn available_bytes(&self) -> u64 {
        let is_limited = self.is_limited();
        if is_limited { self.needed_bytes - 1 } else { self.device_free_bytes }
    }
}

/// A request that failed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oom {
    facts: Facts,
    /// Why it failed.
    pub verdict: Verdict,
    /// How many bytes were missing.
    pub short_by_bytes: u64,
}

impl Deref for Oom {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

impl Oom {
    /// Finds the verdict.
    #[must_use]
    pub fn judged(facts: Facts) -> Self {
        let (capacity, seen) = (facts.capacity_bytes(), facts.capacity_seen_bytes);
        let wanted = facts.wanted_bytes();
        let missing = facts.needed_bytes.saturating_sub(facts.available_bytes());
        let with_growth = facts.reserved_bytes.saturating_add(facts.needed_bytes);
        let packed = facts.active_bytes.saturating_add(facts.requested_bytes);
        let in_domain = facts.domain_free_bytes.saturating_add(facts.available_bytes());
        let (verdict, short_by_bytes) = if wanted > capacity {
            let was_enough = wanted <= seen;
            (if was_enough { Verdict::Outside } else { Verdict::Demand }, wanted - capacity)
        } else if facts.needed_bytes == 0 {
            // It became free while the allocator waited for another stream, after its search.
            (Verdict::Isolation, 0)
        } else if with_growth <= seen {
            (Verdict::Outside, missing)
        } else if packed > capacity || in_domain >= facts.requested_bytes {
            (Verdict::Fragmentation, missing)
        } else {
            (Verdict::Isolation, missing)
        };
        Self { facts, verdict, short_by_bytes }
    }
}

/// Adds what was given back right before each request failed. Both are in the order of events.
pub(super) fn add_releases(ooms: &mut [Oom], releases: &[Release]) {
    for oom in ooms {
        let place = releases.partition_point(|release| release.event < oom.event);
        let last = place.checked_sub(1).map(|place| &releases[place]);
        let is_its = |release: &&Release| release.event + release.events == oom.event;
        oom.facts.released_bytes = last.filter(is_its).map_or(0, |release| release.bytes);
    }
}
