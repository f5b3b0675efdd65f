//! The eigenvalues of a symmetric matrix.
//!
//! Reflections make it tridiagonal; then, how many eigenvalues are below a number can be counted by the signs
//! of a short recurrence (Sturm), so each is found by halving an interval. Errors are about 1e-15 × n of
//! the largest eigenvalue, however the others are.
//!
//! Two crates were tried on a matrix of 2048: `faer` took 1.2 s and brings some fifty crates, which double the
//! time that this one takes to build; `nalgebra` took 5.6 s. Neither can be stopped or tells how far it is. This
//! takes about 2 s.
//!
//! # Cost
//!
//! O(n³): each step reads and writes what is left of the lower triangle once.

use pulp::{Arch, Simd, WithSimd};

use crate::error::Result;
use crate::progress::Progress;

/// So many eigenvalues are sought at once.
const AT_ONCE: usize = 8;

/// Halvings from the width of all eigenvalues down to its last bit.
const HALVINGS: usize = 56;

/// The eigenvalues of a symmetric matrix of `size` rows, of which the lower triangle is looked at, upwards.
///
/// Its largest number should not be near the ends of the floats: squares are taken.
pub(super) fn eigenvalues(
    mut matrix: Vec<f64>,
    size: usize,
    progress: &Progress<'_>,
) -> Result<Vec<f64>> {
    let (diagonal, beside) = tridiagonal(&mut matrix, size, progress)?;
    drop(matrix);
    Ok(eigenvalues_of_tridiagonal(&diagonal, &beside))
}

/// Turns a symmetric matrix into one with the same eigenvalues and nothing beyond the diagonal and the numbers
/// beside it: `beside[i]` is left of `diagonal[i]`.
fn tridiagonal(
    matrix: &mut [f64],
    size: usize,
    progress: &Progress<'_>,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let (mut diagonal, mut beside) = (vec![0.0; size], vec![0.0; size]);
    // The last reflection x − u (u·x) ÷ h is applied from both sides by subtracting u qᵀ + q uᵀ, when a row is
    // next touched.
    let (mut last_u, mut last_q) = (vec![0.0; size], vec![0.0; size]);
    for row in (0..size).rev() {
        let (before, rest) = matrix.split_at_mut(row * size);
        let this = &mut rest[..=row];
        for column in 0..=row {
            this[column] -= last_u[row] * last_q[column] + last_q[row] * last_u[column];
        }
        diagonal[row] = this[row];
        let mut u = this[..row].to_vec();
        let h = reflection(&mut u, &mut beside[row]);
        let mut product = vec![0.0; row];
        let rows = before.chunks_mut(size);
        Arch::new().dispatch(Sweep {
            rows,
            last_u: &last_u,
            last_q: &last_q,
            u: &u,
            product: &mut product,
        });
        for x in &mut product {
            *x /= h;
        }
        let half = dot(&u, &product) / (2.0 * h);
        for (q, u) in product.iter_mut().zip(&u) {
            *q -= half * u;
        }
        (last_u, last_q) = (u, product);
        let left = (row as f64 / size as f64).powi(3);
        progress.at(((1.0 - left) * 1e6) as u64, 1_000_000)?;
    }
    Ok((diagonal, beside))
}

/// Turns a vector into the direction of the reflection that leaves nothing but its last number, which it
/// puts aside. Returns half of the direction's square, or 1 if there is nothing to reflect.
fn reflection(vector: &mut [f64], left: &mut f64) -> f64 {
    let Some((&mut last, others)) = vector.split_last_mut() else { return 1.0 };
    let size = others.iter().fold(0.0, |size, x| x.abs().max(size));
    if size == 0.0 {
        *left = last;
        vector.fill(0.0);
        return 1.0;
    }
    // Squares of tiny numbers would be 0.
    let size = size.max(last.abs());
    let scaled = |x: f64| x / size;
    let squares = vector.iter().map(|&x| scaled(x) * scaled(x)).sum::<f64>();
    *left = -(squares.sqrt() * size).copysign(last);
    for x in vector.iter_mut() {
        *x /= size;
    }
    let Some(end) = vector.last_mut() else { return 1.0 };
    let h = squares - *end * (*left / size);
    *end -= *left / size;
    h
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Applies the last reflection to rows of a lower triangle and multiplies the matrix with a vector.
struct Sweep<'a> {
    rows: std::slice::ChunksMut<'a, f64>,
    last_u: &'a [f64],
    last_q: &'a [f64],
    u: &'a [f64],
    product: &'a mut [f64],
}

