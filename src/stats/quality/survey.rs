//! The first pass: how often each range of magnitudes comes, and how large each channel is.
//!
//! A range is all magnitudes with the same first 16 bits as 64-bit floats: a 32nd of a power of two.

use pulp::Simd;

use super::super::Sink;
use super::super::parallel::Threads;
use super::super::plan::MAX_TASKS;
use super::super::tally::{Counters, TURNS};
use super::walk::{Along, Room, Walk};
use crate::error::Result;
use crate::progress::Progress;

/// How many ranges there are.
pub(super) const RANGES: usize = 1 << 16;

/// From this range on, numbers are not finite.
pub(super) const NOT_FINITE: usize = 0x7ff << 5;

/// Where every part of a tensor has elements of every channel, at most this many sums of channels are kept.
const MAX_SUMS: u64 = 1 << 21;

/// The range of a number.
#[inline(always)]
pub(super) fn range_of(x: f64) -> u16 {
    // The sign is cut off.
    (x.to_bits() >> 47) as u16
}

/// What is known of one channel.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Channel {
    /// The largest magnitude.
    pub max: f64,
    pub squares: f64,
}

impl Channel {
    /// Adds the finite ones of some numbers.
    #[inline(always)]
    fn add<V: Simd>(&mut self, simd: V, numbers: &[f64]) {
        let (vectors, rest) = V::as_simd_f64s(numbers);
        let zero = simd.splat_f64s(0.0);
        let (mut max, mut squares) = ([zero; 2], [zero; 2]);
        let (pairs, last) = vectors.as_chunks::<2>();
        for pair in pairs {
            for lane in 0..2 {
                max[lane] = simd.max_f64s(max[lane], simd.abs_f64s(pair[lane]));
                squares[lane] = simd.mul_add_e_f64s(pair[lane], pair[lane], squares[lane]);
            }
        }
        let max = simd.reduce_max_f64s(simd.max_f64s(max[0], max[1]));
        let squares = simd.reduce_sum_f64s(simd.add_f64s(squares[0], squares[1]));
        let mut found = Self { max, squares };
        for &x in pulp::bytemuck::cast_slice::<_, f64>(last).iter().chain(rest) {
            found.add_number(x);
        }
        if !found.squares.is_finite() {
            found = Self::default();
            for &x in numbers.iter().filter(|x| x.is_finite()) {
                found.add_number(x);
            }
        }
        self.merge(found);
    }

    #[inline(always)]
    fn add_number(&mut self, x: f64) {
        self.max = if x.abs() > self.max { x.abs() } else { self.max };
        self.squares += x * x;
    }

    #[inline(always)]
    fn merge(&mut self, other: Self) {
        self.max = if other.max > self.max { other.max } else { self.max };
        self.squares += other.squares;
    }
}

/// What the first pass finds.
pub(super) struct Survey {
    /// How many numbers are in each range.
    pub counts: Vec<u64>,
    /// Each channel, or all together as one.
    pub channels: Vec<Channel>,
    /// The largest finite magnitude.
    pub max: f64,
    /// How many are finite.
    pub finite: u64,
    pub is_all_finite: bool,
}

/// Reads all numbers; `along` says which channel they belong to.
pub(super) fn survey(walk: &Walk<'_>, along: Along, progress: &Progress<'_>) -> Result<Survey> {
    let is_outermost = along.inner.saturating_mul(along.size) >= walk.numbers();
    let most = if is_outermost { MAX_TASKS } else { MAX_SUMS / along.size };
    let (of_task, tasks) = walk.tasks(most);
    let start = || (Room::default(), Counters::new(), Vec::new());
    let work = |(room, counters, found): &mut (Room, Counters<RANGES>, Vec<_>), task: u64| {
        let elements = task * of_task..(task + 1) * of_task;
        let number = elements.start * walk.values.values_of_element();
        let base = if is_outermost { along.index(number) } else { 0 };
        let mut sink = Looking { counters, along, base, channels: Vec::new() };
        walk.show(elements, room, &mut sink)?;
        found.push((task, base, sink.channels));
        Ok(())
    };
    let states = Threads { count: walk.threads, progress }.spread(tasks, start, work)?;
    let mut counts = vec![0; RANGES];
    let mut found = Vec::new();
    for (_, counters, parts) in states {
        counters.add_to(&mut counts);
        found.extend(parts);
    }
    found.sort_unstable_by_key(|&(task, ..)| task);
    let mut channels = vec![Channel::default(); along.size as usize];
    for (_, base, parts) in found {
        for (channel, part) in channels[base as usize..].iter_mut().zip(parts) {
            channel.merge(part);
        }
    }
    let finite = counts[..NOT_FINITE].iter().sum();
    Ok(Survey {
        max: channels.iter().fold(0.0, |max, channel| channel.max.max(max)),
        finite,
        is_all_finite: finite == walk.numbers(),
        counts,
        channels,
    })
}

struct Looking<'a> {
    counters: &'a mut Counters<RANGES>,
    along: Along,
    /// The channel that the first of `channels` is.
    base: u64,
    channels: Vec<Channel>,
}

impl Sink for Looking<'_> {
    #[inline(always)]
    fn add<V: Simd>(&mut self, simd: V, first: u64, numbers: &mut [f64], _: u64) {
        let (turns, rest) = numbers.as_chunks::<TURNS>();
        for numbers in turns {
            for turn in 0..TURNS {
                self.counters.counts[turn][usize::from(range_of(numbers[turn]))] += 1;
            }
        }
        for &x in rest {
            self.counters.counts[0][usize::from(range_of(x))] += 1;
        }
        self.counters.added(numbers.len());
        for (index, run) in self.along.runs(first, numbers.len()) {
            let at = (index - self.base) as usize;
            if at >= self.channels.len() {
                self.channels.resize(at + 1, Channel::default());
            }
            self.channels[at].add(simd, &numbers[run]);
        }
    }
}
