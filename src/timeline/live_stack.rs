//! The live allocations of one moment as a stack, moved on from column to column.
//!
//! Positions are the stacking order. A *leaf* is 32 of them: which are alive, their sum, the
//! heaviest, and when the next one ends. 64 leaves are a group and 64 groups a section, with their
//! sums, so that a walk up the stack steps over what is empty or too thin to be seen.
//!
//! Moving on to a later moment marks the leaves in which something has begun and not ended by then,
//! asks every group whether something in it has ended, and adds up the few leaves that changed.
//! Leaves in which everything begins and ends between two columns are never looked at.
//!
//! # Invariants
//!
//! After [`LiveStack::advance`] the bits are those of the allocations that are alive and shown, and
//! every sum is that of the bits below it (tests compare with the definition).
//!
//! # Cost
//!
//! Memory is 0.9 bytes a position, most of it never touched. Moving on: 20 ns a leaf that changes.
//! A walk: 1 to 2 ns a leaf or allocation that it passes.

use std::cell::Cell;
use std::ops::Range;

use crate::timeline::spans::GROUP;
use crate::timeline::{NEVER, Spans, Timeline};

/// Positions a leaf; runs of them that are thinner than a pixel are drawn as one. A leaf is one of the
/// groups of the lives, so that what is known of that group holds for it.
pub const LEAF: usize = GROUP;

/// Children of a group and of a section: the bits of a word.
const FAN_OUT: usize = 64;

/// In place of a leaf: none.
pub const NO_LEAF: usize = usize::MAX;

/// 32 positions.
#[derive(Debug, Clone, Default)]
struct Leaf {
    sum: u64,
    alive: u32,
    /// The first end among those that are alive.
    next_end: u32,
    /// 1 + the heaviest slot; 0 if not computed since the last change.
    heaviest: Cell<u8>,
    is_stale: bool,
}

impl Leaf {
    /// Adds up what is alive of some. Without branches, and both columns at once: half of them have
    /// ended, and most of the time goes to waiting for memory.
    #[inline]
    fn add_up(&mut self, some: u32, ends: &[u32], weights: &[u64], moment: u32) {
        for (slot, (&end, &weight)) in ends.iter().zip(weights).enumerate() {
            // What the filter leaves out need not be walked past.
            let is_alive = some >> slot & 1 & u32::from(end > moment) & u32::from(weight > 0);
            self.alive |= is_alive << slot;
            self.sum += weight & u64::from(is_alive).wrapping_neg();
            self.next_end = self.next_end.min(end | is_alive.wrapping_sub(1));
        }
    }
}

/// 64 leaves.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    sum: u64,
    /// The leaves that have anything alive.
    occupied: u64,
    /// No end in it is earlier.
    next_end: u32,
}

/// 64 groups.
#[derive(Debug, Clone, Copy, Default)]
struct Section {
    sum: u64,
    occupied: u64,
}

/// The byte at the centre of each row of pixels, from the bottom.
#[derive(Debug)]
pub struct Rows {
    /// One more for the end, which nothing reaches.
    centres: Vec<u64>,
    /// Half of a row's bytes, rounded down.
    half: u64,
}

impl Rows {
    /// Divides bytes into rows.
    #[must_use]
    pub fn new(bytes: &Range<u64>, height: usize) -> Self {
        let (range, twice) = (u128::from(bytes.end - bytes.start), 2 * height as u128);
        // (2 row + 1) × range ÷ twice, rounded down, without a division for each: they take 30 ns.
        let (mut whole, mut rest) = (range / twice, range % twice);
        let (step, step_rest) = (2 * range / twice, 2 * range % twice);
        let mut centres = Vec::with_capacity(height + 1);
        for _ in 0..height {
            centres.push(bytes.start + whole as u64);
            rest += step_rest;
            whole += step + u128::from(rest >= twice);
            rest -= if rest >= twice { twice } else { 0 };
        }
        centres.push(u64::MAX);
        Self { centres, half: (range / twice) as u64 }
    }

    /// How many there are.
    #[must_use]
    pub fn height(&self) -> usize {
        self.centres.len() - 1
    }

    /// How many have their centre below a byte.
    #[must_use]
    pub fn below(&self, byte: u64) -> usize {
        self.centres[..self.height()].partition_point(|&centre| centre < byte)
    }
}

/// The stack at one moment.
#[derive(Debug)]
pub struct LiveStack<'t> {
    timeline: &'t Timeline,
    /// The lives, by position.
    lives: &'t Spans,
    weights: &'t [u64],
    /// How many allocations have begun.
    begun: usize,
    leaves: Vec<Leaf>,
    groups: Vec<Group>,
    sections: Vec<Section>,
    stale: Vec<u32>,
}

