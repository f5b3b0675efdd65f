//! Which bytes of a storage its tensors reach, each counted once, and what clones of them would take.
//!
//! Views are turned into patterns of bytes. Rows are merged as intervals; what is apart is counted
//! apart; a view that nests is a product; views that repeat with the same period (the real and the
//! imaginary parts of complex numbers) are counted in one period. Only what is left is walked, run by
//! run, all views at once in the order of the storage.
//!
//! # Invariants
//!
//! The count is exact unless it says otherwise; then it is an upper bound, and never more than the
//! storage has.
//!
//! # Cost
//!
//! `O(views × log views)`, and for interleaved views without a common period `O(runs × log
//! views)`, which the caller's budget bounds. Memory: a few hundred bytes a view.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashSet};

use super::View;
use crate::strided::{Dim, Pattern};

/// How many runs may be walked for one checkpoint: some seconds. Absurd files only come near it (a
/// sparse file of 100 GiB with interleaved views that have no common period).
pub const BUDGET: u64 = 1 << 28;

/// As many patterns may be made of the views of one storage that overlap themselves or have odd
/// strides of half bytes.
const PIECES: u64 = 1 << 12;

/// Making such a pattern takes about as long as walking this many runs.
const PIECE_RUNS: u64 = 32;

/// With more views than this no common period is looked for: each round may take away one view only.
const PERIODIC: usize = 64;

/// How many patterns of one storage are taken apart into their periods, one dimension at a time.
const ROUNDS: usize = 1 << 16;

/// How much of a storage its views reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// How many of its bytes some view reaches.
    pub bytes: u64,
    /// Whether that is exact; otherwise it is an upper bound.
    pub is_exact: bool,
    /// Whether all views stay within the storage; what is beyond its end is not counted.
    pub is_within: bool,
}

/// Counts the bytes of a storage that some view reaches, and takes what it walks from the budget.
#[must_use]
pub fn reach(bytes: u64, views: &[&View], budget: &mut u64) -> Reach {
    let mut reach = Reach { bytes: 0, is_exact: true, is_within: true };
    let mut patterns = HashSet::new();
    let mut room = PIECES.min(*budget / PIECE_RUNS);
    let before = room;
    for view in views {
        let mut found = Pieces { patterns: Vec::new(), room: &mut room, is_exact: true };
        if found.take(view).is_none() {
            reach.is_within = false;
            continue;
        }
        reach.is_exact &= found.is_exact;
        for pattern in found.patterns {
            reach.is_within &= pattern.span().end <= bytes;
            if pattern.copies > 0 && pattern.offset < bytes {
                patterns.insert(cut(pattern, bytes));
            }
        }
    }
    *budget -= (before - room) * PIECE_RUNS;
    let mut counter = Counter { end: bytes, budget, rounds: ROUNDS, is_exact: true };
    reach.bytes = counter.count(patterns.into_iter().collect());
    reach.is_exact &= counter.is_exact;
    reach
}

/// How many bytes clones of these views would take. Views that are equal are one tensor under several
/// names, and a clone keeps them together.
#[must_use]
pub fn clone_bytes(views: &[&View]) -> u64 {
    let distinct: HashSet<_> = views.iter().map(|view| (view.dtype, &view.layout)).collect();
    let bytes = |(dtype, layout): (crate::dtype::DType, &crate::strided::Strided)| {
        layout.elements().and_then(|elements| dtype.bytes_of(elements)).unwrap_or(u64::MAX)
    };
    distinct.into_iter().map(bytes).fold(0, u64::saturating_add)
}

/// The bytes of a view, as patterns that nest; together they reach what the view does.
struct Pieces<'a> {
    patterns: Vec<Pattern>,
    room: &'a mut u64,
    is_exact: bool,
}

