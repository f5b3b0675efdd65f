//! Divides a picture into parts that threads can work on.

use std::ops::Range;

use crate::raster::{Picture, Pixel};

/// Some columns of a picture.
pub(super) struct Part<'f> {
    /// Which.
    pub columns: Range<usize>,
    /// Their moments.
    pub moments: &'f mut [u32],
    /// The allocation of each pixel, column by column from the bottom up.
    pub ids: &'f mut [u32],
    /// Their pixels, a piece of each row from the top.
    pub rows: Vec<&'f mut [Pixel]>,
    /// How many rows of each column are allocations.
    pub filled: &'f mut [u32],
    /// The rows of the selected allocation in each column.
    pub selected: &'f mut [(u32, u32)],
}

/// A part that is narrower is not worth a beginning of its own.
const NARROW: usize = 64;

/// Divides the columns before and after those that are kept into pieces of about the same width.
pub(super) fn split<'f>(
    picture: &'f mut Picture,
    kept: &Range<usize>,
    threads: usize,
) -> Vec<Part<'f>> {
    let (width, height) = (picture.view.width, picture.view.height);
    let pieces = |range: Range<usize>| {
        let count = (range.len() / NARROW).clamp(1, threads);
        let edge = move |piece: usize| range.start + range.len() * piece / count;
        (0..count).map(move |piece| edge(piece)..edge(piece + 1))
    };
    let all = pieces(0..kept.start).chain([kept.clone()]).chain(pieces(kept.end..width));
    let mut ids = &mut picture.canvas.ids[picture.canvas.first * height..][..width * height];
    let mut filled = picture.filled.as_mut_slice();
    let mut selected = picture.selected.as_mut_slice();
    let mut moments = picture.moments.as_mut_slice();
    let mut parts: Vec<Part<'_>> = Vec::new();
    for columns in all {
        parts.push(Part {
            moments: moments.split_off_mut(..columns.len()).unwrap_or_default(),
            ids: ids.split_off_mut(..columns.len() * height).unwrap_or_default(),
            rows: Vec::with_capacity(height),
            filled: filled.split_off_mut(..columns.len()).unwrap_or_default(),
            selected: selected.split_off_mut(..columns.len()).unwrap_or_default(),
            columns,
        });
    }
    for mut row in picture.canvas.pixels.chunks_exact_mut(width) {
        for part in &mut parts {
            part.rows.extend(row.split_off_mut(..part.columns.len()));
        }
    }
    parts.retain(|part| !part.columns.is_empty() && part.columns != *kept);
    parts
}
