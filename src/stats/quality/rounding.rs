//! The second pass: what is lost when numbers are rounded to narrower formats.
//!
//! Everything is computed with the largest magnitude as 1, so that no square leaves the range of the floats,
//! and the error in units of the format: a number y that is scaled to the format becomes y rounded, and the
//! error is the difference. Adding a large number and taking it away again rounds half to even; for
//! floats the large number follows the exponent.

use pulp::Simd;

use super::super::Sink;
use super::super::moments::BLOCK;
use super::super::parallel::Threads;
use super::super::plan::MAX_TASKS;
use super::pruning::{CLASSES, Cells, Thresholds};
use super::survey::Survey;
use super::walk::{Along, Room, Walk};
use crate::error::Result;
use crate::progress::Progress;

/// The formats.
pub(super) const FORMATS: [Format; 4] = [
    Format { name: "int8", largest: 127.0, kind: Kind::Integer },
    Format { name: "int4", largest: 7.0, kind: Kind::Integer },
    Format {
        name: "float8_e4m3fn",
        largest: 448.0,
        kind: Kind::Float { mantissa_bits: 3, smallest_exponent: -6 },
    },
    Format {
        name: "float8_e5m2",
        largest: 57344.0,
        kind: Kind::Float { mantissa_bits: 2, smallest_exponent: -14 },
    },
];

/// A narrow format.
pub(super) struct Format {
    pub name: &'static str,
    /// Its largest number.
    pub largest: f64,
    kind: Kind,
}

enum Kind {
    Integer,
    Float { mantissa_bits: i32, smallest_exponent: i32 },
}

/// Adding 1.5 × 2⁵² leaves an integer in the low bits.
const TO_INTEGER: f64 = 6_755_399_441_055_744.0;

/// The exponent's bits of a 64-bit float.
const EXPONENT: u64 = 0x7ff << 52;

/// A number is multiplied with both: one product alone might be too large.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    pub factor: f64,
    inverse: f64,
}

impl Unit {
    /// Makes this magnitude 1.
    pub fn new(max: f64) -> Self {
        let factor = if max < 1e-250 { 2f64.powi(600) } else { 1.0 };
        let max = max * factor;
        // The smallest of all floats is 1e-324, and 1e-144 with the factor.
        Self { factor, inverse: if max > 1e-300 { 1.0 / max } else { 0.0 } }
    }

    #[inline(always)]
    pub fn of(self, x: f64) -> f64 {
        x * self.factor * self.inverse
    }

    fn inverse(self, max: f64) -> f64 {
        let max = max * self.factor;
        if max > 1e-290 { 1.0 / max } else { 0.0 }
    }
}

/// What the second pass adds up, all with the largest magnitude as 1.
#[derive(Debug, Clone, Default)]
pub(super) struct Losses {
    /// The sum of squares.
    pub squares: f64,
    /// Sums of squared errors with one scale, times the squares of the formats' largest numbers.
    pub of_tensor: [f64; 4],
    /// The same with a scale for each channel.
    pub of_channels: [f64; 4],
    /// Sums of squares by class.
    pub classes: [f64; CLASSES],
    pub nan: u64,
    pub inf: u64,
}

impl Losses {
    fn merge(&mut self, other: &Self) {
        self.squares += other.squares;
        for format in 0..FORMATS.len() {
            self.of_tensor[format] += other.of_tensor[format];
            self.of_channels[format] += other.of_channels[format];
        }
        for class in 0..CLASSES {
            self.classes[class] += other.classes[class];
        }
        self.nan += other.nan;
        self.inf += other.inf;
    }
}

