//! Statistics of a tensor's elements, and of how two tensors differ, straight from the bytes of files.
//!
//! Elements are gathered in their order in the storage, chunk by chunk, converted to 64-bit floats and
//! added up. Most types of up to 16 bits are not even converted: how often each code comes says everything.
//!
//! # What is exact
//!
//! Counts and extremes are exact. Everything else is computed in 64-bit floats, around the mean of each
//! block, and is within about 1e-12 of the exact value. A 64-bit integer is rounded to 53 bits first, as
//! torch does when it is asked for the mean of one. Sums that leave the range of 64-bit floats are
//! infinite, as in torch; a mean, deviation, skewness or kurtosis that does so is none.
//!
//! # Invariants
//!
//! The result is the same, bit by bit, on any number of threads: chunks depend on the tensor only, and
//! are added up in their order.
//!
//! # Cost
//!
//! Two passes (moments, then the histogram between the extremes), one for types of up to 16 bits.
//! Memory: about 2 MiB a thread, whatever the tensor's size. A tensor of less than 1 MiB starts no thread.
//!
//! Measured on a busy machine, with 2 GiB from the page cache, in seconds of processor time (AVX2): the first
//! pass 0.3, the second 0.7, reading 0.25 each. Loops that the compiler was left to vectorise took 1.3 in
//! the first, mostly in shuffles. Codes of 16 bits: 0.9, and 1.8 with wide counters and checked indexes.

// Code that is dispatched to a processor's vectors must be inlined into the dispatch.
#![allow(clippy::inline_always)]
// Equal is meant exactly here: bits of files, extremes, zeros.
#![allow(clippy::float_cmp)]
// Lanes are several arrays with one index.
#![allow(clippy::needless_range_loop)]

mod compare;
mod gather;
mod histogram;
mod listing;
mod moments;
mod parallel;
mod plan;
mod quality;
mod tally;
mod values;

#[cfg(test)]
mod tests;

pub use compare::{Difference, compare};
pub use listing::{Number, list, number_of};
pub use quality::{Channels, PruningPoint, Quality, RoundTrip, Spectrum, quality};

use pulp::{Arch, Simd, WithSimd};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::strided::Strided;
use histogram::{Bins, Counters, MAX_BINS, entropy};
use moments::{BLOCK, Moments};
use plan::{Affine, Buffers, Grain, Plan};
use values::{Form, Values};

/// With fewer elements than this it takes longer to look through 65,536 codes than to convert them.
const FEW: u64 = 1 << 14;

/// Where bytes come from, at any place, from several threads: a file, or a slice in memory.
pub trait Bytes: Sync {
    /// Fills the buffer with the bytes from `at` on; an error if there are not as many.
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<()>;

    /// Whether reading is quick from the beginning to the end only, as with what is packed.
    fn is_sequential(&self) -> bool {
        false
    }
}

impl Bytes for &[u8] {
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let from = usize::try_from(at).ok().and_then(|at| self.get(at..));
        let bytes = from.and_then(|bytes| bytes.get(..into.len()));
        into.copy_from_slice(bytes.ok_or_else(|| broken("a storage is cut short", at))?);
        Ok(())
    }
}

/// The elements of a tensor in some bytes.
#[derive(Clone)]
pub struct Elements<'a> {
    /// The bytes.
    pub bytes: &'a dyn Bytes,
    /// Where in them the storage begins.
    pub start: u64,
    /// How long the storage is.
    pub storage_bytes: u64,
    /// The type of an element.
    pub dtype: DType,
    /// Where in the storage the elements are.
    pub layout: &'a Strided,
    /// Whether numbers have their high byte first.
    pub is_big_endian: bool,
    /// What quantized elements stand for.
    pub quantization: Option<Quantization>,
}

