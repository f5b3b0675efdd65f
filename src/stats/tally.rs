//! How often each code of a type of up to 16 bits comes: exact, in one pass, and all that there is to know.

use super::histogram::Bins;
use super::moments::Moments;
use super::parallel;
use super::plan::{Buffers, Plan};
use super::values::{Form, Values};
use crate::error::Result;
use crate::progress::Progress;

/// Counters that take turns, so that equal codes in a row do not wait for each other.
const TURNS: usize = 2;

/// How often each code comes.
pub(super) struct Tally(Vec<u64>);

/// Counts the codes of all elements.
pub(super) fn count(plan: &Plan<'_, 1>, values: &Values, progress: &Progress<'_>) -> Result<Tally> {
    let codes = if values.form == Form::TwoBytes { 1 << 16 } else { 1 << 8 };
    let start = || (Buffers::default(), vec![[0u64; TURNS]; codes]);
    let work = |(buffers, counts): &mut (Buffers<1>, Vec<[u64; TURNS]>), task| {
        plan.chunks(task, buffers, |_, [units], _| {
            if values.form == Form::TwoBytes {
                let (units, _) = units.as_chunks::<2>();
                add(units.iter().map(|&unit| usize::from(u16::from_le_bytes(unit))), counts);
            } else {
                add(units.iter().map(|&unit| usize::from(unit)), counts);
            }
        })
    };
    let mut all = vec![0; codes];
    for (_, counts) in parallel::spread(plan.tasks(), plan.threads(), progress, start, work)? {
        for (all, counts) in all.iter_mut().zip(counts) {
            *all += counts.iter().sum::<u64>();
        }
    }
    Ok(Tally(if values.form == Form::TwoInByte { halves(&all) } else { all }))
}

fn add(codes: impl Iterator<Item = usize>, counts: &mut [[u64; TURNS]]) {
    for (index, code) in codes.enumerate() {
        counts[code][index % TURNS] += 1;
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