/// Reads all numbers once more.
pub(super) fn losses(
    walk: &Walk<'_>,
    along: Along,
    survey: &Survey,
    thresholds: &Thresholds,
    progress: &Progress<'_>,
) -> Result<(Losses, Cells)> {
    let unit = Unit::new(survey.max);
    let scale = |max: f64| [unit.inverse(max), unit.of(max)];
    let scales: Vec<_> = survey.channels.iter().map(|channel| scale(channel.max)).collect();
    let (of_task, tasks) = walk.tasks(MAX_TASKS);
    let start = || (Room::default(), Work::new(thresholds), Vec::new());
    let work = |(room, work, found): &mut (Room, Work, Vec<_>), task: u64| {
        let elements = task * of_task..(task + 1) * of_task;
        let is_all_finite = survey.is_all_finite;
        let losses = Losses::default();
        let mut sink =
            Rounding { along, scales: &scales, unit, is_all_finite, thresholds, work, losses };
        walk.show(elements, room, &mut sink)?;
        found.push((task, sink.losses));
        Ok(())
    };
    let states = Threads { count: walk.threads, progress }.spread(tasks, start, work)?;
    let mut cells: Option<Cells> = None;
    let mut found = Vec::new();
    for (_, mut work, parts) in states {
        found.extend(parts);
        work.cells.finish();
        match &mut cells {
            Some(cells) => cells.merge(work.cells),
            None => cells = Some(work.cells),
        }
    }
    found.sort_unstable_by_key(|&(task, _)| task);
    let mut all = Losses::default();
    for (_, losses) in &found {
        all.merge(losses);
    }
    Ok((all, cells.unwrap_or_else(|| Cells::new(thresholds))))
}

/// What a thread keeps.
struct Work {
    cells: Cells,
    /// For each number of a block, what makes its channel's largest magnitude 1.
    inverses: Vec<f64>,
    /// And that magnitude itself.
    sizes: Vec<f64>,
}

impl Work {
    fn new(thresholds: &Thresholds) -> Self {
        let block = || vec![0.0; 2 * BLOCK];
        Self { cells: Cells::new(thresholds), inverses: block(), sizes: block() }
    }
}

struct Rounding<'a> {
    along: Along,
    /// The inverse of each channel's largest magnitude, and that magnitude.
    scales: &'a [[f64; 2]],
    unit: Unit,
    is_all_finite: bool,
    thresholds: &'a Thresholds,
    work: &'a mut Work,
    losses: Losses,
}

impl Sink for Rounding<'_> {
    #[inline(always)]
    fn add<V: Simd>(&mut self, simd: V, first: u64, numbers: &mut [f64], _: u64) {
        let unit = self.unit;
        let square = |x: f64| unit.of(x) * unit.of(x);
        let mut classes = [[0.0; CLASSES]; 2];
        self.work.cells.add(self.thresholds, &mut classes, numbers, square);
        for class in 0..CLASSES {
            self.losses.classes[class] += classes[0][class] + classes[1][class];
        }
        if !self.is_all_finite {
            for x in numbers.iter_mut().filter(|x| !x.is_finite()) {
                self.losses.nan += u64::from(x.is_nan());
                self.losses.inf += u64::from(!x.is_nan());
                *x = 0.0;
            }
        }
        for x in numbers.iter_mut() {
            *x *= unit.factor;
        }
        let whole = simd.splat_f64s(unit.inverse);
        let count = numbers.len();
        if self.scales.len() == 1 {
            let mut sums = Sums::<V>::new(simd);
            let (vectors, rest) = V::as_simd_f64s(numbers);
            for &x in vectors {
                sums.add_whole(simd, simd.mul_f64s(x, whole));
            }
            sums.add_whole(simd, simd.mul_f64s(simd.partial_load_f64s(rest), whole));
            return sums.add_to(simd, &mut self.losses);
        }
        let (inverses, sizes) = (&mut self.work.inverses[..count], &mut self.work.sizes[..count]);
        for (index, run) in self.along.runs(first, count) {
            let [inverse, size] = self.scales[index as usize];
            inverses[run.clone()].fill(inverse);
            sizes[run].fill(size);
        }
        let mut sums = Sums::<V>::new(simd);
        let (vectors, rest) = V::as_simd_f64s(numbers);
        let (inverses, inverses_rest) = V::as_simd_f64s(inverses);
        let (sizes, sizes_rest) = V::as_simd_f64s(sizes);
        for ((&x, &inverse), &size) in vectors.iter().zip(inverses).zip(sizes) {
            sums.add_whole(simd, simd.mul_f64s(x, whole));
            sums.add_channel(simd, simd.mul_f64s(x, inverse), size);
        }
        let [x, inverse, size] =
            [rest, inverses_rest, sizes_rest].map(|rest| simd.partial_load_f64s(rest));
        sums.add_whole(simd, simd.mul_f64s(x, whole));
        sums.add_channel(simd, simd.mul_f64s(x, inverse), size);
        sums.add_to(simd, &mut self.losses);
    }
}

