//! Which blocks keep free memory from use: from going back to the device, and from being one piece.

use hashbrown::HashMap;

use super::domains::releasable;
use super::heap::Domain;
use super::rules::Rules;
use super::state::{BlockAt, BlockState, State};

/// The free memory that the blocks of one stack keep from going back to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin {
    /// The stack.
    pub stack: u32,
    /// Its share of the free memory: several stacks with blocks in a segment pin equal parts of it.
    pub pinned_bytes: u64,
    /// Its blocks in segments with free memory.
    pub blocks: u64,
    /// Their bytes.
    pub block_bytes: u64,
}

/// What each stack pins, the most first. `stacks` has the stack of each allocation.
///
/// The shares add up to the free memory that cannot go back.
#[must_use]
pub fn pins(state: &State, stacks: &[u32], rules: &Rules) -> Vec<Pin> {
    let mut all: HashMap<u32, Pin> = HashMap::new();
    for segment in &state.segments {
        let blocks = &state.blocks[segment.blocks.clone()];
        let free = blocks.iter().filter(|block| block.state == BlockState::Free);
        let pinned: u64 =
            free.map(|block| block.size - releasable(segment, block, rules).min(block.size)).sum();
        if pinned == 0 {
            continue;
        }
        let mut here: Vec<u32> = Vec::new();
        for block in blocks {
            let stack = block.allocation.and_then(|index| stacks.get(index as usize));
            let Some(&stack) = stack else { continue };
            here.push(stack);
            let new = Pin { stack, pinned_bytes: 0, blocks: 0, block_bytes: 0 };
            let pin = all.entry(stack).or_insert(new);
            pin.blocks += 1;
            pin.block_bytes += block.size;
        }
        here.sort_unstable();
        here.dedup();
        let count = here.len() as u64;
        for (place, stack) in (0..).zip(here) {
            if let Some(pin) = all.get_mut(&stack) {
                pin.pinned_bytes += pinned / count + u64::from(place < pinned % count);
            }
        }
    }
    let mut all: Vec<Pin> = all.into_values().collect();
    all.sort_unstable_by_key(|pin| (std::cmp::Reverse(pin.pinned_bytes), pin.stack));
    all
}

/// The fewest bytes of live blocks between which a request of this size would fit, if they were free:
/// the allocations that have them. None if no segment of the domain with free memory is large enough.
#[must_use]
pub fn apart(state: &State, domain: Domain, rounded: u64) -> Option<Vec<u32>> {
    let mut best: Option<(u64, std::ops::Range<usize>)> = None;
    for segment in state.segments.iter().filter(|one| one.domain == domain) {
        let (mut first, mut total, mut used) = (segment.blocks.start, 0_u64, 0_u64);
        let in_use = |block: &BlockAt| if block.state == BlockState::Free { 0 } else { block.size };
        for last in segment.blocks.clone() {
            let block = &state.blocks[last];
            total += block.size;
            used += in_use(block);
            // The shortest run that ends here: a longer one has no fewer bytes in use.
            while first < last && total - state.blocks[first].size >= rounded {
                let block = &state.blocks[first];
                total -= block.size;
                used -= in_use(block);
                first += 1;
            }
            let has_room = total >= rounded && used < total;
            if has_room && best.as_ref().is_none_or(|(least, _)| used < *least) {
                best = Some((used, first..last + 1));
            }
        }
    }
    best.map(|(_, run)| state.blocks[run].iter().filter_map(|block| block.allocation).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::state::SegmentAt;

    const DOMAIN: Domain = Domain { pool: 1, is_small: false, stream: 0 };

    /// A segment of blocks of these sizes; allocations are numbered, negative sizes are free.
    fn state(segments: &[&[i64]]) -> State {
        let mut state = State::default();
        for (number, sizes) in (0_u64..).zip(segments) {
            let start = state.blocks.len();
            let mut address = number << 30;
            for &size in *sizes {
                let is_free = size < 0;
                let allocation = (!is_free).then_some(state.blocks.len() as u32);
                let kind = if is_free { BlockState::Free } else { BlockState::Allocated };
                let size = size.unsigned_abs();
                state.blocks.push(BlockAt { address, size, requested: 0, state: kind, allocation });
                address += size;
            }
            state.segments.push(SegmentAt {
                address: number << 30,
                size: address - (number << 30),
                domain: DOMAIN,
                is_expandable: false,
                born: -1,
                blocks: start..state.blocks.len(),
            });
        }
        state
    }

    #[test]
    fn stacks_share_what_they_pin_and_the_shares_add_up() {
        let state = state(&[&[2, -7, 3], &[4, -5], &[-9], &[6]]);
        // The stack of each block; those of free ones do not matter.
        let stacks = [10, 0, 20, 10, 0, 0, 30];

        let found = pins(&state, &stacks, &Rules::default());

        let shares: Vec<_> = found.iter().map(|pin| (pin.stack, pin.pinned_bytes)).collect();
        assert_eq!(shares, [(10, 4 + 5), (20, 3)], "a free segment and a full one pin nothing");
        assert_eq!((found[0].blocks, found[0].block_bytes), (2, 6));
    }

    #[test]
    fn the_least_that_keeps_pieces_apart_is_found() {
        let state = state(&[&[-4, 3, -4, 1, -4, 9], &[-2, 1, -2]]);

        assert_eq!(apart(&state, DOMAIN, 8), Some(vec![3]));
        assert_eq!(apart(&state, DOMAIN, 5), Some(vec![3]), "the first of the best");
        assert_eq!(apart(&state, DOMAIN, 4), Some(vec![]), "a free block would do");
        assert_eq!(apart(&state, DOMAIN, 0), Some(vec![]), "as a damaged file may ask");
        assert_eq!(apart(&state, DOMAIN, 26), None, "no segment is so large");
        assert_eq!(apart(&state, DOMAIN, 25), Some(vec![1, 3, 5]));
        let other = Domain { stream: 7, ..DOMAIN };
        assert_eq!(apart(&state, other, 1), None);
    }
}