impl WithSimd for Sweep<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<V: Simd>(self, simd: V) {
        let Self { rows, last_u, last_q, u, product } = self;
        for (row, numbers) in rows.enumerate() {
            // As whole vectors as there are, then number by number.
            let whole = row / V::F64_LANES * V::F64_LANES;
            let (minus_u, minus_q) = (simd.splat_f64s(-last_u[row]), simd.splat_f64s(-last_q[row]));
            let here = simd.splat_f64s(u[row]);
            let mut sum = simd.splat_f64s(0.0);
            let vectors = V::as_mut_simd_f64s(&mut numbers[..whole]).0.iter_mut();
            let others = V::as_simd_f64s(&last_u[..whole]).0.iter();
            let others = others.zip(V::as_simd_f64s(&last_q[..whole]).0);
            let others = others.zip(V::as_simd_f64s(&u[..whole]).0);
            let products = V::as_mut_simd_f64s(&mut product[..whole]).0;
            for ((x, ((&last_u, &last_q), &u)), product) in vectors.zip(others).zip(products) {
                let reflected = simd.mul_add_e_f64s(minus_q, last_u, *x);
                *x = simd.mul_add_e_f64s(minus_u, last_q, reflected);
                sum = simd.mul_add_e_f64s(*x, u, sum);
                *product = simd.mul_add_e_f64s(*x, here, *product);
            }
            let mut sum = simd.reduce_sum_f64s(sum);
            for column in whole..row {
                let x = &mut numbers[column];
                *x -= last_q[row] * last_u[column] + last_u[row] * last_q[column];
                sum += *x * u[column];
                product[column] += *x * u[row];
            }
            let x = &mut numbers[row];
            *x -= 2.0 * last_q[row] * last_u[row];
            product[row] += sum + *x * u[row];
        }
    }
}

/// The eigenvalues of a tridiagonal matrix, upwards; `beside[0]` is not looked at.
pub(super) fn eigenvalues_of_tridiagonal(diagonal: &[f64], beside: &[f64]) -> Vec<f64> {
    let size = diagonal.len();
    let reach = |row: usize| {
        let left = if row > 0 { beside[row].abs() } else { 0.0 };
        left + beside.get(row + 1).map_or(0.0, |right| right.abs())
    };
    // Every eigenvalue is as close to some number of the diagonal as what is beside that is large.
    let low = (0..size).map(|row| diagonal[row] - reach(row)).fold(f64::INFINITY, f64::min);
    let high = (0..size).map(|row| diagonal[row] + reach(row)).fold(f64::NEG_INFINITY, f64::max);
    let squares: Vec<f64> = beside.iter().map(|x| x * x).collect();
    let mut found = Vec::with_capacity(size);
    for first in (0..size).step_by(AT_ONCE) {
        let (mut lows, mut highs) = ([low; AT_ONCE], [high; AT_ONCE]);
        for _ in 0..HALVINGS {
            let middles: [f64; AT_ONCE] = std::array::from_fn(|n| lows[n] / 2.0 + highs[n] / 2.0);
            let below =
                Arch::new().dispatch(Below { diagonal, squares: &squares, numbers: middles });
            for (n, &middle) in middles.iter().enumerate() {
                let bounds = if below[n] > (first + n) as u64 { &mut highs } else { &mut lows };
                bounds[n] = middle;
            }
        }
        let middles = lows.iter().zip(highs).map(|(low, high)| low / 2.0 + high / 2.0);
        found.extend(middles.take(size - first));
    }
    found
}

