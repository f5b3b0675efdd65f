//! The spectral norm of a tensor as a matrix: the first dimension by all others.
//!
//! The largest singular value is found from below, by iteration (`lanczos`), with a bound that it cannot exceed.
//!
//! # Cost
//!
//! See there. Nothing else of a tensor's quality takes as long.

use super::super::plan::Grain;
use super::super::values::{Form, Values};
use super::super::{Bytes, Elements};
use super::lanczos;
use super::matrix::Matrix;
use super::walk::Walk;
use crate::error::Result;
use crate::progress::Progress;

/// The most bytes of a packed tensor that are unpacked into memory, because it is read in leaps.
const MAX_UNPACKED: u64 = 256 << 20;

/// The largest singular value of a matrix, and what it says of the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spectrum {
    /// The matrix.
    pub shape: (u64, u64),
    /// The largest singular value, from below.
    pub norm: f64,
    /// What it cannot exceed.
    pub upper_bound: f64,
    /// How often the matrix was read.
    pub iterations: usize,
    /// How much of the norm the last iteration added.
    pub change: f64,
    /// The sum of the squares of all singular values by the square of the largest.
    pub stable_rank: Option<f64>,
    /// The share of the sum of the squares that a matrix of rank `iterations` has at least.
    pub captured: Option<f64>,
}

/// Finds the spectral norm of a tensor with this largest magnitude, and this sum of squares if that were 1.
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
        let (norm, upper_bound) = (0.0, 0.0);
        let (stable_rank, captured) = (None, None);
        let (iterations, change) = (0, 0.0);
        return Ok(Ok(Spectrum {
            shape,
            norm,
            upper_bound,
            iterations,
            change,
            stable_rank,
            captured,
        }));
    }
    let unpacked = match elements.bytes.is_sequential() {
        true if elements.storage_bytes > MAX_UNPACKED => {
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
    let Some(found) = lanczos::largest(&matrix, progress)? else {
        return Ok(Err(format!("{} by {} is too large", matrix.rows, matrix.columns())));
    };
    // Rounding must not leave the bound below the norm of a matrix of rank 1.
    let upper_bound = found.upper_bound.min(squares.sqrt()).max(found.norm);
    Ok(Ok(Spectrum {
        shape,
        norm: found.norm * size,
        upper_bound: upper_bound * size,
        iterations: found.iterations,
        change: found.change,
        stable_rank: Some((squares / (found.norm * found.norm)).max(1.0)),
        captured: Some((found.captured / squares).min(1.0)),
    }))
}
