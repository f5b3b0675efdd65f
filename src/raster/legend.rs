//! What the colours in a picture stand for: its allocations, grouped by what they are coloured by.
//!
//! # Cost
//!
//! Pixels, and allocations that are alive at one moment.

use std::cmp::Reverse;
use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{BACKGROUND, ColorBy};
use crate::lifetimes::Lifetimes;

/// The allocations of one stack, stream, pool or category.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// The stack, stream, pool or category.
    pub key: i64,
    /// Bytes of those that are alive.
    pub bytes: u64,
    /// Pixels of those in the picture.
    pub pixels: u64,
    /// One of them. All have the same colour.
    pub member: u32,
}

/// Groups what is alive and what is in a picture, the most bytes first, of equals the lower key.
/// Sizes and ages are scales, which have no groups.
#[must_use]
pub fn groups(
    lives: &Lifetimes,
    ids: &[u32],
    alive: impl Iterator<Item = u32>,
    by: ColorBy,
    categories: &[u8],
) -> Vec<Group> {
    let all = &lives.allocations;
    let key = |which: u32| match by {
        ColorBy::Stack => Some(i64::from(all.stack[which as usize])),
        ColorBy::Stream => Some(all.stream[which as usize]),
        ColorBy::Pool => Some(i64::from(all.pool[which as usize])),
        ColorBy::Category => Some(i64::from(categories[which as usize])),
        ColorBy::Size | ColorBy::Age => None,
    };
    let mut groups: HashMap<i64, Group, RandomState> = HashMap::default();
    let mut add = |which: u32, bytes: u64, pixels: u64| {
        let Some(key) = key(which) else { return };
        let group = groups.entry(key).or_insert(Group { key, bytes: 0, pixels: 0, member: which });
        group.bytes += bytes;
        group.pixels += pixels;
    };
    for which in alive {
        add(which, all.size[which as usize], 0);
    }
    for (which, pixels) in runs(ids) {
        add(which, 0, pixels);
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.sort_unstable_by_key(|group| (Reverse(group.bytes), group.key));
    groups
}

/// The least and the most of what is in a picture, if its colours are a scale.
#[must_use]
pub fn visible_extent(lives: &Lifetimes, ids: &[u32], by: ColorBy) -> Option<(u64, u64)> {
    let number = by.number(lives)?;
    let ends = |ends: Option<(u64, u64)>, (which, _): (u32, u64)| {
        let one = number(which as usize);
        Some(ends.map_or((one, one), |(least, most)| (least.min(one), most.max(one))))
    };
    runs(ids).fold(None, ends)
}

/// The allocations of neighbouring pixels, and how many these are.
fn runs(ids: &[u32]) -> impl Iterator<Item = (u32, u64)> {
    let run = |run: &[u32]| (run[0], run.len() as u64);
    ids.chunk_by(|one, other| one == other).map(run).filter(|&(which, _)| which != BACKGROUND)
}