/// What a quantized element q stands for: (q − zero point) × scale.
#[derive(Debug, Clone, PartialEq)]
pub enum Quantization {
    /// The same for all elements.
    Tensor {
        /// The scale.
        scale: f64,
        /// What stands for 0.
        zero_point: i64,
    },
    /// One for each index along a dimension.
    Channel {
        /// The dimension.
        axis: usize,
        /// The scales.
        scales: Vec<f64>,
        /// What stands for 0.
        zero_points: Vec<f64>,
    },
}

/// Statistics of a tensor's elements; of complex ones, of their magnitudes.
#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    /// How many values there are; two for each element of `float4_e2m1fn_x2`.
    pub count: u64,
    /// The mean of the finite ones.
    pub mean: Option<f64>,
    /// Their standard deviation (the unbiased one: divided by n − 1).
    pub std: Option<f64>,
    /// The smallest finite one.
    pub min: Option<f64>,
    /// The largest finite one.
    pub max: Option<f64>,
    /// How many are 0 or −0.
    pub zeros: u64,
    /// How many are not a number.
    pub nan: u64,
    /// How many are infinite.
    pub inf: u64,
    /// How many are denormal in the type that they are stored in; a complex one if either part is.
    pub denormal: u64,
    /// The sum of the finite ones' absolute values.
    pub l1: f64,
    /// The square root of the sum of their squares.
    pub l2: f64,
    /// The third standardised moment of the finite ones, as of a whole population.
    pub skewness: Option<f64>,
    /// The fourth, less 3.
    pub kurtosis: Option<f64>,
    /// How evenly the histogram is filled, in bits.
    pub entropy: Option<f64>,
    /// How many finite ones are in each of the bins of equal width between `edges`.
    pub histogram: Vec<u64>,
    /// The extremes, if there is a histogram.
    pub edges: Option<(f64, f64)>,
}

/// Measures all elements of a tensor, with a histogram of `bins` bins, or without one if that is 0.
pub fn measure(elements: &Elements<'_>, bins: usize, progress: &Progress<'_>) -> Result<Stats> {
    measure_by(elements, bins, progress, Grain::usual())
}

fn measure_by(
    elements: &Elements<'_>,
    bins: usize,
    progress: &Progress<'_>,
    grain: Grain,
) -> Result<Stats> {
    if bins > MAX_BINS {
        return Err(Error::argument(format!("a histogram has at most {MAX_BINS} bins")));
    }
    let values = Values::of(elements.dtype);
    let plan = Plan::of([elements], &values, grain)?;
    let by_code = match values.form {
        Form::Byte | Form::TwoInByte => true,
        Form::TwoBytes => plan.elements() >= FEW,
        _ => false,
    };
    if let (true, [part]) = (by_code, plan.parts.as_slice()) {
        let tally = tally::count(&plan, &values, progress)?;
        let value = |code: usize| part.affine[0].value(values.table[code]);
        let moments = tally.moments(value, values.smallest_normal);
        let mut histogram = histogram_of(&moments, bins);
        if let Some((bins, counts)) = &mut histogram {
            tally.histogram(value, bins, counts);
        }
        return Ok(stats(&moments, plan.copies, histogram.map(|(_, counts)| counts)));
    }
    let (first, second) = (progress.part(0.0, 0.5), progress.part(0.5, 1.0));
    let moments = moments_of(&plan, &values, if bins > 0 { &first } else { progress })?;
    let mut histogram = histogram_of(&moments, bins);
    if let Some((bins, counts)) = &mut histogram {
        if moments.nan + moments.inf == 0 {
            fill::<true>(&plan, &values, bins, counts, &second)?;
        } else {
            fill::<false>(&plan, &values, bins, counts, &second)?;
        }
    }
    Ok(stats(&moments, plan.copies, histogram.map(|(_, counts)| counts)))
}

