//! The singular values of a tensor as a matrix: the first dimension by all others.
//!
//! Where the shorter side has at most 2048 rows and the work is bounded, all singular values are found, as the
//! roots of eigenvalues (`gram`, `eigen`): the largest within about 1e-12 of itself, and those below 1e-6 of it
//! count as 0, because squaring has lost them. Otherwise the largest is estimated from below (`lanczos`).
//!
//! # Cost
//!
//! See there. Nothing else of a tensor's quality takes as long.

use super::super::plan::Grain;
use super::super::values::{Form, Values};
use super::super::{Bytes, Elements};
use super::matrix::Matrix;
use super::walk::Walk;
use super::{eigen, gram, lanczos};
use crate::error::Result;
use crate::progress::Progress;

/// The shorter side has at most so many for all singular values.
const MOST_VALUES: u64 = 2048;

/// At most so many multiplications for all singular values.
const MOST_WORK: u128 = 1 << 38;

/// What is packed is unpacked into memory, up to so many bytes, because it is read in leaps.
const MOST_UNPACKED: u64 = 256 << 20;

/// Singular values of a matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    /// The matrix.
    pub shape: (u64, u64),
    /// The largest, or an estimate from below.
    pub norm: f64,
    /// What it cannot exceed; the norm itself if that is no estimate.
    pub upper_bound: f64,
    /// Whether the norm is an estimate.
    pub is_estimate: bool,
    /// How often the matrix was read.
    pub iterations: usize,
    /// How much of an estimate the last iteration added.
    pub change: f64,
    /// The sum of the squares of all by the square of the largest.
    pub stable_rank: Option<f64>,
    /// e to the entropy of the singular values as shares of their sum, or why it is not there.
    pub effective_rank: std::result::Result<f64, String>,
}

/// Finds the singular values of a tensor with this largest magnitude, and this sum of squares if that were 1.
pub(super) fn spectrum(
    elements: &Elements<'_>,
    values: &Values,
    max: f64,
    squares: f64,
    grain: Grain,
    progress: &Progress<'_>,
) -> Result<std::result::Result<Spectrum, String>> {
    let why = |why: &str| Ok(Err(why.to_owned()));
    let [rows, others @ ..] = elements.layout.shape.as_slice() else {
        return why("it has no dimensions");
    };
    if others.is_empty() {
        return why("it has one dimension");
    }
    if matches!(values.form, Form::Complex(_)) {
        return why("it is complex");
    }
    let shape = (*rows, others.iter().product::<u64>() * values.values_of_element());
    if max == 0.0 {
        let effective_rank = Err("all is 0".to_owned());
        return Ok(Ok(Spectrum {
            shape,
            norm: 0.0,
            upper_bound: 0.0,
            is_estimate: false,
            iterations: 0,
            change: 0.0,
            stable_rank: None,
            effective_rank,
        }));
    }
    let unpacked = match elements.bytes.is_sequential() {
        true if elements.storage_bytes > MOST_UNPACKED => {
            return why("it is packed, and too large to unpack into memory");
        }
        true => {
            let mut bytes = vec![0; elements.storage_bytes as usize];
            elements.bytes.read_at(elements.start, &mut bytes)?;
            Some(bytes)
        }
        false => None,
    };
    let unpacked = unpacked.as_deref();
    let bytes: &dyn Bytes = match &unpacked {
        Some(unpacked) => unpacked,
        None => elements.bytes,
    };
    let start = if unpacked.is_some() { 0 } else { elements.start };
    let elements = Elements { bytes, start, ..elements.clone() };
    let walk = Walk::new(&elements, values, grain)?;
    let matrix = Matrix::new(&walk, max);
    let size = max * (walk.copies as f64).sqrt();
    let found = find(&matrix, squares, progress)?;
    Ok(found.map(|found| Spectrum {
        shape,
        norm: found.norm * size,
        upper_bound: found.upper_bound * size,
        ..found
    }))
}

/// The singular values of a matrix whose largest magnitude is 1.
fn find(
    matrix: &Matrix<'_>,
    squares: f64,
    progress: &Progress<'_>,
) -> Result<std::result::Result<Spectrum, String>> {
    let (rows, columns) = (matrix.rows, matrix.columns());
    let shorter = rows.min(columns);
    let work = u128::from(rows) * u128::from(columns) * u128::from(shorter) / 2;
    let why_not = if shorter > MOST_VALUES {
        format!("the shorter side has {shorter} rows, more than {MOST_VALUES}")
    } else {
        format!("it would take {work} multiplications, more than {MOST_WORK}")
    };
    if shorter <= MOST_VALUES && work <= MOST_WORK {
        let (product, size) = gram::gram(matrix, &progress.part(0.0, 0.5))?;
        let squares_of_values = eigen::eigenvalues(product, size, &progress.part(0.5, 1.0))?;
        let largest = squares_of_values.last().copied().unwrap_or(0.0);
        return Ok(Ok(Spectrum {
            shape: (rows, columns),
            norm: largest.sqrt(),
            upper_bound: largest.sqrt(),
            is_estimate: false,
            iterations: 1,
            change: 0.0,
            stable_rank: Some((squares / largest).max(1.0)),
            effective_rank: Ok(effective_rank(&squares_of_values, largest)),
        }));
    }
    let Some(found) = lanczos::largest(matrix, progress)? else {
        return Ok(Err(format!("{rows} by {columns} is too large")));
    };
    Ok(Ok(Spectrum {
        shape: (rows, columns),
        norm: found.norm,
        upper_bound: found.upper_bound.min(squares.sqrt()),
        is_estimate: true,
        iterations: found.iterations,
        change: found.change,
        stable_rank: Some((squares / (found.norm * found.norm)).max(1.0)),
        effective_rank: Err(why_not),
    }))
}

/// e to the entropy of the roots as shares of their sum.
fn effective_rank(squares: &[f64], largest: f64) -> f64 {
    let least = largest * 1e-12;
    let roots = || squares.iter().filter(|&&square| square > least).map(|square| square.sqrt());
    let sum: f64 = roots().sum();
    let entropy: f64 = roots().map(|root| -(root / sum) * (root / sum).ln()).sum();
    entropy.exp()
}
