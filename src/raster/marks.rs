//! Rectangles on a picture: grids, lines, shades. They are painted while the picture is copied to
//! where it is wanted, so that the picture itself stays as it was drawn.
//!
//! # Cost
//!
//! The copy, and the area of the marks. Parts of the picture are copied on several threads; each has
//! its marks painted on while it is in the cache.

use std::ops::Range;

use crate::raster::{BACKGROUND, Frame, Pixel, share};

/// A rectangle that is painted onto a picture, which may lie partly or wholly outside.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// Its left edge, in pixels from the left of the picture.
    pub x: i64,
    /// Its upper edge, in pixels from the top.
    pub y: i64,
    /// In pixels; if not positive, there is nothing to paint.
    pub width: i64,
    /// See `width`.
    pub height: i64,
    /// Red, green, blue.
    pub color: [u8; 3],
    /// From 0, which leaves everything as it is, to 255, which covers it.
    pub alpha: u8,
    /// Whether allocations are painted on, too, and not only the background.
    pub over: bool,
}

/// A part of a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    /// From the left.
    pub columns: Range<usize>,
    /// From the top.
    pub rows: Range<usize>,
}

impl Area {
    /// How many pixels it has.
    #[must_use]
    pub fn pixels(&self) -> usize {
        self.columns.len() * self.rows.len()
    }
}

/// In which order a copy has its bytes; the fourth is 255.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channels {
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red.
    Bgr,
}

impl Channels {
    #[inline]
    fn order(self, [first, second, third]: [u8; 3]) -> [u8; 3] {
        match self {
            Self::Rgb => [first, second, third],
            Self::Bgr => [third, second, first],
        }
    }
}

/// Pixels that one thread copies at a time: half a megabyte, which stays in its cache.
const BAND: usize = 1 << 17;

impl Frame {
    /// The whole picture.
    #[must_use]
    pub fn area(&self) -> Area {
        Area { columns: 0..self.view.width, rows: 0..self.view.height }
    }

    /// Copies a part of the picture, row by row, and paints marks on the copy, later ones on top.
    pub fn copy_marked(
        &self,
        area: &Area,
        marks: &[Mark],
        channels: Channels,
        threads: usize,
        to: &mut [Pixel],
    ) {
        let width = area.columns.len();
        if area.pixels() == 0 {
            return;
        }
        let rows = (BAND / width).max(1);
        let bands = to[..area.pixels()].chunks_mut(rows * width).enumerate();
        let bands = bands.map(|(number, band)| (area.rows.start + number * rows, band)).collect();
        share(bands, threads, |(first, band): (usize, &mut [Pixel])| {
            let rows = first..first + band.len() / width;
            self.copy(&area.columns, &rows, channels, band);
            let part = Area { columns: area.columns.clone(), rows };
            for mark in marks {
                self.paint(mark, &part, channels, band);
            }
        });
    }

    fn copy(
        &self,
        columns: &Range<usize>,
        rows: &Range<usize>,
        channels: Channels,
        to: &mut [Pixel],
    ) {
        let from = self.canvas.pixels.chunks_exact(self.view.width).skip(rows.start);
        for (from, to) in from.zip(to.chunks_exact_mut(columns.len())) {
            let from = &from[columns.clone()];
            match channels {
                Channels::Rgb => to.copy_from_slice(from),
                Channels::Bgr => {
                    for (to, &[red, green, blue, rest]) in to.iter_mut().zip(from) {
                        *to = [blue, green, red, rest];
                    }
                }
            }
        }
    }

    /// Paints a mark onto a copy of a part of the picture.
    fn paint(&self, mark: &Mark, part: &Area, channels: Channels, to: &mut [Pixel]) {
        let columns = cut(mark.x, mark.width, &part.columns);
        let rows = cut(mark.y, mark.height, &part.rows);
        let (ids, height) = (self.ids(), self.view.height);
        let color = channels.order(mark.color).map(u32::from);
        let alpha = u32::from(mark.alpha);
        let blend = |pixel: &mut Pixel| {
            for (channel, color) in pixel.iter_mut().zip(color) {
                // Rounded; there are no halves.
                let mixed = color * alpha + u32::from(*channel) * (255 - alpha);
                *channel = ((mixed + 127) / 255) as u8;
            }
        };
        for row in rows {
            let first = (row - part.rows.start) * part.columns.len();
            let from = first + columns.start - part.columns.start;
            let pixels = to[from..][..columns.len()].iter_mut();
            if mark.over {
                pixels.for_each(blend);
            } else {
                // Ids are column by column, from the bottom up.
                let ids = ids[height - 1 - row..].iter().step_by(height).skip(columns.start);
                let free = pixels.zip(ids).filter(|(_, id)| **id == BACKGROUND);
                free.for_each(|(pixel, _)| blend(pixel));
            }
        }
    }
}

/// What of a range of a picture lies in a part of it.
fn cut(start: i64, length: i64, part: &Range<usize>) -> Range<usize> {
    let (first, last) = (part.start as i64, part.end as i64);
    let from = start.clamp(first, last);
    let to = start.saturating_add(length).clamp(from, last);
    from as usize..to as usize
}
