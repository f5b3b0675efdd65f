//! The line around the selected allocation.

use crate::raster::{Picture, Pixel};

/// Draws a line around the selected allocation, of two tones so that it shows on any colour: one
/// inside of it and one outside.
pub(super) fn outline(picture: &mut Picture) {
    let (width, height) = (picture.view.width, picture.view.height);
    let (inside, outside) =
        (picture.style.outline.0.to_le_bytes(), picture.style.outline.1.to_le_bytes());
    let spans = &picture.selected;
    let has = |(first, end): (u32, u32), row: u32| first <= row && row < end;
    for column in 0..width {
        let own = spans[column];
        // What is beyond the picture is taken to go on.
        let left = if column > 0 { spans[column - 1] } else { own };
        let right = spans.get(column + 1).copied().unwrap_or(own);
        let mut put = |row: u32, pixel: Pixel| {
            if let Some(from_top) = (height as u32).checked_sub(row + 1) {
                picture.canvas.pixels[from_top as usize * width + column] = pixel;
            }
        };
        for row in own.0..own.1 {
            let is_end = (row == own.0 && row > 0) || (row + 1 == own.1 && row + 1 < height as u32);
            if is_end || !has(left, row) || !has(right, row) {
                put(row, inside);
            }
        }
        if own.0 < own.1 {
            put(own.1, outside);
            if own.0 > 0 {
                put(own.0 - 1, outside);
            }
        }
        for row in (left.0..left.1).chain(right.0..right.1) {
            if !has(own, row) {
                put(row, outside);
            }
        }
    }
}
