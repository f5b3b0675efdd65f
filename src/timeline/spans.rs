//! Spans of moments, and which of them are open at one.
//!
//! Spans are kept in the order of their starts. Those that are open at a moment are among the first
//! ones, as many as have begun; a tree of the latest end in each 32, 1,024, … of them leads to those
//! that have not ended, past all that have.
//!
//! # Cost
//!
//! 8 bytes a span. Finding `k` open ones among `n`: `O(k log n)`, about 5 ns each if they lie
//! together.

use std::ops::Range;

/// The end of a span that never ends.
pub const NEVER: u32 = u32::MAX;

/// How many nodes have one parent, as a power of two.
const FAN_OUT: usize = 5;

/// Spans from a start up to, and without, an end.
#[derive(Debug, Default)]
pub struct Spans {
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// The latest end in each 32 spans, then in each 1,024, and so on.
    latest: Vec<Vec<u32>>,
}

impl Spans {
    /// Takes spans in ascending order of their starts.
    #[must_use]
    pub fn new(starts: Vec<u32>, ends: Vec<u32>) -> Self {
        debug_assert!(starts.is_sorted() && starts.len() == ends.len());
        let mut latest: Vec<Vec<u32>> = Vec::new();
        loop {
            let below = latest.last().unwrap_or(&ends);
            if below.len() <= 1 {
                return Self { starts, ends, latest };
            }
            let groups = below.chunks(1 << FAN_OUT);
            let next = groups.map(|group| group.iter().copied().max().unwrap_or(0)).collect();
            latest.push(next);
        }
    }

    /// Where each ends.
    #[must_use]
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// How many have begun at a moment, if at least `known` have.
    #[must_use]
    pub fn begun(&self, moment: u32, known: usize) -> usize {
        // The next column is a few spans on; a search over all would miss the cache at every step.
        let (mut from, mut step) = (known, 16);
        while from + step < self.starts.len() && self.starts[from + step] <= moment {
            from += step;
            step *= 2;
        }
        let to = (from + step).min(self.starts.len());
        from + self.starts[from..to].partition_point(|&start| start <= moment)
    }

    /// Calls with each span of some that has not ended at a moment, in order, until told to stop.
    #[inline]
    pub fn each_unended(
        &self,
        within: Range<usize>,
        moment: u32,
        mut each: impl FnMut(usize) -> bool,
    ) {
        let mut at = within.start;
        'next: while at < within.end {
            for (level, latest) in self.latest.iter().enumerate().rev() {
                let bits = FAN_OUT * (level + 1);
                if at.trailing_zeros() as usize >= bits && latest[at >> bits] <= moment {
                    at += 1 << bits;
                    continue 'next;
                }
            }
            // Up to the next node that could be skipped.
            let to = (((at >> FAN_OUT) + 1) << FAN_OUT).min(within.end);
            for (place, &end) in self.ends[at..to].iter().enumerate() {
                if end > moment && !each(at + place) {
                    return;
                }
            }
            at = to;
        }
    }

    /// Bytes that this takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let above: usize = self.latest.iter().map(Vec::len).sum();
        (self.starts.len() + self.ends.len() + above) * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn some_spans() -> impl Strategy<Value = Vec<(u32, u32)>> {
        let one = (0..200_u32, 0..60_u32, any::<bool>());
        let span = |(start, length, is_open)| (start, if is_open { NEVER } else { start + length });
        prop::collection::vec(one.prop_map(span), 0..3000).prop_map(|mut all| {
            all.sort_by_key(|&(start, _)| start);
            all
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn the_open_spans_are_those_that_began_and_did_not_end(
            all in some_spans(), moment in 0..300_u32, from in 0.0..1.0,
        ) {
            let spans = Spans::new(
                all.iter().map(|span| span.0).collect(), all.iter().map(|span| span.1).collect()
            );
            let begun = all.iter().filter(|span| span.0 <= moment).count();
            let from = (from * begun as f64) as usize;

            let mut found = Vec::new();
            spans.each_unended(from..begun, moment, |which| { found.push(which); true });

            prop_assert_eq!(spans.begun(moment, 0), begun);
            prop_assert_eq!(spans.begun(moment, from), begun);
            let expected: Vec<usize> = (from..begun).filter(|&which| all[which].1 > moment).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
