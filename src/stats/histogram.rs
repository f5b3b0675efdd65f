//! How many numbers fall into each of some bins of equal width.
//!
//! The bin of x is ⌊(x − min) ÷ (max − min) × bins⌋, and the last one holds its upper edge too, as in
//! `torch.histc`. It is computed in 64-bit floats, so an element within a rounding of an edge may be in
//! the bin beside the one that torch, which computes in the type of the tensor, puts it into.

/// Counters that take turns, so that equal numbers in a row do not wait for each other.
const TURNS: usize = 4;

/// More bins than this are no use, and one more code is for what is in none.
pub(super) const MAX_BINS: usize = CODES - 1;

/// So many numbers are turned into bins at once.
const GROUP: usize = 256;

/// A product instead of a quotient is this close to it, for any number of bins.
const NEAR: f64 = 1e-9;

/// Where the bins are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bins {
    pub count: usize,
    /// A power of two that keeps the arithmetic away from the ends of the floats.
    factor: f64,
    low: f64,
    width: f64,
    scale: f64,
    last: f64,
}

impl Bins {
    /// Bins of equal width between two finite numbers; all is in the first if they are equal.
    pub fn new(count: usize, min: f64, max: f64) -> Self {
        let factor = match max - min {
            width if width > 1e300 => 2f64.powi(-40),
            width if width < 1e-290 => 2f64.powi(200),
            _ => 1.0,
        };
        let low = min * factor;
        let width = if min < max { max * factor - low } else { 1.0 };
        let last = count.saturating_sub(1) as f64;
        Self { count, factor, low, width, scale: count as f64 / width, last }
    }

    /// The bin of a finite number within the edges.
    #[inline(always)]
    pub fn of(&self, x: f64) -> usize {
        self.exactly(x) as usize
    }

    /// The place of a number among the bins, as torch computes it.
    #[inline(always)]
    fn exactly(&self, x: f64) -> f64 {
        let place = (x * self.factor - self.low) * self.count as f64 / self.width;
        if place < self.last { place } else { self.last }
    }

    /// The same but for a rounding, and without the division, which takes as long as all the rest.
    #[inline(always)]
    fn nearly(&self, x: f64) -> f64 {
        let place = (x * self.factor - self.low) * self.scale;
        if place < self.last { place } else { self.last }
    }
}

/// Counters for bins, to be filled by one thread.
///
/// There are as many as a `u16` can name, so that no index needs a check; only those that are used ever
/// become memory.
pub(super) struct Counters([Box<[u64; CODES]>; TURNS]);

const CODES: usize = 1 << 16;

impl Counters {
    pub fn new() -> Self {
        Self(std::array::from_fn(|_| {
            let zeros = vec![0; CODES].into_boxed_slice();
            zeros.try_into().unwrap_or_else(|_| unreachable!("there are as many as codes"))
        }))
    }

    /// Counts the finite ones of these numbers; `ALL` says that all are.
    #[inline(always)]
    pub fn add<const ALL: bool>(&mut self, numbers: &[f64], bins: &Bins) {
        let nowhere = bins.count as u16;
        let mut places = [0u16; GROUP];
        for group in numbers.chunks(GROUP) {
            let mut is_near = 0;
            for (place, &x) in places.iter_mut().zip(group) {
                let (bin, distance) = floor(bins.nearly(x));
                is_near |= u16::from(distance < NEAR);
                *place = if ALL || x.abs() <= f64::MAX { bin } else { nowhere };
            }
            // Some number is on an edge, or so close that it must be looked at closely.
            if is_near != 0 {
                for (place, &x) in places.iter_mut().zip(group) {
                    let (bin, _) = floor(bins.exactly(x));
                    *place = if ALL || x.abs() <= f64::MAX { bin } else { nowhere };
                }
            }
            let (turns, rest) = places[..group.len()].as_chunks::<TURNS>();
            for places in turns {
                for turn in 0..TURNS {
                    self.0[turn][usize::from(places[turn])] += 1;
                }
            }
            for &place in rest {
                self.0[0][usize::from(place)] += 1;
            }
        }
    }

    /// Adds the counts to a histogram.
    pub fn add_to(&self, histogram: &mut [u64]) {
        for (bin, count) in histogram.iter_mut().enumerate() {
            *count += self.0.iter().map(|turn| turn[bin]).sum::<u64>();
        }
    }
}

/// The integer below a number from 0 to 2¹⁶, and how far the nearest one is. A cast would be checked for
/// what cannot come here.
#[inline(always)]
fn floor(x: f64) -> (u16, f64) {
    /// Adding it leaves the nearest integer in the low bits.
    const TO_BITS: f64 = 4_503_599_627_370_496.0;
    let rounded = x + TO_BITS;
    let nearest = rounded - TO_BITS;
    let below = (rounded.to_bits() as u16).wrapping_sub(u16::from(nearest > x));
    (below, (nearest - x).abs())
}

/// How evenly the counts are spread, in bits; none if there are none.
pub(super) fn entropy(histogram: &[u64]) -> Option<f64> {
    let total: u64 = histogram.iter().sum();
    if total == 0 {
        return None;
    }
    let share = |&count: &u64| count as f64 / total as f64;
    let bits = |share: f64| if share > 0.0 { share * share.log2() } else { 0.0 };
    // 0 − …: an entropy of nothing is 0, not −0.
    Some(0.0 - histogram.iter().map(share).map(bits).sum::<f64>())
}