impl<'t> LiveStack<'t> {
    /// Nothing yet.
    #[must_use]
    pub fn new(timeline: &'t Timeline) -> Self {
        let leaves = timeline.weights().len().div_ceil(LEAF);
        let groups = leaves.div_ceil(FAN_OUT);
        Self {
            timeline,
            lives: timeline.stacked(),
            weights: timeline.weights(),
            begun: 0,
            leaves: vec![Leaf::default(); leaves],
            groups: vec![Group::default(); groups],
            sections: vec![Section::default(); groups.div_ceil(FAN_OUT)],
            stale: Vec::new(),
        }
    }

    /// Moves on to a later moment. Returns the lowest leaf that changed, or [`NO_LEAF`].
    pub fn advance(&mut self, moment: u32) -> usize {
        let from = self.begun;
        let timeline = self.timeline;
        self.begun = timeline.spans.begun(moment, from);
        let begun = from..self.begun;
        if timeline.order.is_none() {
            // A stretch is within one leaf, and all of it has begun. `add_up` sees what has ended.
            timeline.spans.each_stretch(begun, moment, |stretch| {
                let (number, first) = (stretch.start / LEAF, stretch.start % LEAF);
                let begun = u32::MAX >> (LEAF - stretch.len()) << first;
                self.change(number, begun);
                true
            });
        } else {
            timeline.spans.each_open(begun, moment, |which| {
                let position = timeline.position(which);
                self.change(position / LEAF, 1 << (position % LEAF));
            });
        }
        self.find_ended(moment);
        let mut lowest = NO_LEAF;
        let mut stale = std::mem::take(&mut self.stale);
        for leaf in stale.drain(..) {
            lowest = lowest.min(leaf as usize);
            self.add_up(leaf as usize, moment);
        }
        self.stale = stale;
        lowest
    }

    /// Notes that some positions of a leaf have begun.
    #[inline]
    fn change(&mut self, number: usize, begun: u32) {
        let leaf = &mut self.leaves[number];
        leaf.alive |= begun;
        if !std::mem::replace(&mut leaf.is_stale, true) {
            self.stale.push(number as u32);
        }
    }

    /// Marks the leaves in which something has ended.
    fn find_ended(&mut self, moment: u32) {
        for (number, section) in self.sections.iter().enumerate() {
            for group in bits(section.occupied) {
                let group = number * FAN_OUT + group;
                if self.groups[group].next_end > moment {
                    continue;
                }
                let mut next_end = NEVER;
                for leaf in bits(self.groups[group].occupied) {
                    let number = group * FAN_OUT + leaf;
                    let leaf = &mut self.leaves[number];
                    if leaf.next_end > moment {
                        next_end = next_end.min(leaf.next_end);
                    } else if !std::mem::replace(&mut leaf.is_stale, true) {
                        self.stale.push(number as u32);
                    }
                }
                // `add_up` brings in the ends of the leaves marked here.
                self.groups[group].next_end = next_end;
            }
        }
    }

    /// Adds up a leaf and what is above it.
    fn add_up(&mut self, number: usize, moment: u32) {
        let before = &self.leaves[number];
        let mut leaf = Leaf { next_end: NEVER, ..Leaf::default() };
        // Half of the leaves that change are left for good.
        if !self.lives.has_group_ended(number, moment) {
            let first = number * LEAF;
            let last = self.weights.len().min(first + LEAF);
            let (ends, weights) = (&self.lives.ends()[first..last], &self.weights[first..last]);
            // Of a whole leaf the compiler knows the length.
            match (ends.first_chunk::<LEAF>(), weights.first_chunk::<LEAF>()) {
                (Some(ends), Some(weights)) => leaf.add_up(before.alive, ends, weights, moment),
                _ => leaf.add_up(before.alive, ends, weights, moment),
            }
        }
        let (change, is_occupied) = (leaf.sum.wrapping_sub(before.sum), leaf.alive != 0);
        let group = &mut self.groups[number / FAN_OUT];
        let was_empty = group.occupied == 0;
        group.sum = group.sum.wrapping_add(change);
        set(&mut group.occupied, number, is_occupied);
        group.next_end = if was_empty { leaf.next_end } else { group.next_end.min(leaf.next_end) };
        self.leaves[number] = leaf;
        let number = number / FAN_OUT;
        let section = &mut self.sections[number / FAN_OUT];
        section.sum = section.sum.wrapping_add(change);
        set(&mut section.occupied, number, group.occupied != 0);
    }

    /// The position of the heaviest in a leaf, the lowest among equals.
    #[inline]
    fn heaviest(&self, number: usize) -> usize {
        let leaf = &self.leaves[number];
        if leaf.heaviest.get() == 0 {
            let (mut most, mut found) = (0, 0);
            for slot in bits(u64::from(leaf.alive)) {
                let weight = self.weights[number * LEAF + slot];
                if weight > most {
                    (most, found) = (weight, slot);
                }
            }
            leaf.heaviest.set(found as u8 + 1);
        }
        number * LEAF + usize::from(leaf.heaviest.get()) - 1
    }

