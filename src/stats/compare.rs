//! How the elements of two tensors of the same type and shape differ.
//!
//! Two elements differ if their bits do, except that 0 and −0 are equal: a NaN equals a NaN of the same
//! bits only. Quantized elements whose scales differ are compared by what they stand for.
//!
//! # Cost
//!
//! Tensors that are equal are read once and compared as bytes. Others are read until the first chunk that
//! differs, and then once more from the start, to be measured.

use std::sync::atomic::{AtomicBool, Ordering};

use pulp::{Arch, Simd, WithSimd};

use super::Elements;
use super::moments::BLOCK;
use super::plan::{Buffers, Grain, Part, Plan};
use super::values::{Form, Values};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// Independent sums, so that additions need not wait for each other.
const LANES: usize = 8;

/// How two tensors differ. The sizes are over the values that are finite in both, and 0 if all are equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Whether every value is the same in both.
    pub is_equal: bool,
    /// How many values differ.
    pub changed: u64,
    /// How many values each tensor has.
    pub count: u64,
    /// How many were finite in the first and are not in the second.
    pub to_nonfinite: u64,
    /// How many were not finite in the first and are in the second.
    pub from_nonfinite: u64,
    /// The largest difference.
    pub max_abs: Option<f64>,
    /// The mean of the absolute differences.
    pub mean_abs: Option<f64>,
    /// The norm of the difference by that of the first tensor; none if that is 0.
    pub relative_l2: Option<f64>,
}

/// Compares two tensors of the same type and shape; their layouts may differ.
pub fn compare(a: &Elements<'_>, b: &Elements<'_>, progress: &Progress<'_>) -> Result<Difference> {
    compare_by(a, b, progress, Grain::usual())
}

pub(super) fn compare_by(
    a: &Elements<'_>,
    b: &Elements<'_>,
    progress: &Progress<'_>,
    grain: Grain,
) -> Result<Difference> {
    if a.dtype != b.dtype || a.layout.shape != b.layout.shape {
        return Err(Error::argument("only tensors of the same type and shape can be compared"));
    }
    let values = Values::of(a.dtype);
    let plan = Plan::of([a, b], &values, grain)?;
    let count = a.layout.elements().unwrap_or(0).saturating_mul(values.values_of_element());
    let equal = Difference {
        is_equal: true,
        changed: 0,
        count,
        to_nonfinite: 0,
        from_nonfinite: 0,
        max_abs: (count > 0).then_some(0.0),
        mean_abs: (count > 0).then_some(0.0),
        relative_l2: (count > 0).then_some(0.0),
    };
    if are_same_bytes(&plan, &progress.part(0.0, 0.4))? {
        return Ok(equal);
    }
    let sums = sums_of(&plan, &values, &progress.part(0.4, 1.0))?;
    if sums.changed == 0 {
        return Ok(equal);
    }
    let some = |value: f64| (sums.pairs > 0 && value.is_finite()).then_some(value);
    Ok(Difference {
        is_equal: false,
        changed: sums.changed.saturating_mul(plan.copies),
        count,
        to_nonfinite: sums.to_nonfinite.saturating_mul(plan.copies),
        from_nonfinite: sums.from_nonfinite.saturating_mul(plan.copies),
        max_abs: some(sums.max),
        mean_abs: some(sums.apart / sums.pairs as f64),
        relative_l2: some((sums.apart_squares / sums.squares).sqrt()),
    })
}

/// The first pass: whether there is no difference at all.
fn are_same_bytes(plan: &Plan<'_, 2>, progress: &Progress<'_>) -> Result<bool> {
    let is_different = AtomicBool::new(false);
    let work = |buffers: &mut Buffers<2>, task| {
        if is_different.load(Ordering::Relaxed) {
            return Ok(());
        }
        plan.chunks(task, buffers, |part, [a, b], _| {
            if !is_same(part, a, b) {
                is_different.store(true, Ordering::Relaxed);
            }
        })
    };
    plan.threads(progress).spread(plan.tasks(), Buffers::default, work)?;
    Ok(!is_different.into_inner())
}

fn is_same(part: &Part<'_, 2>, a: &[u8], b: &[u8]) -> bool {
    part.affine[0] == part.affine[1] && a == b
}

/// What is added up of pairs of values.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    changed: u64,
    to_nonfinite: u64,
    from_nonfinite: u64,
    /// How many pairs are finite.
    pairs: u64,
    max: f64,
    apart: f64,
    apart_squares: f64,
    /// The squares of the first tensor.
    squares: f64,
}

impl Sums {
    fn merge(&mut self, other: &Self) {
        self.changed += other.changed;
        self.to_nonfinite += other.to_nonfinite;
        self.from_nonfinite += other.from_nonfinite;
        self.pairs += other.pairs;
        self.max = self.max.max(other.max);
        self.apart += other.apart;
        self.apart_squares += other.apart_squares;
        self.squares += other.squares;
    }
}

/// The second pass.
fn sums_of(plan: &Plan<'_, 2>, values: &Values, progress: &Progress<'_>) -> Result<Sums> {
    let start = || (Buffers::default(), Vec::new());
    let work = |(buffers, found): &mut (Buffers<2>, Vec<(u64, Sums)>), task| {
        let mut sums = Sums::default();
        plan.chunks(task, buffers, |part, [a, b], [a_numbers, b_numbers]| {
            let sums = &mut sums;
            Arch::new().dispatch(Blocks { values, part, a, b, a_numbers, b_numbers, sums });
        })?;
        found.push((task, sums));
        Ok(())
    };
    let states = plan.threads(progress).spread(plan.tasks(), start, work)?;
    let mut found: Vec<_> = states.into_iter().flat_map(|state| state.1).collect();
    found.sort_unstable_by_key(|&(task, _)| task);
    let mut all = Sums::default();
    for (_, sums) in &found {
        all.merge(sums);
    }
    Ok(all)
}

