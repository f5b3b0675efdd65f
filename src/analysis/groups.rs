//! What is alive at an event, added up by group.
//!
//! # Invariants
//!
//! The groups add up to the live total at the event, to the byte. Tests compare with a slow model.
//!
//! # Cost
//!
//! One pass over the allocations: about 2 ns each.

use std::cmp::Reverse;

use super::keys::Keys;
use crate::lifetimes::Lifetimes;

/// Allocations with one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Its number among the [`Keys`].
    pub id: u32,
    /// Their bytes.
    pub bytes: u64,
    /// How many there are.
    pub count: u64,
    /// The largest allocation; of equals the first.
    pub largest: u32,
    /// The one that was made first.
    pub oldest: u32,
}

/// What is alive after an event, by group, the most bytes first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    /// The event; -1 is before the first.
    pub event: i64,
    /// All bytes.
    pub total_bytes: u64,
    /// All allocations.
    pub count: u64,
    /// The groups.
    pub groups: Vec<Group>,
}

/// Adds up what is alive after an event; of a subset, if there is one.
#[must_use]
pub fn alive(lives: &Lifetimes, keys: &Keys, event: i64, subset: Option<&[bool]>) -> Groups {
    let all = &lives.allocations;
    let is_in = |which: usize| subset.is_none_or(|subset| subset[which]);
    let spans = all.alloc_event.iter().zip(&all.free_event).enumerate();
    let alive =
        spans.filter(|&(which, (&alloc, &free))| alloc <= event && event < free && is_in(which));
    add_up(lives, keys, event, alive.map(|(which, _)| which))
}

/// Adds up some allocations.
pub fn add_up(
    lives: &Lifetimes,
    keys: &Keys,
    event: i64,
    allocations: impl Iterator<Item = usize>,
) -> Groups {
    const NONE: u32 = u32::MAX;
    let all = &lives.allocations;
    let mut place = vec![NONE; keys.count];
    let mut result = Groups { event, ..Groups::default() };
    for which in allocations {
        let (id, size) = (keys.ids[which], all.size[which]);
        let place = &mut place[id as usize];
        result.total_bytes += size;
        result.count += 1;
        let number = which as u32;
        if *place == NONE {
            *place = result.groups.len() as u32;
            result.groups.push(Group {
                id,
                bytes: size,
                count: 1,
                largest: number,
                oldest: number,
            });
            continue;
        }
        let group = &mut result.groups[*place as usize];
        group.bytes += size;
        group.count += 1;
        if size > all.size[group.largest as usize] {
            group.largest = number;
        }
        if all.alloc_event[which] < all.alloc_event[group.oldest as usize] {
            group.oldest = number;
        }
    }
    result.groups.sort_unstable_by_key(|group| (Reverse(group.bytes), group.oldest));
    result
}
