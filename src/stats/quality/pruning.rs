//! What setting the smallest magnitudes to 0 would cost: a histogram, refined where it matters.
//!
//! The first pass has counted ranges of magnitudes, so the ranges in which the thresholds are are known. The
//! second pass adds up the squares below, between and above these ranges, and counts the numbers in them by
//! the next 18 bits. That is all that a number of 24 significant bits has; wider ones share a cell with others
//! that differ by less than 2⁻²³ of themselves, and count as the middle of it.

use super::survey::{NOT_FINITE, RANGES, Survey, range_of};

/// Shares are so many parts of ten.
const TENTHS: std::ops::Range<u64> = 1..10;

/// A number in a range is in one of 2¹⁸ cells.
const CELL_BITS: u32 = 18;

/// Cells whose counts are looked at together; those of 0 are skipped, so that few numbers cost little.
const GROUP: usize = 512;
const GROUPS: usize = (1 << CELL_BITS) / GROUP;

/// Squares are added up for what is below, in and between ranges with thresholds, and for what is not finite.
pub(super) const CLASSES: usize = 20;

/// What setting a share of the values to 0 would cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PruningPoint {
    /// How much is set to 0.
    pub share: f64,
    /// The largest magnitude among that.
    pub threshold: f64,
    /// Its part of the sum of squares.
    pub lost: f64,
}

/// Where the thresholds are.
pub(super) struct Thresholds {
    /// For each share, how many values are set to 0 (of all copies).
    ranks: Vec<(u64, u128)>,
    /// The ranges in which the thresholds are, upwards.
    ranges: Vec<u16>,
    /// The class of each range: 2 i + 1 for the range i of these, 2 i for what is just below it.
    classes: Box<[u8; RANGES]>,
    copies: u128,
}

impl Thresholds {
    pub fn new(survey: &Survey, copies: u64) -> Self {
        let copies = u128::from(copies);
        let total = u128::from(survey.finite) * copies;
        let rank = |tenths: u64| (tenths, u128::from(tenths) * total / 10);
        let ranks: Vec<_> = TENTHS.map(rank).collect();
        let mut ranges = Vec::new();
        let (mut below, mut wanted) = (0u128, ranks.iter().map(|rank| rank.1).peekable());
        for (range, &count) in survey.counts[..NOT_FINITE].iter().enumerate() {
            below += u128::from(count) * copies;
            while wanted.next_if(|&rank| rank <= below && count > 0).is_some() {
                if ranges.last() != Some(&(range as u16)) {
                    ranges.push(range as u16);
                }
            }
        }
        let class = |range: usize| match range {
            NOT_FINITE.. => CLASSES as u8 - 1,
            _ => match ranges.binary_search(&(range as u16)) {
                Ok(place) => 2 * place as u8 + 1,
                Err(place) => 2 * place as u8,
            },
        };
        let classes: Box<[u8]> = (0..RANGES).map(class).collect();
        let classes = classes.try_into().unwrap_or_else(|_| unreachable!("one for each range"));
        Self { ranks, ranges, classes, copies }
    }

    /// The points, from the sums of squares of each class and the counts of the cells.
    ///
    /// `square` turns a magnitude into what was added up for it; `is_wide` says that cells may hold different
    /// numbers.
    pub fn points(
        &self,
        survey: &Survey,
        sums: &[f64; CLASSES],
        cells: &Cells,
        is_wide: bool,
        square: impl Fn(f64) -> f64,
    ) -> Vec<PruningPoint> {
        if survey.finite == 0 {
            return Vec::new();
        }
        let total: f64 = sums[..CLASSES - 1].iter().sum();
        let mut points = Vec::new();
        let mut ranks = self.ranks.iter().peekable();
        while let Some(&(tenths, _)) = ranks.next_if(|rank| rank.1 == 0) {
            points.push(PruningPoint { share: tenths as f64 / 10.0, threshold: 0.0, lost: 0.0 });
        }
        let mut lost = 0.0;
        let (mut below, mut range_before) = (0u128, 0);
        for (place, &range) in self.ranges.iter().enumerate() {
            let between = &survey.counts[range_before..usize::from(range)];
            below += u128::from(between.iter().sum::<u64>()) * self.copies;
            range_before = usize::from(range) + 1;
            lost += sums[2 * place];
            for (cell, count) in cells.of(place) {
                let magnitude = magnitude(range, cell, is_wide);
                let all = u128::from(count) * self.copies;
                while let Some(&(tenths, rank)) = ranks.next_if(|rank| rank.1 <= below + all) {
                    let part = (rank - below) as f64 / self.copies as f64;
                    let lost = lost + part * square(magnitude);
                    let share = tenths as f64 / 10.0;
                    let lost = if total > 0.0 { (lost / total).min(1.0) } else { 0.0 };
                    points.push(PruningPoint { share, threshold: magnitude, lost });
                }
                below += all;
                lost += count as f64 * square(magnitude);
            }
        }
        points
    }
}

