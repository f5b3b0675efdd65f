//! Divides a picture into parts that threads can work on, and takes over what a pan leaves.

use std::ops::Range;

use crate::raster::{Frame, Pixel, Style, View};
use crate::timeline::Clock;

/// Some columns of a picture.
pub(super) struct Part<'f> {
    /// Which.
    pub columns: Range<usize>,
    /// Their moments.
    pub moments: &'f mut [u32],
    /// Who is where, column by column from the bottom up.
    pub ids: &'f mut [u32],
    /// Their pixels, a piece of each row from the top.
    pub rows: Vec<&'f mut [Pixel]>,
    /// The rows of the selected allocation in each column.
    pub selected: &'f mut [(u32, u32)],
    /// The column of the previous picture that the first one is, if they are all there.
    pub kept_from: Option<usize>,
}

/// Columns that are the same as in the previous picture, and where they were.
pub(super) struct Kept {
    columns: Range<usize>,
    from: usize,
}

/// A part that is narrower is not worth a beginning of its own.
const NARROW: usize = 64;

/// Finds the columns that another picture shows already: those that a pan only moved.
pub(super) fn kept(old: &Frame, view: &View, style: &Style, clock: Option<&Clock>) -> Option<Kept> {
    let View { bytes, width, height, .. } = view;
    let is_alike = old.view.bytes == *bytes
        && (old.view.width, old.view.height) == (*width, *height)
        && old.style.is_same(style);
    if !is_alike {
        return None;
    }
    // Where the new first column is in the old picture. Stripes count columns from the origin, too.
    let moved = view.origin().checked_sub(old.view.origin())?;
    let size = usize::try_from(moved.unsigned_abs()).ok().filter(|size| size < width)?;
    let (from, to) = if moved >= 0 { (size, 0) } else { (0, size) };
    // Columns with the same edges show the same. Rounding may have moved some.
    let is_same =
        |&column: &usize| view.edges(to + column, clock) == old.view.edges(from + column, clock);
    let first = (0..width - size).find(is_same)?;
    let count = (first..width - size).take_while(is_same).count();
    // An outline depends on the columns beside it.
    let margin = usize::from(style.selected.is_some());
    let (first, count) = (first + margin, count.checked_sub(2 * margin)?);
    (count > 0).then(|| Kept { columns: to + first..to + first + count, from: from + first })
}

/// Divides a picture: what is kept, and the rest in pieces of about the same width.
pub(super) fn split(frame: &mut Frame, kept: Option<Kept>, threads: usize) -> Vec<Part<'_>> {
    let (width, height) = (frame.view.width, frame.view.height);
    let mut ranges: Vec<(Range<usize>, Option<usize>)> = Vec::new();
    let (columns, from) = match kept {
        Some(kept) => (kept.columns, Some(kept.from)),
        None => (0..0, None),
    };
    let pieces = |range: Range<usize>| {
        let count = (range.len() / NARROW).clamp(1, threads);
        let edge = move |piece: usize| range.start + range.len() * piece / count;
        (0..count).map(move |piece| edge(piece)..edge(piece + 1))
    };
    ranges.extend(pieces(0..columns.start).map(|piece| (piece, None)));
    let kept = |piece: Range<usize>| {
        let from = from.map(|from| from + piece.start - columns.start);
        (piece, from)
    };
    ranges.extend(pieces(columns.clone()).map(kept));
    ranges.extend(pieces(columns.end..width).map(|piece| (piece, None)));
    ranges.retain(|(range, _)| !range.is_empty());

    let mut ids = frame.canvas.ids.as_mut_slice();
    let mut selected = frame.selected.as_mut_slice();
    let mut moments = frame.moments.as_mut_slice();
    let mut parts: Vec<Part<'_>> = Vec::new();
    for (columns, kept_from) in ranges {
        parts.push(Part {
            moments: moments.split_off_mut(..columns.len()).unwrap_or_default(),
            ids: ids.split_off_mut(..columns.len() * height).unwrap_or_default(),
            rows: Vec::with_capacity(height),
            selected: selected.split_off_mut(..columns.len()).unwrap_or_default(),
            columns,
            kept_from,
        });
    }
    for mut row in frame.canvas.pixels.chunks_exact_mut(width) {
        for part in &mut parts {
            part.rows.extend(row.split_off_mut(..part.columns.len()));
        }
    }
    parts
}

/// Copies columns from another picture.
pub(super) fn copy(part: Part<'_>, old: &Frame, from: usize) {
    let (width, height, count) = (old.view.width, old.view.height, part.columns.len());
    part.ids.copy_from_slice(&old.canvas.ids[from * height..(from + count) * height]);
    part.moments.copy_from_slice(&old.moments[from..from + count]);
    part.selected.copy_from_slice(&old.selected[from..from + count]);
    for (row, old) in part.rows.into_iter().zip(old.canvas.pixels.chunks_exact(width)) {
        row.copy_from_slice(&old[from..from + count]);
    }
}
