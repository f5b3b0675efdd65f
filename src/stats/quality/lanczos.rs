//! The largest singular value of a matrix, by iteration.
//!
//! Power iteration multiplies a vector by the matrix and by its transpose, again and again. This does the same
//! and keeps all vectors that it has seen (Lanczos): the largest singular value on what they span is at least
//! as good after each step, and far better where singular values are close to each other, as in weights that
//! are nearly random. It never exceeds the true one.
//!
//! # Cost
//!
//! One pass over the tensor for each iteration; each takes 0.6 s of processor time for 1 GB of 32-bit floats.
//! At most 32, or 256 for a small tensor, which is then exact to about 1e-9. Memory: a vector of one side for
//! each iteration and 16 more.

use pulp::{Arch, Simd, WithSimd};

use super::super::parallel::Threads;
use super::matrix::{Matrix, Panels, Whole};
use super::walk::Room;
use crate::error::Result;
use crate::progress::Progress;

/// How many iterations there are at most, and the change of the norm that is too small to go on for.
const LARGE: (usize, f64) = (32, 1e-6);

/// The same for a matrix of up to this many elements.
const SMALL: (usize, f64) = (256, 1e-12);
const MAX_SMALL: u64 = 1 << 22;

/// The longest side that is kept in memory.
const MAX_WIDTH: u64 = 1 << 19;

/// About how many numbers a panel has.
const PANEL: u64 = 1 << 16;

/// Sums that are added up one after the other, so that the result does not depend on threads.
const SUMS: u64 = 16;

/// What was found.
pub(super) struct Largest {
    pub norm: f64,
    /// √(‖A‖₁ · ‖A‖_∞).
    pub upper_bound: f64,
    pub iterations: usize,
    /// How much of the norm the last iteration added.
    pub change: f64,
    /// The sum of the squares of the singular values on what the iterations span.
    pub captured: f64,
}

/// The largest singular value, from below; none if both sides are too long.
pub(super) fn largest(matrix: &Matrix<'_>, progress: &Progress<'_>) -> Result<Option<Largest>> {
    let (rows, columns) = (matrix.rows, matrix.columns());
    let whole = match (matrix.is_by_rows(), rows <= MAX_WIDTH, columns <= MAX_WIDTH) {
        (_, false, false) => return Ok(None),
        (true, _, true) | (false, false, true) => Whole::Columns,
        _ => Whole::Rows,
    };
    let width = if whole == Whole::Rows { rows } else { columns };
    let panels = matrix.panels(whole, PANEL / width);
    let (max_iterations, close) = if rows * columns <= MAX_SMALL { SMALL } else { LARGE };
    let part = |n: usize| {
        let share = |n: usize| n as f64 / max_iterations as f64;
        progress.part(share(n), share(n + 1))
    };
    let mut basis = vec![beginning(panels.width)];
    let (mut diagonal, mut beside) = (Vec::new(), vec![0.0]);
    let mut found =
        Largest { norm: 0.0, upper_bound: 0.0, iterations: 0, change: 1.0, captured: 0.0 };
    while found.iterations < max_iterations && found.change > close {
        let Some(last) = basis.last() else { break };
        let Pass { mut product, sizes, longest } =
            pass(&panels, last, matrix.threads(), &part(found.iterations))?;
        if found.iterations == 0 {
            let widest = sizes.into_iter().fold(0.0, f64::max);
            found.upper_bound = (widest * longest).sqrt();
        }
        found.iterations += 1;
        diagonal.push(dot(last, &product));
        found.captured = diagonal.iter().sum();
        // Twice is enough, however small what is left is.
        for vector in basis.iter().chain(&basis) {
            let along = dot(vector, &product);
            for (x, y) in product.iter_mut().zip(vector) {
                *x -= along * y;
            }
        }
        let norm = largest_of_tridiagonal(&diagonal, &beside).max(0.0).sqrt();
        found.change = if norm > 0.0 { (norm - found.norm) / norm } else { 0.0 };
        found.norm = norm;
        let length = dot(&product, &product).sqrt();
        if length <= 1e-14 * norm * norm {
            // Nothing new: all that the beginning reaches was seen.
            found.change = 0.0;
            break;
        }
        for x in &mut product {
            *x /= length;
        }
        beside.push(length);
        basis.push(product);
    }
    progress.at(1, 1)?;
    Ok(Some(found))
}

