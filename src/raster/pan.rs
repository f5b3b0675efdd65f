//! Moves the columns that stay in the picture, so that a pan draws only the others.
//!
//! They are moved in place: copying them to another canvas would take as long as drawing them.

use std::ops::Range;

use crate::raster::{Picture, Pixel, Style, Viewport, share};
use crate::timeline::Clock;

/// Columns that stay.
pub(super) struct Moved {
    /// Where they are in the new picture.
    pub columns: Range<usize>,
    /// The first of them in the old one.
    from: usize,
}

/// Finds the columns that another view of the same timeline and clock has, too.
pub(super) fn moved(
    old: &Picture,
    view: &Viewport,
    style: &Style,
    clock: Option<&Clock>,
) -> Option<Moved> {
    let Viewport { bytes, width, height, .. } = view;
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
    (count > 0).then(|| Moved { columns: to + first..to + first + count, from: from + first })
}

/// Moves them to where they are in the new picture.
pub(super) fn shift(picture: &mut Picture, moved: &Moved) {
    let Moved { columns, from } = moved;
    let (old, to) = (*from..from + columns.len(), columns.start);
    picture.moments.copy_within(old.clone(), to);
    picture.filled.copy_within(old.clone(), to);
    picture.selected.copy_within(old.clone(), to);
    shift_ids(picture, &old, to);
    let (width, height) = (picture.view.width, picture.view.height);
    let (upper, lower) = picture.canvas.pixels.split_at_mut(height / 2 * width);
    share(vec![upper, lower], 2, |rows: &mut [Pixel]| {
        rows.chunks_exact_mut(width).for_each(|row| row.copy_within(old.clone(), to));
    });
}

/// Moves the picture over its ids, or where these end, the ids to the middle of their room.
fn shift_ids(picture: &mut Picture, old: &Range<usize>, to: usize) {
    let (width, height) = (picture.view.width, picture.view.height);
    let canvas = &mut picture.canvas;
    match (canvas.first + old.start).checked_sub(to) {
        Some(first) if first <= width => canvas.first = first,
        _ => {
            let (from, middle) = (canvas.first, width / 2);
            let columns = (from + old.start) * height..(from + old.end) * height;
            canvas.ids.copy_within(columns, (middle + to) * height);
            canvas.first = middle;
        }
    }
}
