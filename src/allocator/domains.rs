//! How much of the memory of each domain is in use, at one moment.

use std::collections::BTreeMap;

use super::heap::Domain;
use super::rules::Rules;
use super::state::{BlockAt, BlockState, SegmentAt, State};

/// The memory of one domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DomainUse {
    /// The domain.
    pub domain: Domain,
    /// How many segments it has.
    pub segments: u64,
    /// Their bytes.
    pub reserved_bytes: u64,
    /// Bytes of blocks that the program has.
    pub allocated_bytes: u64,
    /// Bytes of blocks that wait for another stream.
    pub pending_bytes: u64,
    /// Requested bytes of both.
    pub requested_bytes: u64,
    /// The largest free block.
    pub largest_free_bytes: u64,
    /// Free bytes that could go back to the device: whole segments, or pages of expandable ones.
    pub releasable_bytes: u64,
}

impl DomainUse {
    /// The free bytes.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.reserved_bytes - self.allocated_bytes - self.pending_bytes
    }
}

/// The use of each domain, in the order of pools, large before small, and streams.
#[must_use]
pub fn domains(state: &State, rules: &Rules) -> Vec<DomainUse> {
    let mut all: BTreeMap<_, DomainUse> = BTreeMap::new();
    for segment in &state.segments {
        let domain = segment.domain;
        let sum = all.entry(domain.order()).or_insert(DomainUse {
            domain,
            segments: 0,
            reserved_bytes: 0,
            allocated_bytes: 0,
            pending_bytes: 0,
            requested_bytes: 0,
            largest_free_bytes: 0,
            releasable_bytes: 0,
        });
        sum.segments += 1;
        sum.reserved_bytes += segment.size;
        for block in &state.blocks[segment.blocks.clone()] {
            // A damaged file may have any.
            sum.requested_bytes = sum.requested_bytes.saturating_add(block.requested);
            match block.state {
                BlockState::Allocated => sum.allocated_bytes += block.size,
                BlockState::Pending => sum.pending_bytes += block.size,
                BlockState::Free => {
                    sum.largest_free_bytes = sum.largest_free_bytes.max(block.size);
                    sum.releasable_bytes += releasable(segment, block, rules);
                }
            }
        }
    }
    all.into_values().collect()
}

/// The bytes of a free block that could go back to the device.
pub(super) fn releasable(segment: &SegmentAt, block: &BlockAt, rules: &Rules) -> u64 {
    if segment.is_expandable {
        let page = rules.page(segment.domain.is_small);
        let start = (block.address - segment.address).div_ceil(page);
        let end = (block.address + block.size - segment.address) / page;
        end.saturating_sub(start) * page
    } else if block.size == segment.size {
        block.size
    } else {
        0
    }
}
