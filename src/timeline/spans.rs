//! Spans of moments, and which of them are open at one.
//!
//! A tree of the earliest start and the latest end of each 32, 1,024, … spans leads to those that are
//! open, past all others. It is short where spans that are open together are neighbours, as lives do in
//! the order of allocation and within a call stack.
//!
//! # Cost
//!
//! 8 bytes a span. Finding `k` open ones among `n`: `O(k log n)`, about 5 ns each if they are
//! neighbours.

use std::ops::Range;

/// The end of a span that never ends.
pub const NEVER: u32 = u32::MAX;

/// How many nodes have one parent, as a power of two.
const FAN_OUT: usize = 5;

/// The smallest groups of spans that are skipped together.
pub const GROUP: usize = 1 << FAN_OUT;

/// Spans from a start up to, and without, an end.
#[derive(Debug)]
pub struct Spans {
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// Of each 32 spans, then of each 1,024, and so on.
    levels: Vec<Vec<Node>>,
}

/// A summary of some spans.
#[derive(Debug, Clone, Copy)]
struct Node {
    earliest: u32,
    latest: u32,
}

impl Node {
    fn of(nodes: impl Iterator<Item = Self>) -> Self {
        let none = Self { earliest: u32::MAX, latest: 0 };
        nodes.fold(none, |all, one| Self {
            earliest: all.earliest.min(one.earliest),
            latest: all.latest.max(one.latest),
        })
    }
}

impl Spans {
    /// Takes the starts and ends of spans, in any order.
    #[must_use]
    pub fn new(starts: Vec<u32>, ends: Vec<u32>) -> Self {
        let node = |(&earliest, &latest)| Node { earliest, latest };
        let groups = starts.chunks(GROUP).zip(ends.chunks(GROUP));
        let mut level: Vec<Node> =
            groups.map(|(starts, ends)| Node::of(starts.iter().zip(ends).map(node))).collect();
        let mut levels = Vec::new();
        while level.len() > 1 {
            let next = level.chunks(GROUP).map(|group| Node::of(group.iter().copied())).collect();
            levels.push(std::mem::replace(&mut level, next));
        }
        levels.push(level);
        Self { starts, ends, levels }
    }

    /// Where each starts.
    #[must_use]
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Where each ends.
    #[must_use]
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Whether one is open at a moment.
    #[must_use]
    #[inline]
    pub fn is_open(&self, which: usize, moment: u32) -> bool {
        self.starts[which] <= moment && moment < self.ends[which]
    }

    /// The sum of the weights of those that are open at a moment, of a stretch.
    #[must_use]
    #[inline]
    pub fn open_sum(&self, stretch: Range<usize>, moment: u32, weights: &[u64]) -> u64 {
        let starts = &self.starts[stretch.clone()];
        let (ends, weights) = (&self.ends[stretch.clone()], &weights[stretch]);
        // Of a whole group the compiler knows the length, and adds several at once.
        match (
            starts.first_chunk::<GROUP>(),
            ends.first_chunk::<GROUP>(),
            weights.first_chunk::<GROUP>(),
        ) {
            (Some(starts), Some(ends), Some(weights)) => sum(starts, ends, weights, moment),
            _ => sum(starts, ends, weights, moment),
        }
    }

    /// How many have begun at a moment, if at least `known` have. The spans must be in the order of
    /// their starts.
    #[must_use]
    pub fn begun(&self, moment: u32, known: usize) -> usize {
        // The next column is a few groups on, which are looked at soon anyway. A search over all would
        // miss the cache at every step.
        let groups = &self.levels[0][known >> FAN_OUT..];
        let mut ahead = 1;
        while ahead < groups.len() && groups[ahead].earliest <= moment {
            ahead *= 2;
        }
        let near = &groups[ahead / 2..groups.len().min(ahead)];
        let groups = ahead / 2 + near.partition_point(|group| group.earliest <= moment);
        let from = ((known >> FAN_OUT) + groups.saturating_sub(1)) << FAN_OUT;
        let last = &self.starts[from..self.starts.len().min(from + (1 << FAN_OUT))];
        from + last.partition_point(|&start| start <= moment)
    }

    /// Whether all of a group of 32 have ended at a moment.
    #[must_use]
    #[inline]
    pub fn has_group_ended(&self, group: usize, moment: u32) -> bool {
        self.levels[0][group].latest <= moment
    }

    /// Calls with stretches of some spans that have all those that are open at a moment, in order,
    /// until it returns false. A stretch is within one group of 32.
    #[inline]
    pub fn each_stretch(
        &self,
        within: Range<usize>,
        moment: u32,
        mut each: impl FnMut(Range<usize>) -> bool,
    ) {
        let mut at = within.start;
        'next: while at < within.end {
            for (level, nodes) in self.levels.iter().enumerate().rev() {
                let bits = FAN_OUT * (level + 1);
                if at.trailing_zeros() as usize >= bits {
                    let node = nodes[at >> bits];
                    if node.latest <= moment || node.earliest > moment {
                        at += 1 << bits;
                        continue 'next;
                    }
                }
            }
            // Up to the next node that could be skipped.
            let to = (((at >> FAN_OUT) + 1) << FAN_OUT).min(within.end);
            if !each(at..to) {
                return;
            }
            at = to;
        }
    }

    /// Calls with each of some spans that is open at a moment, in order.
    #[inline]
    pub fn each_open(&self, within: Range<usize>, moment: u32, mut each: impl FnMut(usize)) {
        self.each_stretch(within, moment, |stretch| {
            stretch.filter(|&which| self.is_open(which, moment)).for_each(&mut each);
            true
        });
    }
}

/// The weights of what is open, without a branch for each.
#[inline]
fn sum(starts: &[u32], ends: &[u32], weights: &[u64], moment: u32) -> u64 {
    let weight = |((&start, &end), &weight): ((&u32, &u32), &u64)| {
        let is_open = u64::from(start <= moment) & u64::from(moment < end);
        weight & is_open.wrapping_neg()
    };
    starts.iter().zip(ends).zip(weights).map(weight).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn some_spans() -> impl Strategy<Value = Vec<(u32, u32)>> {
        let one = (0..200_u32, 0..60_u32, prop::bool::weighted(0.1));
        let span = |(start, length, is_open)| (start, if is_open { NEVER } else { start + length });
        prop::collection::vec(one.prop_map(span), 0..3000)
    }

    fn spans(all: &[(u32, u32)]) -> Spans {
        let (starts, ends) = all.iter().copied().unzip();
        Spans::new(starts, ends)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn the_open_spans_are_those_that_began_and_did_not_end(
            all in some_spans(), moment in 0..300_u32, from in 0.0..1.0, to in 0.0..1.0,
        ) {
            let place = |part: f64| (part * all.len() as f64) as usize;
            let within = place(from)..place(to);

            let mut found = Vec::new();
            spans(&all).each_open(within.clone(), moment, |which| found.push(which));

            let is_open = |&which: &usize| all[which].0 <= moment && moment < all[which].1;
            prop_assert_eq!(found, within.filter(is_open).collect::<Vec<_>>());
        }

        #[test]
        fn as_many_have_begun_as_have_started(
            mut all in some_spans(), moment in 0..300_u32, known in 0.0..1.0,
        ) {
            all.sort_unstable();
            let begun = all.iter().filter(|span| span.0 <= moment).count();

            let known = (known * begun as f64) as usize;

            prop_assert_eq!(spans(&all).begun(moment, known), begun);
        }
    }
}
