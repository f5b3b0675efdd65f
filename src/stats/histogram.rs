//! How many numbers fall into each of some bins of equal width.
//!
//! The bin of x is ⌊(x − min) ÷ (max − min) × bins⌋, and the last one holds its upper edge too, as in
//! `torch.histc`. It is computed in 64-bit floats, so an element within a rounding of an edge may be in
//! the bin beside the one that torch, which computes in the type of the tensor, puts it into.

/// Counters that take turns, so that equal numbers in a row do not wait for each other.
const TURNS: usize = 4;

/// So many numbers are turned into bins at once.
const GROUP: usize = 256;

/// Where the bins are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bins {
    pub count: usize,
    /// A power of two that keeps the arithmetic away from the ends of the floats.
    factor: f64,
    low: f64,
    scale: f64,
    last: f64,
}

impl Bins {
    /// Bins of equal width between two finite numbers; all is in the first if they are equal.
    pub fn new(count: usize, min: f64, max: f64) -> Self {
        let factor = match max - min {
            width if width.is_infinite() => 0.25,
            width if width < 1e-290 => 2f64.powi(200),
            _ => 1.0,
        };
        let width = max * factor - min * factor;
        let scale = if width > 0.0 { count as f64 / width } else { 0.0 };
        Self { count, factor, low: min * factor, scale, last: count.saturating_sub(1) as f64 }
    }

    /// The bin of a finite number within the edges.
    #[inline(always)]
    pub fn of(&self, x: f64) -> usize {
        self.place(x) as usize
    }

    #[inline(always)]
    fn place(&self, x: f64) -> f64 {
        let place = (x * self.factor - self.low) * self.scale;
        if place < self.last { place } else { self.last }
    }
}

/// Counters for bins, to be filled by one thread.
pub(super) struct Counters {
    turns: Vec<[u64; TURNS]>,
}

impl Counters {
    pub fn new(bins: &Bins) -> Self {
        // One more, for what is not finite.
        Self { turns: vec![[0; TURNS]; bins.count + 1] }
    }

    /// Counts the finite ones of these numbers.
    #[inline(always)]
    pub fn add(&mut self, numbers: &[f64], bins: &Bins) {
        let nowhere = bins.count as u32;
        let mut places = [0u32; GROUP];
        for group in numbers.chunks(GROUP) {
            for (place, &x) in places.iter_mut().zip(group) {
                let bin = floor(bins.place(x));
                *place = if x.abs() <= f64::MAX { bin } else { nowhere };
            }
            for places in places[..group.len()].chunks(TURNS) {
                for (turn, &place) in places.iter().enumerate() {
                    self.turns[place as usize][turn] += 1;
                }
            }
        }
    }

    /// Adds the counts to a histogram.
    pub fn add_to(&self, histogram: &mut [u64]) {
        for (bin, turns) in histogram.iter_mut().zip(&self.turns) {
            *bin += turns.iter().sum::<u64>();
        }
    }
}

/// The integer below a number from 0 to 2³¹. A cast would be checked for what cannot come here.
#[inline(always)]
fn floor(x: f64) -> u32 {
    /// Adding it leaves the nearest integer in the low bits.
    const TO_BITS: f64 = 4_503_599_627_370_496.0;
    let rounded = x + TO_BITS;
    (rounded.to_bits() as u32).wrapping_sub(u32::from(rounded - TO_BITS > x))
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