/// The first pass.
fn moments_of(plan: &Plan<'_, 1>, values: &Values, progress: &Progress<'_>) -> Result<Moments> {
    // Magnitudes are not denormal; their parts are, and are counted where they become magnitudes.
    let is_complex = matches!(values.form, Form::Complex(_));
    let smallest_normal = if is_complex { 0.0 } else { values.smallest_normal };
    let start = || (Buffers::default(), Vec::new());
    let work = |(buffers, found): &mut (Buffers<1>, Vec<(u64, Moments)>), task| {
        let mut moments = Moments::default();
        plan.chunks(task, buffers, |part, [units], [numbers]| {
            let mut sink = MomentsOf { moments: &mut moments, smallest_normal };
            let affine = part.affine[0];
            let blocks = Blocks { values, affine, first: 0, units, numbers, sink: &mut sink };
            Arch::new().dispatch(blocks);
        })?;
        found.push((task, moments));
        Ok(())
    };
    let states = plan.threads(progress).spread(plan.tasks(), start, work)?;
    let mut found: Vec<_> = states.into_iter().flat_map(|state| state.1).collect();
    found.sort_unstable_by_key(|&(task, _)| task);
    let mut all = Moments::default();
    for (_, moments) in &found {
        all.merge(moments);
    }
    Ok(all)
}

/// The second pass; `ALL` says that all numbers are finite.
fn fill<const ALL: bool>(
    plan: &Plan<'_, 1>,
    values: &Values,
    bins: &Bins,
    counts: &mut [u64],
    progress: &Progress<'_>,
) -> Result<()> {
    let start = || (Buffers::default(), Counters::new());
    let work = |(buffers, counters): &mut (Buffers<1>, Counters), task| {
        plan.chunks(task, buffers, |part, [units], [numbers]| {
            let mut sink = CountsOf::<ALL> { counters, bins };
            let affine = part.affine[0];
            let blocks = Blocks { values, affine, first: 0, units, numbers, sink: &mut sink };
            Arch::new().dispatch(blocks);
        })
    };
    for (_, counters) in plan.threads(progress).spread(plan.tasks(), start, work)? {
        counters.add_to(counts);
    }
    Ok(())
}

/// What takes numbers, a block at a time.
trait Sink {
    /// Takes the numbers from the `first` on, and how many denormals among them they do not show.
    fn add<V: Simd>(&mut self, simd: V, first: u64, numbers: &mut [f64], denormal: u64);
}

struct MomentsOf<'a> {
    moments: &'a mut Moments,
    smallest_normal: f64,
}

impl Sink for MomentsOf<'_> {
    #[inline(always)]
    fn add<V: Simd>(&mut self, simd: V, _: u64, numbers: &mut [f64], denormal: u64) {
        self.moments.denormal += denormal;
        self.moments.add(simd, numbers, self.smallest_normal);
    }
}

struct CountsOf<'a, const ALL: bool> {
    counters: &'a mut Counters,
    bins: &'a Bins,
}

impl<const ALL: bool> Sink for CountsOf<'_, ALL> {
    #[inline(always)]
    fn add<V: Simd>(&mut self, _: V, _: u64, numbers: &mut [f64], _: u64) {
        self.counters.add::<ALL>(numbers, self.bins);
    }
}

/// Turns the units of a chunk into numbers, a block at a time, with the best instructions that the
/// processor has. Everything inside must be inlined to get them: hence the attributes, and no closures.
struct Blocks<'a, S> {
    values: &'a Values,
    affine: Affine,
    /// The number of the first one.
    first: u64,
    units: &'a [u8],
    numbers: &'a mut [f64],
    sink: &'a mut S,
}

impl<S: Sink> WithSimd for Blocks<'_, S> {
    type Output = ();

    #[inline(always)]
    fn with_simd<V: Simd>(self, simd: V) {
        let Self { values, affine, mut first, .. } = self;
        for units in self.units.chunks(BLOCK * values.unit_bytes) {
            let (numbers, denormal) = convert(values, affine, units, self.numbers);
            self.sink.add(simd, first, numbers, denormal);
            first += numbers.len() as u64;
        }
    }
}

