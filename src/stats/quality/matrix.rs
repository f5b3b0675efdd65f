//! A tensor as a matrix (the first dimension by all others), read in panels.
//!
//! Singular values do not depend on the order of rows or columns, nor on which is which. So columns are taken in
//! the order of the storage, and a panel is some indexes of one side with all of the other, the whole one.

use super::super::Sink;
use super::walk::{Room, Walk};
use crate::error::Result;
use pulp::Simd;

use super::rounding::Unit;

/// A matrix, with its largest magnitude as 1.
pub(super) struct Matrix<'a> {
    walk: &'a Walk<'a>,
    unit: Unit,
    /// How many elements are outside, along and inside the first dimension.
    outer: u64,
    pub rows: u64,
    inner: u64,
    values_of_element: u64,
}

/// Which side every panel has all of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    Rows,
    Columns,
}

/// How a matrix is cut into panels.
pub(super) struct Panels<'a> {
    matrix: &'a Matrix<'a>,
    step: Step,
    /// How many numbers the whole side has.
    pub width: usize,
    pub count: u64,
}

/// What a panel has of the side that it has not all of.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Some rows.
    Rows(u64),
    /// Some elements inside the first dimension, at one index outside.
    Inside(u64),
    /// Some indexes outside, with all that is inside.
    Outside(u64),
}

impl<'a> Matrix<'a> {
    pub fn new(walk: &'a Walk<'a>, max: f64) -> Self {
        let values_of_element = walk.values.values_of_element();
        let rows = walk.first.size;
        let inner = if rows == 1 { walk.elements() } else { walk.first.inner / values_of_element };
        let outer = walk.elements() / (rows * inner);
        Self { walk, unit: Unit::new(max), outer, rows, inner, values_of_element }
    }

    pub fn columns(&self) -> u64 {
        self.outer * self.inner * self.values_of_element
    }

    /// Whether the elements of a row are neighbours, so that whole rows are read at once.
    pub fn is_by_rows(&self) -> bool {
        self.outer == 1
    }

    pub fn threads(&self) -> usize {
        self.walk.threads
    }

    /// Cuts it into panels of about this many indexes.
    pub fn panels(&'a self, whole: Whole, indexes: u64) -> Panels<'a> {
        let indexes = indexes.max(1);
        let (width, step, count) = match whole {
            Whole::Columns => (self.columns(), Step::Rows(indexes), self.rows.div_ceil(indexes)),
            Whole::Rows if self.inner > indexes => {
                let count = self.outer * self.inner.div_ceil(indexes);
                (self.rows, Step::Inside(indexes), count)
            }
            Whole::Rows => {
                let groups = indexes / self.inner;
                (self.rows, Step::Outside(groups), self.outer.div_ceil(groups))
            }
        };
        Panels { matrix: self, step, width: width as usize, count }
    }
}

impl Panels<'_> {
    /// Puts a panel into a buffer, the numbers of each index together.
    pub fn read(&self, number: u64, room: &mut Room, into: &mut Vec<f64>) -> Result<()> {
        let Matrix { walk, outer, rows, inner, values_of_element, unit } = *self.matrix;
        match self.step {
            Step::Rows(step) => {
                let first = number * step;
                let count = step.min(rows - first);
                into.resize(count as usize * self.width, 0.0);
                let length = (inner * values_of_element) as usize;
                for group in 0..outer {
                    let start = (group * rows + first) * inner;
                    let at = group as usize * length;
                    let place = |n: usize| n / length * self.width + at + n % length;
                    let sink = &mut Placing {
                        unit,
                        first: start * values_of_element,
                        into,
                        place,
                        run: length,
                    };
                    walk.show(start..start + count * inner, room, sink)?;
                }
            }
            Step::Inside(step) => {
                let of_group = inner.div_ceil(step);
                let (group, first) = (number / of_group, number % of_group * step);
                let count = step.min(inner - first);
                into.resize((count * values_of_element) as usize * self.width, 0.0);
                for row in 0..rows {
                    let start = (group * rows + row) * inner + first;
                    let place = |n: usize| n * self.width + row as usize;
                    let sink = &mut Placing {
                        unit,
                        first: start * values_of_element,
                        into,
                        place,
                        run: 1,
                    };
                    walk.show(start..start + count, room, sink)?;
                }
            }
            Step::Outside(step) => {
                let first = number * step;
                let groups = step.min(outer - first);
                let length = (inner * values_of_element) as usize;
                into.resize(groups as usize * length * self.width, 0.0);
                let start = first * rows * inner;
                let place = |n: usize| {
                    let (row, group) = (n / length % self.width, n / length / self.width);
                    (group * length + n % length) * self.width + row
                };
                let sink =
                    &mut Placing { unit, first: start * values_of_element, into, place, run: 1 };
                walk.show(start..start + groups * rows * inner, room, sink)?;
            }
        }
        Ok(())
    }
}

/// Puts numbers where they belong.
struct Placing<'a, F> {
    unit: Unit,
    /// The first number of all.
    first: u64,
    into: &'a mut [f64],
    /// The place of the n-th.
    place: F,
    /// So many numbers in a row have places in a row, from multiples of it on.
    run: usize,
}

impl<F: Fn(usize) -> usize> Sink for Placing<'_, F> {
    #[inline(always)]
    fn add<V: Simd>(&mut self, _: V, first: u64, numbers: &mut [f64], _: u64) {
        for x in numbers.iter_mut() {
            *x = if x.abs() <= f64::MAX { self.unit.of(*x) } else { 0.0 };
        }
        let mut at = (first - self.first) as usize;
        let mut left = &*numbers;
        while !left.is_empty() {
            let count = (self.run - at % self.run).min(left.len());
            let (now, later) = left.split_at(count);
            self.into[(self.place)(at)..][..count].copy_from_slice(now);
            (left, at) = (later, at + count);
        }
    }
}