    /// The bytes below a leaf.
    #[must_use]
    pub fn below(&self, leaf: usize) -> u64 {
        let group = leaf / FAN_OUT;
        let section = group / FAN_OUT;
        let sections = self.sections[..section].iter().map(|section| section.sum);
        let groups = self.groups[section * FAN_OUT..group].iter().map(|group| group.sum);
        let leaves = self.leaves[group * FAN_OUT..leaf].iter().map(|leaf| leaf.sum);
        sections.sum::<u64>() + groups.sum::<u64>() + leaves.sum::<u64>()
    }

    /// Where an allocation's bytes are in the stack, if it is alive and shown.
    #[must_use]
    pub fn extent(&self, which: usize) -> Option<Range<u64>> {
        let position = self.timeline.position(which);
        let (leaf, slot) = (position / LEAF, position % LEAF);
        let alive = self.leaves[leaf].alive;
        if alive >> slot & 1 == 0 {
            return None;
        }
        let under = bits(u64::from(alive) & ((1 << slot) - 1));
        let under: u64 = under.map(|slot| self.weights[leaf * LEAF + slot]).sum();
        let start = self.below(leaf) + under;
        Some(start..start + self.weights[position])
    }

    /// Calls with the rows of each allocation that is seen, from a leaf up. Returns the first row
    /// of which the centre is above the stack.
    #[inline]
    pub fn walk(&self, from: usize, rows: &Rows, each: impl FnMut(Range<usize>, u32)) -> usize {
        let base = self.below(from);
        let row = rows.below(base);
        let next = rows.centres[row];
        let mut walk = Walk { stack: self, rows, base, row, next, each };
        let (first_group, first_section) = (from / FAN_OUT, from / FAN_OUT / FAN_OUT);
        let Some(group) = self.groups.get(first_group) else { return row };
        walk.leaves(first_group, group.occupied & !0 << (from % FAN_OUT));
        let rest = self.sections[first_section].occupied & above(first_group % FAN_OUT);
        walk.groups(first_section, rest);
        for (number, section) in self.sections.iter().enumerate().skip(first_section + 1) {
            if walk.base + section.sum > walk.next {
                walk.groups(number, section.occupied);
            } else {
                walk.base += section.sum;
            }
        }
        walk.row
    }
}

/// A walk up the stack.
struct Walk<'a, 't, F> {
    stack: &'a LiveStack<'t>,
    rows: &'a Rows,
    /// The bytes so far.
    base: u64,
    /// The next row, and its centre.
    row: usize,
    next: u64,
    each: F,
}

impl<F: FnMut(Range<usize>, u32)> Walk<'_, '_, F> {
    #[inline]
    fn groups(&mut self, section: usize, occupied: u64) {
        for group in bits(occupied) {
            let number = section * FAN_OUT + group;
            let group = &self.stack.groups[number];
            if self.base + group.sum > self.next {
                self.leaves(number, group.occupied);
            } else {
                self.base += group.sum;
            }
        }
    }

    #[inline]
    fn leaves(&mut self, group: usize, occupied: u64) {
        for leaf in bits(occupied) {
            let number = group * FAN_OUT + leaf;
            let leaf = &self.stack.leaves[number];
            let end = self.base + leaf.sum;
            if end > self.next {
                if leaf.sum <= self.rows.half {
                    self.show(self.stack.heaviest(number), end);
                } else {
                    self.members(number, leaf.alive);
                }
            }
            self.base = end;
        }
    }

    #[inline]
    fn members(&mut self, leaf: usize, alive: u32) {
        let mut end = self.base;
        for slot in bits(u64::from(alive)) {
            let position = leaf * LEAF + slot;
            end += self.stack.weights[position];
            if end > self.next {
                self.show(position, end);
            }
        }
    }

    /// Shows what is at a position in the rows up to its end.
    #[inline]
    fn show(&mut self, position: usize, end: u64) {
        let first = self.row;
        while self.next < end {
            self.row += 1;
            self.next = self.rows.centres[self.row];
        }
        (self.each)(first..self.row, self.stack.timeline.allocation(position));
    }
}

/// The places of the bits that are set, from the lowest.
#[inline]
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (place < 64).then_some(place as usize)
    })
}

/// The bits above a place.
fn above(place: usize) -> u64 {
    (!1_u64).wrapping_shl(place as u32)
}

#[inline]
fn set(word: &mut u64, place: usize, is_set: bool) {
    let bit = 1 << (place % FAN_OUT);
    if is_set {
        *word |= bit;
    } else {
        *word &= !bit;
    }
}