/// At most a block of units as numbers to be added up, and how many denormals among them the numbers do
/// not show: those of complex elements, which become magnitudes.
#[inline(always)]
fn convert<'n>(
    values: &Values,
    affine: Affine,
    units: &[u8],
    numbers: &'n mut [f64],
) -> (&'n mut [f64], u64) {
    let count = units.len() / values.unit_bytes;
    let numbers = &mut numbers[..count * values.numbers_of_unit()];
    values.numbers(units, numbers);
    let Form::Complex(part_bytes) = values.form else {
        affine.apply(numbers);
        return (numbers, 0);
    };
    let is_denormal = |x: f64| x != 0.0 && x.abs() < values.smallest_normal;
    let mut denormal = 0;
    for index in 0..count {
        let (real, imaginary) = (numbers[2 * index], numbers[2 * index + 1]);
        let is_finite = real.is_finite() && imaginary.is_finite();
        denormal += u64::from(is_finite && (is_denormal(real) || is_denormal(imaginary)));
        numbers[index] = magnitude(real, imaginary, part_bytes);
    }
    (&mut numbers[..count], denormal)
}

/// How long a complex number is; one of narrow parts cannot leave the range of the squares.
#[inline(always)]
fn magnitude(real: f64, imaginary: f64, part_bytes: usize) -> f64 {
    match part_bytes {
        8 if !real.is_nan() && !imaginary.is_nan() => real.hypot(imaginary),
        _ => (real * real + imaginary * imaginary).sqrt(),
    }
}

/// Bins between the extremes, and their counts, if there is anything to count.
fn histogram_of(moments: &Moments, bins: usize) -> Option<(Bins, Vec<u64>)> {
    let is_any = moments.count > 0 && bins > 0;
    is_any.then(|| (Bins::new(bins, moments.min, moments.max), vec![0; bins]))
}

/// Moments under their usual names.
fn stats(moments: &Moments, copies: u64, histogram: Option<Vec<u64>>) -> Stats {
    let all = moments.count + moments.nan + moments.inf;
    let finite = moments.count.saturating_mul(copies) as f64;
    let is_constant = moments.min >= moments.max;
    let times = copies as f64;
    let [two, three, four] = if is_constant { [0.0; 3] } else { moments.powers };
    let mean = if is_constant { moments.min } else { moments.mean };
    let variance = two / moments.count as f64;
    let some = |value: f64| (moments.count > 0 && value.is_finite()).then_some(value);
    let standardised = |power: f64, scale: f64| some(power / moments.count as f64 / scale);
    let edges = histogram.is_some().then_some((moments.min, moments.max));
    let mut histogram = histogram.unwrap_or_default();
    for bin in &mut histogram {
        *bin = bin.saturating_mul(copies);
    }
    let l2 =
        if moments.count > 0 { (two + mean * mean * moments.count as f64).sqrt() } else { 0.0 };
    Stats {
        count: all.saturating_mul(copies),
        mean: some(mean),
        std: some((two * times / (finite - 1.0)).sqrt()),
        min: some(moments.min),
        max: some(moments.max),
        zeros: moments.zeros.saturating_mul(copies),
        nan: moments.nan.saturating_mul(copies),
        inf: moments.inf.saturating_mul(copies),
        denormal: moments.denormal.saturating_mul(copies),
        l1: moments.l1 * times,
        l2: l2 * times.sqrt(),
        skewness: standardised(three, variance * variance.sqrt()),
        kurtosis: standardised(four, variance * variance).map(|kurtosis| kurtosis - 3.0),
        entropy: entropy(&histogram),
        histogram,
        edges,
    }
}

/// The file is wrong, for this reason, at this offset.
fn broken(reason: &'static str, offset: u64) -> Error {
    Error::checkpoint(reason, offset)
}
