//! What setting the smallest magnitudes to 0 would cost: a histogram, refined where it matters.
//!
//! The first pass has counted ranges of magnitudes, so the ranges in which the thresholds are are known. The
//! second pass adds up the squares below, between and above these ranges, and counts the numbers in them by
//! the next 18 bits. That is all that a number of 24 significant bits has; wider ones share a cell with others
//! that differ by less than 2⁻²³ of themselves, and count as the middle of it.

use super::survey::{NOT_FINITE, RANGES, Survey, range_of};

/// The shares, in tenths.
const TENTHS: std::ops::Range<u64> = 1..10;

/// A number in a range is in one of 2¹⁸ cells.
const CELL_BITS: u32 = 18;

/// Cells whose counts are looked at together; those of 0 are skipped, so that few numbers cost little.
const GROUP: usize = 512;
const GROUPS: usize = (1 << CELL_BITS) / GROUP;

/// So many numbers of a range are counted at once.
const AT_ONCE: usize = 1024;

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
///
/// Counted one by one, most of the time went into waiting for memory: the cells of nine ranges are more than
/// a cache holds. Numbers therefore wait until there are many of the same range.
pub(super) struct Cells {
    /// Never touched where nothing is counted, so it takes as much memory as is needed. Narrow, because twice the
    /// memory is twice the cache: emptied into wide ones before they can overflow.
    fine: Vec<u32>,
    /// What was emptied; nothing, if that never happened.
    wide: Vec<u64>,
    coarse: Vec<u64>,
    /// No narrow counter is beyond this.
    most: u64,
    waiting: Vec<Waiting>,
}

/// Cells of one range that are still to be counted.
#[derive(Clone)]
struct Waiting {
    cells: [u32; AT_ONCE],
    count: usize,
}

impl Cells {
    pub fn new(thresholds: &Thresholds) -> Self {
        let ranges = thresholds.ranges.len();
        Self {
            fine: vec![0; ranges << CELL_BITS],
            wide: Vec::new(),
            coarse: vec![0; ranges * GROUPS],
            most: 0,
            waiting: vec![Waiting { cells: [0; AT_ONCE], count: 0 }; ranges],
        }
    }

    /// Adds squares of numbers to those of their classes, and counts cells.
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
        let class = usize::from(thresholds.classes[usize::from(range_of(x))]);
        // It is always there, which the compiler cannot know.
        if let Some(sum) = sums.get_mut(class) {
            *sum += square;
        }
        if class % 2 == 1
            && let Some(waiting) = self.waiting.get_mut(class / 2)
        {
            let cell = (x.to_bits() >> (47 - CELL_BITS)) as u32 & ((1 << CELL_BITS) - 1);
            waiting.cells[waiting.count % AT_ONCE] = cell;
            waiting.count += 1;
            if waiting.count == AT_ONCE {
                self.count(class / 2);
            }
        }
    }

    /// Counts what waits of a range.
    #[inline(never)]
    fn count(&mut self, place: usize) {
        let waiting = &mut self.waiting[place];
        let fine = &mut self.fine[place << CELL_BITS..(place + 1) << CELL_BITS];
        let coarse = &mut self.coarse[place * GROUPS..(place + 1) * GROUPS];
        for &cell in &waiting.cells[..waiting.count] {
            fine[cell as usize] += 1;
            coarse[cell as usize / GROUP] += 1;
        }
        self.most += waiting.count as u64;
        waiting.count = 0;
        if self.most > 1 << 31 {
            self.empty();
        }
    }

    /// Counts all that waits.
    pub fn finish(&mut self) {
        for place in 0..self.waiting.len() {
            self.count(place);
        }
    }

    /// Empties narrow counters into wide ones.
    #[cold]
    fn empty(&mut self) {
        self.wide.resize(self.fine.len(), 0);
        for group in (0..self.coarse.len()).filter(|&group| self.coarse[group] > 0) {
            let cells = group * GROUP..(group + 1) * GROUP;
            for (wide, fine) in self.wide[cells.clone()].iter_mut().zip(&mut self.fine[cells]) {
                *wide += u64::from(std::mem::take(fine));
            }
        }
        self.most = 0;
    }

    /// Adds the counts of another thread; both must be finished.
    pub fn merge(&mut self, mut other: Self) {
        if self.most + other.most > 1 << 31 || !other.wide.is_empty() {
            self.empty();
            other.empty();
        }
        for (group, &count) in other.coarse.iter().enumerate().filter(|group| *group.1 > 0) {
            self.coarse[group] += count;
            for cell in group * GROUP..(group + 1) * GROUP {
                self.fine[cell] += other.fine[cell];
                if let (Some(wide), Some(more)) = (self.wide.get_mut(cell), other.wide.get(cell)) {
                    *wide += more;
                }
            }
        }
        self.most += other.most;
    }

    /// The cells of a range that have something in them, upwards, and how much.
    fn of(&self, place: usize) -> impl Iterator<Item = (usize, u64)> {
        let groups = (0..GROUPS).filter(move |group| self.coarse[place * GROUPS + group] > 0);
        let cells = groups.flat_map(|group| group * GROUP..(group + 1) * GROUP);
        let counted = cells.map(move |cell| {
            let at = place << CELL_BITS | cell;
            (cell, u64::from(self.fine[at]) + self.wide.get(at).copied().unwrap_or(0))
        });
        counted.filter(|&(_, count)| count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::survey::Channel;
    use super::*;

    #[test]
    fn counts_that_were_emptied_into_wide_ones_are_not_lost() {
        let mut counts = vec![0; RANGES];
        counts[usize::from(range_of(1.0))] = 6;
        let channels = vec![Channel::default()];
        let survey = Survey { counts, channels, max: 1.5, finite: 6, is_all_finite: true };
        let thresholds = Thresholds::new(&survey, 1);
        let counted = |is_emptied: bool| {
            let mut cells = Cells::new(&thresholds);
            let mut sums = [[0.0; CLASSES]; 2];
            cells.add(&thresholds, &mut sums, &[1.0, 1.01, -1.0], |x| x * x);
            cells.finish();
            if is_emptied {
                cells.empty();
            }
            cells
        };

        for (one, other) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut cells = counted(one);
            cells.merge(counted(other));

            let counts: Vec<u64> = cells.of(0).map(|(_, count)| count).collect();
            assert_eq!(counts, [4, 2], "{one} {other}");
        }
    }
}