impl Pieces<'_> {
    /// Takes a view; nothing if it leaves 64 bits or makes no sense.
    fn take(&mut self, view: &View) -> Option<()> {
        let bits = u64::from(view.dtype.bits());
        let Pattern { offset, copies, mut dims } = view.layout.pattern()?;
        view.layout.span()?.end.checked_mul(bits)?;
        if copies > 0 {
            for dim in &mut dims {
                dim.stride *= bits;
            }
            dims.push(Dim { size: bits, stride: 1 });
            self.bits(Pattern { offset: offset * bits, copies: 1, dims }.distinct());
        }
        Some(())
    }

    /// Bits to bytes. A dimension that steps by odd bits steps by whole bytes eight steps on, so it
    /// falls into eight that do.
    fn bits(&mut self, pattern: Pattern) {
        let odd = pattern.dims.iter().position(|dim| dim.stride > 1 && dim.stride % 8 != 0);
        match odd.map(|odd| (odd, self.afford(8))) {
            None => self.bytes(bytes_from_bits(pattern).distinct()),
            Some((_, false)) => self.bytes(bytes_from_bits(hull(&pattern))),
            Some((odd, true)) => {
                for piece in spread(&pattern, odd, 8) {
                    self.bits(piece);
                }
            }
        }
    }

    /// Takes a pattern of bytes apart until each part nests.
    fn bytes(&mut self, pattern: Pattern) {
        let dims = &pattern.dims;
        let Some(at) = (0..dims.len()).rev().find(|&at| !steps_over(&pattern, at)) else {
            self.patterns.push(pattern);
            return;
        };
        // Spread the shortest of the dimensions that are in each other's way.
        let least = (at..dims.len()).min_by_key(|&at| dims[at].size).unwrap_or(at);
        let size = dims[least].size;
        if self.afford(size) {
            for piece in spread(&pattern, least, size) {
                self.bytes(piece.distinct());
            }
        } else {
            self.patterns.push(hull(&pattern));
        }
    }

    /// Whether there is room for this many more; if not, the count is a bound.
    fn afford(&mut self, pieces: u64) -> bool {
        let left = self.room.checked_sub(pieces);
        self.is_exact &= left.is_some();
        *self.room = left.unwrap_or(*self.room);
        left.is_some()
    }
}

/// Whether this dimension steps over all that is inside it.
fn steps_over(pattern: &Pattern, at: usize) -> bool {
    let inner = inside(pattern, at + 1).span();
    pattern.dims[at].stride >= inner.end - inner.start
}

/// The pattern without its first dimensions.
fn inside(pattern: &Pattern, from: usize) -> Pattern {
    Pattern { offset: pattern.offset, copies: 1, dims: pattern.dims[from..].to_vec() }
}

/// The pattern as `ways` patterns: every `ways`-th step of one dimension in each.
fn spread(pattern: &Pattern, at: usize, ways: u64) -> Vec<Pattern> {
    let dim = pattern.dims[at];
    let piece = |phase: u64| {
        let mut piece = pattern.clone();
        piece.offset += phase * dim.stride;
        let size = (dim.size - phase).div_ceil(ways);
        if size > 1 {
            piece.dims[at] = Dim { size, stride: dim.stride * ways };
            piece.dims.sort_by_key(|dim| Reverse(dim.stride));
        } else {
            piece.dims.remove(at);
        }
        piece
    };
    (0..ways.min(dim.size)).map(piece).collect()
}

/// A pattern of bits, all of whose outer strides are whole bytes, as the bytes that it touches.
fn bytes_from_bits(mut pattern: Pattern) -> Pattern {
    let row = match pattern.dims.last() {
        Some(&Dim { size, stride: 1 }) => {
            pattern.dims.pop();
            size
        }
        _ => 1,
    };
    let first = pattern.offset / 8;
    let bytes = (pattern.offset + row).div_ceil(8) - first;
    for dim in &mut pattern.dims {
        dim.stride /= 8;
    }
    if bytes > 1 {
        pattern.dims.push(Dim { size: bytes, stride: 1 });
        pattern.dims.sort_by_key(|dim| Reverse(dim.stride));
    }
    Pattern { offset: first, ..pattern }
}

/// All from the first to the last.
fn hull(pattern: &Pattern) -> Pattern {
    let span = pattern.span();
    Pattern { offset: span.start, copies: 1, dims: row(span.end - span.start) }
}