/// The largest eigenvalue of a symmetric tridiagonal matrix; `beside[i]` is left of `diagonal[i]`.
///
/// The signs of a short recurrence count how many eigenvalues are below a number (Sturm), so it is found by
/// halving an interval.
fn largest_of_tridiagonal(diagonal: &[f64], beside: &[f64]) -> f64 {
    let size = diagonal.len();
    let left = |row: usize| if row > 0 { beside[row].abs() } else { 0.0 };
    let right = |row: usize| if row + 1 < size { beside[row + 1].abs() } else { 0.0 };
    let has_above = |number: f64| {
        let mut pivot = 1.0;
        (0..size).any(|row| {
            let square = left(row) * left(row);
            pivot = diagonal[row] - number - square / pivot;
            // Of a pivot of 0 either sign is right, and it must not divide 0.
            pivot = if pivot.abs() < 1e-290 { -1e-290 } else { pivot };
            pivot > 0.0
        })
    };
    let reaches = (0..size).map(|row| diagonal[row] + left(row) + right(row));
    let (mut low, mut high) = (0.0, reaches.fold(0.0, f64::max));
    // From the width of the interval down to its last bit.
    for _ in 0..56 {
        let middle = low / 2.0 + high / 2.0;
        if has_above(middle) { low = middle } else { high = middle }
    }
    low / 2.0 + high / 2.0
}

/// A pseudo-random vector of length 1, always the same.
fn beginning(width: usize) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut vector: Vec<f64> = (0..width)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        })
        .collect();
    let length = dot(&vector, &vector).sqrt();
    for x in &mut vector {
        *x /= length;
    }
    vector
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// What one pass over the matrix adds up.
struct Pass {
    /// The matrix, and its transpose, times the vector.
    product: Vec<f64>,
    /// Sums of magnitudes for each index of the whole side.
    sizes: Vec<f64>,
    /// The largest such sum of the other side.
    longest: f64,
}

fn pass(
    panels: &Panels<'_>,
    vector: &[f64],
    threads: usize,
    progress: &Progress<'_>,
) -> Result<Pass> {
    let zeros = || vec![0.0; panels.width];
    let start =
        || (Room::default(), Vec::new(), Pass { product: zeros(), sizes: zeros(), longest: 0.0 });
    let work = |(room, panel, pass): &mut (Room, Vec<f64>, Pass), number| {
        panels.read(number, room, panel)?;
        for numbers in panel.chunks(panels.width) {
            Arch::new().dispatch(Step { numbers, vector, pass });
        }
        Ok(())
    };
    let sums = SUMS.min(panels.count);
    let states = Threads { count: threads, progress }.in_rows(panels.count, sums, start, work)?;
    let mut all = Pass { product: zeros(), sizes: zeros(), longest: 0.0 };
    for (.., pass) in states {
        all.longest = all.longest.max(pass.longest);
        for n in 0..panels.width {
            all.product[n] += pass.product[n];
            all.sizes[n] += pass.sizes[n];
        }
    }
    Ok(all)
}

/// Adds the numbers of one index.
struct Step<'a> {
    numbers: &'a [f64],
    vector: &'a [f64],
    pass: &'a mut Pass,
}

impl WithSimd for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<V: Simd>(self, simd: V) {
        let Self { numbers, vector, pass } = self;
        let zero = simd.splat_f64s(0.0);
        let (mut along, mut size) = ([zero; 2], [zero; 2]);
        let (xs, x_rest) = V::as_simd_f64s(numbers);
        let (vs, v_rest) = V::as_simd_f64s(vector);
        for (n, (&x, &v)) in xs.iter().zip(vs).enumerate() {
            along[n % 2] = simd.mul_add_e_f64s(x, v, along[n % 2]);
            size[n % 2] = simd.add_f64s(size[n % 2], simd.abs_f64s(x));
        }
        let rest: f64 = x_rest.iter().zip(v_rest).map(|(x, v)| x * v).sum();
        let along = simd.reduce_sum_f64s(simd.add_f64s(along[0], along[1])) + rest;
        let rest: f64 = x_rest.iter().map(|x| x.abs()).sum();
        let size = simd.reduce_sum_f64s(simd.add_f64s(size[0], size[1])) + rest;
        pass.longest = pass.longest.max(size);
        let (products, product_rest) = V::as_mut_simd_f64s(&mut pass.product);
        let (sizes, size_rest) = V::as_mut_simd_f64s(&mut pass.sizes);
        let times = simd.splat_f64s(along);
        for ((product, size), &x) in products.iter_mut().zip(sizes).zip(xs) {
            *product = simd.mul_add_e_f64s(x, times, *product);
            *size = simd.add_f64s(*size, simd.abs_f64s(x));
        }
        for ((product, size), &x) in product_rest.iter_mut().zip(size_rest).zip(x_rest) {
            *product += x * along;
            *size += x.abs();
        }
    }
}