/// The magnitude that the numbers in a cell have, or the one in the middle.
fn magnitude(range: u16, cell: usize, is_wide: bool) -> f64 {
    let low = u64::from(range) << 47 | (cell as u64) << (47 - CELL_BITS);
    // The first cell of all is 0's.
    f64::from_bits(if is_wide && low > 0 { low | 1 << (46 - CELL_BITS) } else { low })
}

/// Counts of cells in all ranges with thresholds.
pub(super) struct Cells {
    /// Never touched where nothing is counted, so it takes as much memory as is needed.
    fine: Vec<u64>,
    coarse: Vec<u64>,
}

impl Cells {
    pub fn new(thresholds: &Thresholds) -> Self {
        let ranges = thresholds.ranges.len();
        Self { fine: vec![0; ranges << CELL_BITS], coarse: vec![0; ranges * GROUPS] }
    }

    /// Adds squares of numbers (which are given) to those of their classes, and counts cells.
    #[inline(always)]
    pub fn add(
        &mut self,
        thresholds: &Thresholds,
        sums: &mut [[f64; CLASSES]; 2],
        numbers: &[f64],
        square: impl Fn(f64) -> f64,
    ) {
        let (pairs, rest) = numbers.as_chunks::<2>();
        for pair in pairs {
            for turn in 0..2 {
                self.add_number(thresholds, &mut sums[turn], pair[turn], square(pair[turn]));
            }
        }
        for &x in rest {
            self.add_number(thresholds, &mut sums[0], x, square(x));
        }
    }

    #[inline(always)]
    fn add_number(
        &mut self,
        thresholds: &Thresholds,
        sums: &mut [f64; CLASSES],
        x: f64,
        square: f64,
    ) {
        let class = thresholds.classes[usize::from(range_of(x))];
        // The bound is always met, and the compiler cannot know it.
        if let Some(sum) = sums.get_mut(usize::from(class)) {
            *sum += square;
        }
        if class % 2 == 1 && usize::from(class) < CLASSES - 1 {
            let cell = (x.to_bits() >> (47 - CELL_BITS)) as usize & ((1 << CELL_BITS) - 1);
            let at = usize::from(class / 2) << CELL_BITS | cell;
            self.fine[at] += 1;
            self.coarse[at / GROUP] += 1;
        }
    }

    pub fn merge(&mut self, other: &Self) {
        for (group, &count) in other.coarse.iter().enumerate().filter(|group| *group.1 > 0) {
            self.coarse[group] += count;
            let cells = group * GROUP..(group + 1) * GROUP;
            for (cell, count) in self.fine[cells.clone()].iter_mut().zip(&other.fine[cells]) {
                *cell += count;
            }
        }
    }

    /// The cells of a range that have something in them, upwards, and how much.
    fn of(&self, place: usize) -> impl Iterator<Item = (usize, u64)> {
        let groups = (0..GROUPS).filter(move |group| self.coarse[place * GROUPS + group] > 0);
        let cells = groups.flat_map(|group| group * GROUP..(group + 1) * GROUP);
        let counted = cells.map(move |cell| (cell, self.fine[place << CELL_BITS | cell]));
        counted.filter(|&(_, count)| count > 0)
    }
}