fn row(size: u64) -> Vec<Dim> {
    if size > 1 { vec![Dim { size, stride: 1 }] } else { Vec::new() }
}

/// A row ends with the storage; of other patterns the walk leaves out what is beyond.
fn cut(mut pattern: Pattern, bytes: u64) -> Pattern {
    if pattern.is_dense() && pattern.span().end > bytes {
        pattern.dims = row(bytes - pattern.offset);
    }
    pattern
}

/// Counts bytes in unions of patterns that nest.
struct Counter<'a> {
    end: u64,
    budget: &'a mut u64,
    /// How many more patterns are taken apart into their periods.
    rounds: usize,
    is_exact: bool,
}

impl Counter<'_> {
    fn count(&mut self, patterns: Vec<Pattern>) -> u64 {
        let (rows, mut rest): (Vec<_>, Vec<_>) = patterns.into_iter().partition(Pattern::is_dense);
        let rows = merged(rows);
        // What is inside a row adds nothing to it.
        rest.retain(|pattern| {
            let span = pattern.span();
            let before = rows.partition_point(|row| row.offset <= span.start);
            before == 0 || rows[before - 1].span().end < span.end.min(self.end)
        });
        if rest.is_empty() {
            return rows.iter().map(Pattern::elements).sum();
        }
        rest.extend(rows);
        rest.sort_by_key(|pattern| pattern.offset);
        // What no span connects is counted apart.
        let (mut total, mut group, mut until) = (0, Vec::new(), 0);
        for pattern in rest {
            if pattern.offset >= until {
                total += self.group(&group);
                group.clear();
            }
            until = until.max(pattern.span().end);
            group.push(pattern);
        }
        total + self.group(&group)
    }

    /// Counts interleaved patterns, sorted by their first byte.
    fn group(&mut self, patterns: &[Pattern]) -> u64 {
        let ends_within = patterns.iter().all(|pattern| pattern.span().end <= self.end);
        match patterns {
            [] => 0,
            [one] if ends_within => one.elements(),
            many if ends_within && many.len() <= PERIODIC => {
                self.periods(many).unwrap_or_else(|| self.walk(many))
            }
            many => self.walk(many),
        }
    }

    /// Patterns that repeat with the same stride, one period of which holds a step of each.
    fn periods(&mut self, patterns: &[Pattern]) -> Option<u64> {
        // Each dimension of each pattern may need a round of its own inside those of the others.
        self.rounds = self.rounds.checked_sub(patterns.len())?;
        let stride = patterns[0].dims.first()?.stride;
        let is_common = |pattern: &Pattern| {
            pattern.dims.first().is_some_and(|dim| dim.stride == stride && stride > 1)
        };
        if !patterns.iter().all(is_common) {
            return None;
        }
        let steps: Vec<Pattern> = patterns.iter().map(|pattern| inside(pattern, 1)).collect();
        let end = steps.iter().map(|step| step.span().end).max()?;
        if end - patterns[0].offset > stride {
            return None;
        }
        let periods = patterns.iter().map(|pattern| pattern.dims[0].size).min()?;
        // What goes on after the shortest of them begins a period later than all before it.
        let left =
            patterns.iter().filter(|pattern| pattern.dims[0].size > periods).map(|pattern| {
                let mut left = pattern.clone();
                left.offset += periods * stride;
                left.dims[0].size -= periods;
                if left.dims[0].size == 1 {
                    left.dims.remove(0);
                }
                left
            });
        let left = left.collect();
        Some(periods * self.count(steps) + self.count(left))
    }

    /// Walks the runs of all patterns in the order of the storage.
    fn walk(&mut self, patterns: &[Pattern]) -> u64 {
        let runs = patterns.iter().map(Pattern::run_count).fold(0, u64::saturating_add);
        if runs > *self.budget {
            self.is_exact = false;
            let end = patterns.iter().map(|pattern| pattern.span().end).max().unwrap_or(0);
            return end.min(self.end) - patterns[0].offset;
        }
        *self.budget -= runs;
        let mut walks: Vec<_> = patterns.iter().map(Pattern::runs).collect();
        let first = walks.iter_mut().enumerate();
        let first = first.filter_map(|(at, walk)| walk.next().map(|run| Reverse((run, at))));
        let mut heads: BinaryHeap<_> = first.collect();
        let (mut total, mut until) = (0, 0);
        while let Some(mut head) = heads.peek_mut() {
            let Reverse(((start, length), at)) = *head;
            if start >= self.end {
                break;
            }
            let end = (start + length).min(self.end);
            total += end.saturating_sub(start.max(until));
            until = until.max(end);
            match walks[at].next() {
                Some(run) => *head = Reverse((run, at)),
                None => drop(PeekMut::pop(head)),
            }
        }
        total
    }
}

