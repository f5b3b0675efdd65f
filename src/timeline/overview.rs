//! The highest and lowest total of any stretch of moments, without looking at each.
//!
//! Blocks of 32 moments, then of 512, 8,192, …, know their extremes and the first moment that has
//! the highest.
//!
//! # Cost
//!
//! 0.8 bytes a moment. A stretch of any length: under 0.1 µs.

use std::ops::Range;

/// Moments a block on the lowest level, and blocks a block above, as powers of two.
const FIRST: u32 = 5;
const FAN_OUT: u32 = 4;

/// A pyramid over the totals.
#[derive(Debug)]
pub struct Overview {
    levels: Vec<Vec<Extremes>>,
}

/// What is known of some moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extremes {
    /// The lowest total.
    pub low: u64,
    /// The highest total.
    pub high: u64,
    /// The first moment with the highest.
    pub at: u32,
}

impl Extremes {
    const NONE: Self = Self { low: u64::MAX, high: 0, at: u32::MAX };

    /// This and a later one.
    #[inline]
    fn and(self, later: Self) -> Self {
        let is_higher = later.high > self.high || self.at == u32::MAX;
        let (high, at) = if is_higher { (later.high, later.at) } else { (self.high, self.at) };
        Self { low: self.low.min(later.low), high, at }
    }

    /// That of moments from `first` on.
    #[inline]
    fn of(totals: &[u64], first: usize) -> Self {
        let (mut low, mut high) = (u64::MAX, 0);
        for &total in totals {
            low = low.min(total);
            high = high.max(total);
        }
        let at = totals.iter().position(|&total| total == high).unwrap_or(0);
        Self { low, high, at: (first + at) as u32 }
    }
}

/// A part of a stretch.
enum Part {
    Block(Extremes),
    Moments(Range<usize>),
}

impl Overview {
    /// Looks at all totals.
    #[must_use]
    pub fn new(totals: &[u64]) -> Self {
        let blocks = totals.chunks(1 << FIRST).enumerate();
        let mut level: Vec<Extremes> =
            blocks.map(|(number, totals)| Extremes::of(totals, number << FIRST)).collect();
        let mut levels = Vec::new();
        while level.len() > 1 {
            let groups = level.chunks(1 << FAN_OUT);
            let next =
                groups.map(|group| group.iter().copied().fold(Extremes::NONE, Extremes::and));
            let next = next.collect();
            levels.push(std::mem::replace(&mut level, next));
        }
        levels.push(level);
        Self { levels }
    }

    /// The extremes of a stretch, which must not be empty.
    #[must_use]
    pub fn of(&self, totals: &[u64], stretch: Range<usize>) -> Extremes {
        let mut all = Extremes::NONE;
        self.each_part(stretch, |part| {
            all = all.and(match part {
                Part::Block(block) => block,
                Part::Moments(moments) => Extremes::of(&totals[moments.clone()], moments.start),
            });
        });
        all
    }

    /// Calls with the largest blocks that make up a stretch, and the moments beside them, in order.
    #[inline]
    fn each_part(&self, stretch: Range<usize>, mut each: impl FnMut(Part)) {
        let mut at = stretch.start;
        while at < stretch.end {
            let left = stretch.end - at;
            let fits = |bits: u32| at.trailing_zeros() >= bits && left >> bits > 0;
            let mut bits = FIRST;
            if fits(bits) {
                let mut level = 0;
                while level + 1 < self.levels.len() && fits(bits + FAN_OUT) {
                    level += 1;
                    bits += FAN_OUT;
                }
                each(Part::Block(self.levels[level][at >> bits]));
                at += 1 << bits;
            } else {
                let to = (((at >> FIRST) + 1) << FIRST).min(stretch.end);
                each(Part::Moments(at..to));
                at = to;
            }
        }
    }

    /// The first moment with the highest total of a stretch, which must not be empty.
    #[must_use]
    pub fn highest(&self, totals: &[u64], stretch: Range<usize>) -> u32 {
        let (mut high, mut at) = (0, None);
        self.each_part(stretch, |part| match part {
            Part::Block(block) => {
                if block.high > high || at.is_none() {
                    (high, at) = (block.high, Some(block.at));
                }
            }
            Part::Moments(moments) => {
                for moment in moments {
                    if totals[moment] > high || at.is_none() {
                        (high, at) = (totals[moment], Some(moment as u32));
                    }
                }
            }
        });
        at.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn a_stretch_has_the_extremes_of_its_totals(
            totals in prop::collection::vec(0..50_u64, 1..5000), from in 0.0..1.0, to in 0.0..1.0,
        ) {
            let place = |part: f64| (part * totals.len() as f64) as usize;
            let (from, to) = (place(from).min(place(to)), place(from).max(place(to)) + 1);
            let stretch = &totals[from..to];

            let overview = Overview::new(&totals);
            let found = overview.of(&totals, from..to);

            let high = *stretch.iter().max().unwrap();
            let at = from + stretch.iter().position(|&total| total == high).unwrap();
            let low = *stretch.iter().min().unwrap();
            prop_assert_eq!(found, Extremes { low, high, at: at as u32 });
            prop_assert_eq!(overview.highest(&totals, from..to), at as u32);
        }
    }
}
