//! How often each code of a type of up to 16 bits comes: exact, in one pass, and all that there is to know.

use super::histogram::Bins;
use super::moments::Moments;
use super::plan::{Buffers, Plan};
use super::values::{Form, Values};
use crate::error::Result;
use crate::progress::Progress;

/// Counters that take turns, so that equal codes in a row do not wait for each other.
pub(super) const TURNS: usize = 4;

/// How often each code comes.
pub(super) struct Tally(Vec<u64>);

/// Counts the codes of all elements.
pub(super) fn count(plan: &Plan<'_, 1>, values: &Values, progress: &Progress<'_>) -> Result<Tally> {
    Ok(Tally(match values.form {
        Form::TwoBytes => {
            let code = |unit| usize::from(u16::from_le_bytes(unit));
            codes::<2, { 1 << 16 }>(plan, progress, code)?
        }
        form => {
            let bytes = codes::<1, 256>(plan, progress, |[code]| usize::from(code))?;
            if form == Form::TwoInByte { halves(&bytes) } else { bytes }
        }
    }))
}

/// Counts codes of `N` bytes, of which there are `CODES`.
fn codes<const N: usize, const CODES: usize>(
    plan: &Plan<'_, 1>,
    progress: &Progress<'_>,
    code: impl Fn([u8; N]) -> usize + Sync,
) -> Result<Vec<u64>> {
    let start = || (Buffers::default(), Counters::<CODES>::new());
    let work = |(buffers, counters): &mut (Buffers<1>, Counters<CODES>), task| {
        plan.chunks(task, buffers, |_, [units], _| {
            let (turns, rest) = units.as_chunks::<N>().0.as_chunks::<TURNS>();
            for units in turns {
                for turn in 0..TURNS {
                    counters.counts[turn][code(units[turn])] += 1;
                }
            }
            for &unit in rest {
                counters.counts[0][code(unit)] += 1;
            }
            counters.added(units.len() / N);
        })
    };
    let mut all = vec![0; CODES];
    for (_, counters) in plan.threads(progress).spread(plan.tasks(), start, work)? {
        counters.add_to(&mut all);
    }
    Ok(all)
}

/// Counters of one thread. Those that are counted in are narrow, because twice the memory is twice the
/// cache: they are emptied into wide ones before they can overflow.
pub(super) struct Counters<const CODES: usize> {
    pub counts: [Box<[u32; CODES]>; TURNS],
    /// No counter is beyond this.
    most: usize,
    spilled: Vec<u64>,
}

impl<const CODES: usize> Counters<CODES> {
    pub fn new() -> Self {
        let zeros = |_| {
            let zeros = vec![0; CODES].into_boxed_slice();
            zeros.try_into().unwrap_or_else(|_| unreachable!("there are as many as codes"))
        };
        Self { counts: std::array::from_fn(zeros), most: 0, spilled: vec![0; CODES] }
    }

    /// Adds to the number of those counted; chunks are far smaller than half of what a counter holds.
    pub fn added(&mut self, count: usize) {
        self.most += count;
        if self.most > 1 << 31 {
            self.spill();
        }
    }

    /// Adds all counts to some others.
    pub fn add_to(mut self, all: &mut [u64]) {
        self.spill();
        for (all, count) in all.iter_mut().zip(self.spilled) {
            *all += count;
        }
    }

    fn spill(&mut self) {
        self.most = 0;
        for counts in &mut self.counts {
            for (spilled, count) in self.spilled.iter_mut().zip(counts.iter_mut()) {
                *spilled += u64::from(std::mem::take(count));
            }
        }
    }
}

/// From how often each byte comes to how often each of its halves does.
fn halves(bytes: &[u64]) -> Vec<u64> {
    let mut counts = vec![0; 16];
    for (byte, count) in bytes.iter().enumerate() {
        counts[byte & 15] += count;
        counts[byte >> 4] += count;
    }
    counts
}

impl Tally {
    /// The codes that come at all, and how often.
    fn counts(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.iter().copied().enumerate().filter(|&(_, count)| count > 0)
    }

    pub fn moments(&self, value: impl Fn(usize) -> f64, smallest_normal: f64) -> Moments {
        let finite = || self.counts().filter(|&(code, _)| value(code).is_finite());
        let count: u64 = finite().map(|(_, count)| count).sum();
        // Divided first: the sum itself may be too large.
        let mean = finite().map(|(code, times)| value(code) * (times as f64 / count as f64)).sum();
        let mut moments = Moments { mean, ..Moments::default() };
        for (code, count) in self.counts() {
            moments.add_value(value(code), count, mean, smallest_normal);
        }
        moments
    }

    pub fn histogram(&self, value: impl Fn(usize) -> f64, bins: &Bins, histogram: &mut [u64]) {
        for (code, count) in self.counts() {
            if value(code).is_finite() {
                histogram[bins.of(value(code))] += count;
            }
        }
    }
}
