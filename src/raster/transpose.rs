//! Transposes columns, as they are painted, into rows, as screens and files need them.

use crate::raster::Pixel;

/// Columns that are transposed together: two lines of the cache in each row.
pub(super) const TILE: usize = 32;

/// The strides that the compiler knows, which suit pictures of up to as many rows.
const SMALL: usize = 1024 + TILE;
const MEDIUM: usize = 2048 + TILE;
const LARGE: usize = 4096 + TILE;

/// How far apart the columns of a tile are: a bit more than a power of two, because columns that far
/// apart would share few lines of the cache; and one of few, which [`transpose`] knows.
pub(super) fn stride(height: usize) -> usize {
    height.next_power_of_two().max(1024) + TILE
}

/// Transposes columns from the bottom up into pieces of rows from the top.
pub(super) fn transpose<'r>(
    tile: &[u32],
    stride: usize,
    height: usize,
    rows: impl Iterator<Item = &'r mut [Pixel]>,
) {
    // For 2400 × 1000 pixels: 1.0 ms if the compiler knows both, 1.9 ms if not.
    match stride {
        SMALL => transpose_known::<SMALL>(tile, height, rows),
        MEDIUM => transpose_known::<MEDIUM>(tile, height, rows),
        LARGE => transpose_known::<LARGE>(tile, height, rows),
        _ => rows
            .enumerate()
            .for_each(|(row, piece)| transpose_any(&tile[height - 1 - row..], stride, piece)),
    }
}

fn transpose_known<'r, const STRIDE: usize>(
    tile: &[u32],
    height: usize,
    rows: impl Iterator<Item = &'r mut [Pixel]>,
) {
    for (row, piece) in rows.enumerate() {
        let from = &tile[height - 1 - row..];
        match (from.get(..(TILE - 1) * STRIDE + 1), piece.first_chunk_mut::<TILE>()) {
            (Some(from), Some(piece)) => transpose_any(from, STRIDE, piece),
            _ => transpose_any(from, STRIDE, piece),
        }
    }
}

#[inline]
fn transpose_any(from: &[u32], stride: usize, piece: &mut [Pixel]) {
    for (place, pixel) in piece.iter_mut().enumerate() {
        *pixel = from[place * stride].to_le_bytes();
    }
}