/// Counts how many eigenvalues are below each of some numbers.
struct Below<'a> {
    diagonal: &'a [f64],
    squares: &'a [f64],
    numbers: [f64; AT_ONCE],
}

impl WithSimd for Below<'_> {
    type Output = [u64; AT_ONCE];

    #[inline(always)]
    fn with_simd<V: Simd>(self, _: V) -> [u64; AT_ONCE] {
        let mut counts = [0; AT_ONCE];
        let mut pivots = [1.0f64; AT_ONCE];
        for (row, (&diagonal, &square)) in self.diagonal.iter().zip(self.squares).enumerate() {
            let square = if row == 0 { 0.0 } else { square };
            for n in 0..AT_ONCE {
                let pivot = diagonal - self.numbers[n] - square / pivots[n];
                // Of a pivot of 0 either sign is right, and it must not divide 0.
                let pivot = if pivot.abs() < 1e-290 { -1e-290 } else { pivot };
                counts[n] += u64::from(pivot < 0.0);
                pivots[n] = pivot;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(found: &[f64], expected: &[f64]) {
        let scale = expected.iter().fold(1e-300f64, |scale, x| scale.max(x.abs()));
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-12 * scale, "{found} {expected}");
        }
        assert_eq!(found.len(), expected.len());
    }

    fn of(matrix: &[f64], size: usize) -> Vec<f64> {
        eigenvalues(matrix.to_vec(), size, &Progress::none()).unwrap()
    }

    #[test]
    fn small_matrices_have_the_eigenvalues_that_can_be_worked_out() {
        near(&of(&[], 0), &[]);
        near(&of(&[-3.0], 1), &[-3.0]);
        near(&of(&[0.0; 9], 3), &[0.0; 3]);
        near(&of(&[2.0, f64::NAN, 1.0, 2.0], 2), &[1.0, 3.0]);
        near(&of(&[1e-100, 0.0, 1e-100, 1e-100], 2), &[0.0, 2e-100]);
    }

    #[test]
    fn second_differences_have_the_eigenvalues_of_a_string() {
        for size in [1usize, 2, 7, 50] {
            let mut matrix = vec![0.0; size * size];
            for row in 0..size {
                matrix[row * size + row] = 2.0;
                if row > 0 {
                    matrix[row * size + row - 1] = -1.0;
                }
            }
            let angle = |n: usize| n as f64 * std::f64::consts::PI / (size + 1) as f64;

            let expected: Vec<f64> = (1..=size).map(|n| 2.0 - 2.0 * angle(n).cos()).collect();
            near(&of(&matrix, size), &expected);
        }
    }

    proptest! {
        #[test]
        fn turning_a_diagonal_matrix_leaves_its_eigenvalues(
            mut numbers in proptest::collection::vec(-1e3..1e3f64, 1..40),
            turns in proptest::collection::vec(any::<u32>(), 3),
        ) {
            let size = numbers.len();
            let mut matrix = vec![0.0; size * size];
            for (row, &number) in numbers.iter().enumerate() {
                matrix[row * size + row] = number;
            }
            for turn in turns {
                reflect(&mut matrix, size, turn);
            }

            numbers.sort_by(f64::total_cmp);
            near(&of(&matrix, size), &numbers);
        }
    }

    /// Reflects a matrix from both sides, at a plane that a number names.
    fn reflect(matrix: &mut [f64], size: usize, turn: u32) {
        let direction = |n: usize| f64::from((turn ^ 0x9e37).rotate_left(n as u32 * 5) % 19) - 9.0;
        let u: Vec<f64> = (0..size).map(direction).collect();
        let square: f64 = u.iter().map(|x| x * x).sum::<f64>().max(1e-9);
        for _ in 0..2 {
            // From the left, then turned over.
            let mut next = vec![0.0; size * size];
            for row in 0..size {
                for column in 0..size {
                    let along: f64 = (0..size).map(|n| u[n] * matrix[n * size + column]).sum();
                    let reflected = matrix[row * size + column] - 2.0 * u[row] * along / square;
                    next[column * size + row] = reflected;
                }
            }
            matrix.copy_from_slice(&next);
        }
    }
}
