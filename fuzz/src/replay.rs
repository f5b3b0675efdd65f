//! What must hold for the replay of the allocator on any trace at all.

use snapviewer::allocator::curves::Curves;
use snapviewer::allocator::state::States;
use snapviewer::allocator::{self, Extent};
use snapviewer::lifetimes::Lifetimes;
use snapviewer::snapshot::Snapshot;

/// How many moments are looked at.
const MOMENTS: usize = 8;

/// Replays every device. Whatever the trace claims, segments have their blocks side by side, every live
/// allocation is in one place or in none, and the curves are those of the states.
///
/// # Panics
///
/// If not.
pub fn check(snapshot: &Snapshot, lives: &[Lifetimes]) {
    for (which, lives) in lives.iter().enumerate() {
        let replay = allocator::replay(snapshot, which, lives);
        assert_eq!(replay.block_size.len(), lives.allocations.len(), "a block for each");
        assert!(replay.as_recorded <= replay.placements, "placements");
        let (states, curves) = (States::new(lives), Curves::of(lives, &replay));
        let events = lives.totals.len() as i64;
        let moments = (-1..events).step_by(lives.totals.len() / MOMENTS + 1);
        for event in moments.chain([events - 1]) {
            let state = states.state(lives, &replay, event);
            let mut placed = state.unplaced.len();
            for segment in &state.segments {
                let mut at = segment.address;
                for block in &state.blocks[segment.blocks.clone()] {
                    assert_eq!(block.address, at, "no gap and no overlap");
                    at += block.size;
                    placed += usize::from(block.allocation.is_some());
                }
                assert_eq!(at, segment.address + segment.size, "the end of a segment");
            }
            assert_eq!(placed, states.alive(&lives.allocations, event).len(), "live allocations");
            let is_there = |one: &&Extent| one.born <= event && event < one.died;
            let reserved = replay.extents.iter().filter(is_there);
            let reserved = reserved.fold(0, |sum: u64, one| sum.wrapping_add(one.size));
            assert_eq!(curves.reserved.at(event), reserved, "reserved bytes after event {event}");
        }
    }
}