/// Rows that touch or overlap, as one; sorted.
fn merged(mut rows: Vec<Pattern>) -> Vec<Pattern> {
    rows.sort_by_key(|pattern| pattern.offset);
    let mut merged: Vec<Pattern> = Vec::with_capacity(rows.len());
    for next in rows {
        match merged.last_mut() {
            Some(last) if next.offset <= last.span().end => {
                let end = last.span().end.max(next.span().end);
                last.dims = row(end - last.offset);
            }
            _ => merged.push(next),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dtype::DType;
    use crate::strided::Strided;
    use crate::strided::tests::{layouts, places};

    fn view(dtype: DType, shape: &[u64], stride: &[i64], offset: u64) -> View {
        let layout = Strided { shape: shape.to_vec(), stride: stride.to_vec(), offset };
        View { role: String::new(), storage: 0, dtype, layout }
    }

    fn reached(bytes: u64, views: &[View]) -> Reach {
        reach(bytes, &views.iter().collect::<Vec<_>>(), &mut { BUDGET })
    }

    fn exactly(bytes: u64) -> Reach {
        Reach { bytes, is_exact: true, is_within: true }
    }

    /// Marks every byte of every element.
    fn by_marking(bytes: u64, views: &[View]) -> Reach {
        let mut marks = vec![false; bytes as usize];
        let mut is_within = true;
        for view in views {
            let bits = u64::from(view.dtype.bits());
            for place in places(&view.layout) {
                for byte in place * bits / 8..((place + 1) * bits).div_ceil(8) {
                    match marks.get_mut(byte as usize) {
                        Some(mark) => *mark = true,
                        None => is_within = false,
                    }
                }
            }
        }
        let bytes = marks.into_iter().filter(|&mark| mark).count() as u64;
        Reach { bytes, is_exact: true, is_within }
    }

    #[test]
    fn a_view_of_all_reaches_all_whatever_its_size() {
        let all = view(DType::Float32, &[1 << 40], &[1], 0);

        assert_eq!(reached(4 << 40, std::slice::from_ref(&all)), exactly(4 << 40));
        assert_eq!(reached(4 << 40, &[all.clone(), all]), exactly(4 << 40));
    }

    #[test]
    fn every_other_element_is_half_of_the_bytes_without_a_walk() {
        let even = view(DType::Float32, &[1 << 39], &[2], 0);

        assert_eq!(reach(4 << 40, &[&even], &mut 0), exactly(2 << 40));
    }

    #[test]
    fn real_and_imaginary_parts_are_counted_in_one_period() {
        let real = view(DType::Float32, &[1 << 38], &[2], 0);
        let imaginary = view(DType::Float32, &[(1 << 38) - 3], &[2], 1);

        let few = &mut (1 << 12);
        assert_eq!(reach(8 << 38, &[&real, &imaginary], few), exactly((8 << 38) - 12));
    }

    #[test]
    fn many_dimensions_in_common_do_not_multiply() {
        // The shortest in each dimension is another one's shortest in what is left of it, and so on.
        let views: Vec<View> = (0..20)
            .map(|more: u64| {
                let stride: Vec<i64> = (0..12).map(|power| 2 * 24_i64.pow(power)).rev().collect();
                view(DType::UInt8, &[2 + more; 12], &stride, 0)
            })
            .collect();
        let views: Vec<&View> = views.iter().collect();

        let reach = reach(1 << 60, &views, &mut 1000);

        assert!(reach.is_within && reach.bytes >= 21_u64.pow(12));
    }

    #[test]
    fn windows_that_slide_reach_each_byte_once() {
        let windows = view(DType::Float64, &[1 << 20, 1 << 10], &[1, 1], 7);

        let elements = (1 << 20) + (1 << 10) - 1;
        assert_eq!(reached(1 << 30, &[windows]), exactly(elements * 8));
    }

    #[test]
    fn a_count_that_would_take_too_long_is_a_bound() {
        let twos = view(DType::Float32, &[1 << 30], &[2], 0);
        let threes = view(DType::Float32, &[1 << 30], &[3], 0);

        let reach = reached(1 << 40, &[twos, threes]);

        assert_eq!(reach.bytes, 3 * 4 * ((1 << 30) - 1) + 4);
        assert!(!reach.is_exact && reach.is_within);
    }

    #[test]
    fn a_view_that_overlaps_itself_a_million_times_is_bounded() {
        let knot = view(DType::UInt8, &[1 << 20, 1 << 20], &[1001, 1000], 0);

        let reach = reached(1 << 40, &[knot]);

        assert_eq!(reach.bytes, ((1 << 20) - 1) * 2001 + 1);
        assert!(!reach.is_exact);
    }

    #[test]
    fn what_is_beyond_the_end_is_not_counted() {
        let row = view(DType::Float32, &[10], &[1], 0);
        let nonsense = view(DType::Float32, &[2], &[-1], 4);
        let far = view(DType::Float32, &[1 << 61], &[1], u64::MAX / 2);

        assert_eq!(reached(30, &[row]), Reach { is_within: false, ..exactly(30) });
        assert_eq!(reached(30, &[nonsense, far]), Reach { is_within: false, ..exactly(0) });
    }

    #[test]
    fn a_clone_of_tied_weights_is_one_clone() {
        let (tied, same) =
            (view(DType::Float16, &[4], &[1], 0), view(DType::Float16, &[4], &[1], 0));
        let other = view(DType::Float16, &[2, 2], &[2, 1], 0);

        assert_eq!(clone_bytes(&[&tied, &same]), 8);
        assert_eq!(clone_bytes(&[&tied, &same, &other]), 16);
        assert_eq!(clone_bytes(&[&view(DType::Int8, &[u64::MAX, 2], &[1, 1], 0)]), u64::MAX);
    }

    fn views() -> impl Strategy<Value = Vec<View>> {
        let dtype = prop_oneof![
            Just(DType::UInt8),
            Just(DType::Float32),
            Just(DType::Complex128),
            Just(DType::QUInt4x2),
            Just(DType::QUInt2x4),
            Just(DType::Float6E2M3),
        ];
        let view = (dtype, layouts()).prop_map(|(dtype, layout)| View {
            role: String::new(),
            storage: 0,
            dtype,
            layout,
        });
        proptest::collection::vec(view, 0..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn the_count_is_that_of_the_marked_bytes(views in views(), bytes in 0u64..1500) {
            prop_assert_eq!(reached(bytes, &views), by_marking(bytes, &views));
        }

        #[test]
        fn without_a_budget_the_count_is_exact_or_a_bound(views in views(), bytes in 0u64..1500) {
            let expected = by_marking(bytes, &views);

            let reach = reach(bytes, &views.iter().collect::<Vec<_>>(), &mut 0);

            prop_assert!(expected.bytes <= reach.bytes && reach.bytes <= bytes);
            prop_assert!(!reach.is_exact || reach.bytes == expected.bytes);
            prop_assert_eq!(reach.is_within, expected.is_within);
        }

        #[test]
        fn equal_strides_count_as_marked(
            dims in proptest::collection::vec((1u64..9, 0u64..12), 1..6),
            stride in 1i64..9,
        ) {
            let views = dims.iter().map(|&(size, at)| view(DType::Int16, &[size], &[stride], at));
            let views: Vec<View> = views.collect();

            prop_assert_eq!(reached(180, &views), by_marking(180, &views));
        }
    }
}