/// Adds up a chunk, a block at a time, with the best instructions that the processor has.
struct Blocks<'a> {
    values: &'a Values,
    part: &'a Part<'a, 2>,
    a: &'a [u8],
    b: &'a [u8],
    a_numbers: &'a mut [f64],
    b_numbers: &'a mut [f64],
    sums: &'a mut Sums,
}

impl WithSimd for Blocks<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { values, part, sums, .. } = self;
        let block = BLOCK * values.unit_bytes;
        for (a, b) in self.a.chunks(block).zip(self.b.chunks(block)) {
            let count = a.len() / values.unit_bytes * values.numbers_of_unit();
            let (x, y) = (&mut self.a_numbers[..count], &mut self.b_numbers[..count]);
            values.numbers(a, x);
            part.affine[0].apply(x);
            if is_same(part, a, b) {
                y.copy_from_slice(x);
            } else {
                values.numbers(b, y);
                part.affine[1].apply(y);
                sums.changed += changed(values, part, [a, b], [x, y]);
                let parts = if matches!(values.form, Form::Complex(_)) { 2 } else { 1 };
                for (x, y) in x.chunks(parts).zip(y.chunks(parts)) {
                    let is_finite =
                        |numbers: &[f64]| numbers.iter().all(|number| number.is_finite());
                    let (was, is) = (is_finite(x), is_finite(y));
                    sums.to_nonfinite += u64::from(was && !is);
                    sums.from_nonfinite += u64::from(!was && is);
                }
            }
            if matches!(values.form, Form::Complex(_)) {
                sums.merge(&complex(x, y));
            } else {
                sums.merge(&real(x, y));
            }
        }
    }
}

/// How many values differ.
#[inline(always)]
fn changed(values: &Values, part: &Part<'_, 2>, [a, b]: [&[u8]; 2], [x, y]: [&[f64]; 2]) -> u64 {
    let is_exact = part.affine[0] == part.affine[1];
    match values.form {
        // Two integers of 64 bits may be one float.
        Form::I64 | Form::U64 if is_exact => {
            let (a, b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
            a.iter().zip(b).map(|(a, b)| u64::from(a != b)).sum()
        }
        Form::Complex(_) => {
            let differs = |at: usize| differs(values, [a, b], [x, y], at);
            (0..x.len()).step_by(2).map(|at| u64::from(differs(at) || differs(at + 1))).sum()
        }
        _ => {
            let unequal = x.iter().zip(y).map(|(x, y)| u64::from(x != y)).sum();
            let is_nan = x.iter().zip(y).map(|(x, y)| u64::from(x.is_nan() & y.is_nan()));
            if is_nan.sum::<u64>() == 0 {
                return unequal;
            }
            (0..x.len()).map(|at| u64::from(differs(values, [a, b], [x, y], at))).sum()
        }
    }
}

/// Whether a number differs; of two that are NaN, the bits say.
fn differs(values: &Values, [a, b]: [&[u8]; 2], [x, y]: [&[f64]; 2], at: usize) -> bool {
    if x[at].is_nan() && y[at].is_nan() && values.form != Form::TwoInByte {
        let bytes = at * values.part_bytes..(at + 1) * values.part_bytes;
        return a[bytes.clone()] != b[bytes];
    }
    x[at] != y[at]
}

/// Adds up pairs of real numbers.
#[inline(always)]
fn real(x: &[f64], y: &[f64]) -> Sums {
    let mut lanes = Lanes::default();
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (xs, ys) in xs.iter().zip(ys) {
        for lane in 0..LANES {
            lanes.add(lane, xs[lane], ys[lane]);
        }
    }
    for (lane, (&x, &y)) in x_rest.iter().zip(y_rest).enumerate() {
        lanes.add(lane, x, y);
    }
    Sums {
        pairs: lanes.pairs.iter().sum(),
        max: lanes.max.into_iter().fold(0.0, f64::max),
        apart: lanes.apart.iter().sum(),
        apart_squares: lanes.apart_squares.iter().sum(),
        squares: lanes.squares.iter().sum(),
        ..Sums::default()
    }
}

/// Sums of pairs of real numbers, independent of each other.
#[derive(Default)]
struct Lanes {
    pairs: [u64; LANES],
    max: [f64; LANES],
    apart: [f64; LANES],
    apart_squares: [f64; LANES],
    squares: [f64; LANES],
}

impl Lanes {
    #[inline(always)]
    fn add(&mut self, lane: usize, x: f64, y: f64) {
        let is_finite = (x.abs() <= f64::MAX) & (y.abs() <= f64::MAX);
        let x = if is_finite { x } else { 0.0 };
        let y = if is_finite { y } else { 0.0 };
        let distance = (y - x).abs();
        self.pairs[lane] += u64::from(is_finite);
        self.max[lane] = if distance > self.max[lane] { distance } else { self.max[lane] };
        self.apart[lane] += distance;
        self.apart_squares[lane] += distance * distance;
        self.squares[lane] += x * x;
    }
}

/// Adds up pairs of complex numbers.
fn complex(x: &[f64], y: &[f64]) -> Sums {
    let mut sums = Sums::default();
    for (x, y) in x.as_chunks::<2>().0.iter().zip(y.as_chunks::<2>().0) {
        if x.iter().chain(y).all(|part| part.is_finite()) {
            let distance = (y[0] - x[0]).hypot(y[1] - x[1]);
            sums.pairs += 1;
            sums.max = sums.max.max(distance);
            sums.apart += distance;
            sums.apart_squares += distance * distance;
            sums.squares += x[0] * x[0] + x[1] * x[1];
        }
    }
    sums
}
