//! The product of a matrix with itself turned over, whose eigenvalues are the squares of the singular values.
//!
//! # Cost
//!
//! Half of rows × columns × the shorter of them multiplications and additions, some
//! 7 × 10⁹ a second on each thread of a busy machine.
//! Memory: a square of the shorter side for each of a few sums, at most 128 MiB together.

use pulp::{Arch, Simd, WithSimd};

use super::super::parallel;
use super::matrix::{Matrix, Whole};
use super::walk::Room;
use crate::error::Result;
use crate::progress::Progress;

/// How many indexes of the longer side a panel has: a strip of it fits into the first-level cache.
const INDEXES: u64 = 256;

/// How many numbers of each index a strip has; three vectors of four.
const STRIP: usize = 12;

/// How many rows of the result are worked on at once: with three vectors each, as many as there are registers.
const ROWS: usize = 4;

/// So many numbers may be summed up beside each other, at most (but always four sums).
const MOST_NUMBERS: u64 = 1 << 24;

/// The product, whose lower triangle is filled, and its size.
pub(super) fn gram(matrix: &Matrix<'_>, progress: &Progress<'_>) -> Result<(Vec<f64>, usize)> {
    let whole = if matrix.rows <= matrix.columns() { Whole::Rows } else { Whole::Columns };
    let panels = matrix.panels(whole, INDEXES);
    let size = panels.width;
    let strips = size.div_ceil(STRIP);
    let padded = strips * STRIP;
    let sums = (MOST_NUMBERS / (padded * padded) as u64).clamp(4, 32).min(panels.count);
    let start = || (Room::default(), Vec::new(), Vec::new(), vec![0.0; padded * padded]);
    let work = |state: &mut (Room, Vec<f64>, Vec<f64>, Vec<f64>), number| {
        let (room, panel, packed, sum) = state;
        panels.read(number, room, panel)?;
        pack(panel, size, strips, packed);
        Arch::new().dispatch(Product { packed, strips, sum });
        Ok(())
    };
    let states = parallel::in_rows(panels.count, sums, matrix.threads(), progress, start, work)?;
    let mut product = vec![0.0; size * size];
    for (.., sum) in states {
        for (row, sums) in product.chunks_mut(size).zip(sum.chunks(padded)) {
            for (x, sum) in row.iter_mut().zip(sums) {
                *x += sum;
            }
        }
    }
    Ok((product, size))
}

/// Cuts a panel into strips, the last of them filled up with zeros.
fn pack(panel: &[f64], size: usize, strips: usize, into: &mut Vec<f64>) {
    let indexes = panel.len() / size;
    into.clear();
    into.resize(strips * indexes * STRIP, 0.0);
    for (number, strip) in into.chunks_mut(indexes * STRIP).enumerate() {
        let first = number * STRIP;
        let width = STRIP.min(size - first);
        for (numbers, into) in panel.chunks(size).zip(strip.chunks_mut(STRIP)) {
            into[..width].copy_from_slice(&numbers[first..first + width]);
        }
    }
}

/// Adds the product of a panel.
struct Product<'a> {
    packed: &'a [f64],
    strips: usize,
    sum: &'a mut [f64],
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<V: Simd>(self, simd: V) {
        match V::F64_LANES {
            4 => self.add::<V, 3>(simd),
            2 => self.add::<V, 6>(simd),
            1 => self.add::<V, 12>(simd),
            _ => self.add::<pulp::Scalar, 12>(pulp::Scalar),
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn add<V: Simd, const VECTORS: usize>(self, simd: V) {
        let length = self.packed.len() / self.strips;
        let strip = |number: usize| &self.packed[number * length..][..length];
        let stride = self.strips * STRIP;
        for left in 0..self.strips {
            let rows = strip(left).as_chunks::<STRIP>().0;
            for right in 0..=left {
                let columns = V::as_simd_f64s(strip(right)).0.as_chunks::<VECTORS>().0;
                for first in (0..STRIP).step_by(ROWS) {
                    let mut tile = [[simd.splat_f64s(0.0); VECTORS]; ROWS];
                    for (row, columns) in rows.iter().zip(columns) {
                        for n in 0..ROWS {
                            let x = simd.splat_f64s(row[first + n]);
                            for vector in 0..VECTORS {
                                let sum = tile[n][vector];
                                tile[n][vector] = simd.mul_add_e_f64s(x, columns[vector], sum);
                            }
                        }
                    }
                    for (n, sums) in tile.iter().enumerate() {
                        let at = (left * STRIP + first + n) * stride + right * STRIP;
                        let into = V::as_mut_simd_f64s(&mut self.sum[at..at + STRIP]).0;
                        for (into, &sum) in into.iter_mut().zip(sums) {
                            *into = simd.add_f64s(*into, sum);
                        }
                    }
                }
            }
        }
    }
}