/// Sums in vectors, and constants.
struct Sums<V: Simd> {
    squares: V::f64s,
    of_tensor: [V::f64s; 4],
    of_channels: [V::f64s; 4],
    largest: [V::f64s; 4],
    /// What to add to round an integer, or a float of the exponent 0.
    adds: [V::f64s; 4],
    /// The smallest normal number.
    smallest: [V::f64s; 4],
    exponent: V::u64s,
}

impl<V: Simd> Sums<V> {
    #[inline(always)]
    fn new(simd: V) -> Self {
        let zero = simd.splat_f64s(0.0);
        let adds = |format: usize| match FORMATS[format].kind {
            Kind::Integer => simd.splat_f64s(TO_INTEGER),
            Kind::Float { mantissa_bits, .. } => {
                simd.splat_f64s(TO_INTEGER / f64::from(1 << mantissa_bits))
            }
        };
        let smallest = |format: usize| match FORMATS[format].kind {
            Kind::Integer => zero,
            Kind::Float { smallest_exponent, .. } => {
                simd.splat_f64s(f64::from_bits(((1023 + smallest_exponent) as u64) << 52))
            }
        };
        let all = [0, 1, 2, 3];
        Self {
            squares: zero,
            of_tensor: [zero; 4],
            of_channels: [zero; 4],
            largest: all.map(|format: usize| simd.splat_f64s(FORMATS[format].largest)),
            adds: all.map(adds),
            smallest: all.map(smallest),
            exponent: simd.splat_u64s(EXPONENT),
        }
    }

    /// What numbers between −1 and 1 lose in a format, in its units.
    #[inline(always)]
    fn lost(&self, simd: V, x: V::f64s, format: usize) -> V::f64s {
        let y = simd.mul_f64s(x, self.largest[format]);
        let add = match FORMATS[format].kind {
            Kind::Integer => self.adds[format],
            Kind::Float { .. } => {
                let power = simd.and_u64s(simd.transmute_u64s_f64s(y), self.exponent);
                let power = simd.transmute_f64s_u64s(power);
                simd.mul_f64s(simd.max_f64s(power, self.smallest[format]), self.adds[format])
            }
        };
        simd.sub_f64s(y, simd.sub_f64s(simd.add_f64s(y, add), add))
    }

    #[inline(always)]
    fn add_whole(&mut self, simd: V, x: V::f64s) {
        self.squares = simd.mul_add_e_f64s(x, x, self.squares);
        for format in 0..4 {
            let lost = self.lost(simd, x, format);
            self.of_tensor[format] = simd.mul_add_e_f64s(lost, lost, self.of_tensor[format]);
        }
    }

    #[inline(always)]
    fn add_channel(&mut self, simd: V, x: V::f64s, size: V::f64s) {
        for format in 0..4 {
            let lost = simd.mul_f64s(self.lost(simd, x, format), size);
            self.of_channels[format] = simd.mul_add_e_f64s(lost, lost, self.of_channels[format]);
        }
    }

    #[inline(always)]
    fn add_to(self, simd: V, losses: &mut Losses) {
        losses.squares += simd.reduce_sum_f64s(self.squares);
        for format in 0..4 {
            losses.of_tensor[format] += simd.reduce_sum_f64s(self.of_tensor[format]);
            losses.of_channels[format] += simd.reduce_sum_f64s(self.of_channels[format]);
        }
    }
}
