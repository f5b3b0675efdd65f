//! Pictures of the allocator's memory at one moment: a row per segment, as long as its bytes.
//!
//! Segments are grouped by domain, each group below a heading that the caller writes. A segment with
//! more bytes than a row continues in the next one. A pixel shows the part of a block that has the
//! most of its bytes, the first of equals. Free memory is plain, a block that waits for another stream
//! hatched, and what rounding adds to a block is a third as tall.
//!
//! # Invariants
//!
//! The rows of the segments do not overlap, and every byte belongs to one pixel. Tests compare with
//! the definition, pixel by pixel.
//!
//! # Cost
//!
//! Layout: `O(segments log segments + blocks)`. A picture: its pixels, and the blocks in view.

use std::ops::Range;

use super::colors::mix;
use super::{BACKGROUND, Canvas, Picture, Pixel, Style, Viewport};
use crate::allocator::state::{BlockAt, BlockState, SegmentAt, State};
use crate::named::named;

named! {
    /// The order of the segments of a domain.
    pub enum SortBy {
        /// From low to high.
        #[default]
        Address = "address",
        /// The largest first.
        Size = "size",
        /// The most bytes first that are free or lost to rounding.
        Waste = "waste",
        /// The oldest first.
        Age = "age",
    }
}

/// The measures of a map, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measures {
    /// Of a row that is full.
    pub width: usize,
    /// What a full row has, in bytes.
    pub row_bytes: u64,
    /// The height of a row.
    pub row: u32,
    /// Between rows.
    pub gap: u32,
    /// The height of a heading.
    pub heading: u32,
}

/// What a row of a map shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// The heading of a domain, by its place among the domains.
    Heading(usize),
    /// A part of a segment: its place in the state, and which part.
    Segment(usize, u64),
}

/// A row of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapRow {
    /// Its upper edge, in pixels from the top of the map.
    pub top: u64,
    /// What it shows.
    pub shown: Shown,
}

/// A heading, or all rows of a segment.
#[derive(Debug)]
struct Line {
    top: u64,
    shown: Shown,
}

/// The segments of a state, laid out in rows.
#[derive(Debug)]
pub struct MemoryMap {
    measures: Measures,
    lines: Vec<Line>,
    height: u64,
}

/// Some bytes of a segment.
struct Part {
    bytes: Range<u64>,
    block: usize,
    is_slack: bool,
}

impl MemoryMap {
    /// Lays the segments out.
    #[must_use]
    pub fn new(state: &State, sort: SortBy, measures: Measures) -> Self {
        let width = measures.width.max(1);
        // A pixel has at least a byte.
        let row_bytes = measures.row_bytes.max(width as u64);
        let measures = Measures { width, row_bytes, row: measures.row.max(1), ..measures };
        let mut map = Self { measures, lines: Vec::new(), height: 0 };
        let mut order: Vec<usize> = (0..state.segments.len()).collect();
        let key = |&place: &usize| {
            let segment = &state.segments[place];
            let by = match sort {
                SortBy::Address => 0,
                SortBy::Size => -i128::from(segment.size),
                SortBy::Waste => -i128::from(waste(state, segment)),
                SortBy::Age => i128::from(segment.born),
            };
            (segment.domain.order(), by, segment.address)
        };
        order.sort_by_cached_key(key);
        let (mut last, mut domains) = (None, 0);
        for place in order {
            let segment = &state.segments[place];
            if last.replace(segment.domain) != Some(segment.domain) {
                map.add(Shown::Heading(domains), u64::from(measures.heading));
                domains += 1;
            }
            let rows = segment.size.div_ceil(measures.row_bytes);
            map.add(Shown::Segment(place, 0), rows.saturating_mul(map.pitch()));
        }
        map
    }

    fn add(&mut self, shown: Shown, height: u64) {
        self.lines.push(Line { top: self.height, shown });
        self.height = self.height.saturating_add(height);
    }

    /// From one row to the next.
    fn pitch(&self) -> u64 {
        u64::from(self.measures.row) + u64::from(self.measures.gap)
    }

    /// The height of all rows.
    #[must_use]
    pub fn height(&self) -> u64 {
        self.height
    }

    /// The rows of which something is between two heights.
    #[must_use]
    pub fn rows(&self, pixels: Range<u64>) -> Vec<MapRow> {
        let mut rows = Vec::new();
        let first = self.lines.partition_point(|line| line.top <= pixels.start).saturating_sub(1);
        for (place, line) in self.lines.iter().enumerate().skip(first) {
            if line.top >= pixels.end {
                break;
            }
            let end = self.lines.get(place + 1).map_or(self.height, |next| next.top);
            match line.shown {
                Shown::Heading(_) => rows.push(MapRow { top: line.top, shown: line.shown }),
                Shown::Segment(segment, _) => {
                    let pitch = self.pitch();
                    let from = pixels.start.saturating_sub(line.top) / pitch;
                    let to = (pixels.end.min(end) - line.top).div_ceil(pitch);
                    let row = |part: u64| MapRow {
                        top: line.top + part * pitch,
                        shown: Shown::Segment(segment, part),
                    };
                    rows.extend((from..to).map(row));
                }
            }
        }
        rows
    }

    /// The block at a pixel, and the segment that it is in.
    #[must_use]
    pub fn at(&self, state: &State, x: usize, y: u64) -> Option<(usize, usize)> {
        let row = self.rows(y..y.saturating_add(1)).pop()?;
        let Shown::Segment(place, part) = row.shown else { return None };
        let is_inside = y >= row.top && y - row.top < u64::from(self.measures.row);
        if !is_inside || x >= self.measures.width {
            return None;
        }
        let shown = self.shown(state, &state.segments[place], part);
        Some((place, shown.get(x)?.0))
    }

    /// Where an allocation is: the upper edge of its first row.
    #[must_use]
    pub fn top_of(&self, state: &State, allocation: u32) -> Option<u64> {
        let (place, block) = find(state, allocation)?;
        let segment = &state.segments[place];
        let is_its = |line: &&Line| line.shown == Shown::Segment(place, 0);
        let line = self.lines.iter().find(is_its)?;
        let part = (state.blocks[block].address - segment.address) / self.measures.row_bytes;
        Some(line.top.saturating_add(part.saturating_mul(self.pitch())))
    }

    /// The byte of a segment at which a pixel of a row begins.
    fn edge(&self, part: u64, x: usize) -> u64 {
        let Measures { width, row_bytes, .. } = self.measures;
        let inside = u128::from(row_bytes) * x as u128 / width as u128;
        part.saturating_mul(row_bytes).saturating_add(inside as u64)
    }

    /// The block of each pixel of a row, and whether the pixel shows its slack.
    fn shown(&self, state: &State, segment: &SegmentAt, part: u64) -> Vec<(usize, bool)> {
        let parts = parts(state, segment, self.edge(part, 0)..self.edge(part, self.measures.width));
        let mut shown = Vec::with_capacity(self.measures.width);
        let mut first = 0;
        for x in 0..self.measures.width {
            let (from, to) = (self.edge(part, x), self.edge(part, x + 1).min(segment.size));
            if from >= to {
                break;
            }
            let mut best: Option<(u64, &Part)> = None;
            while let Some(one) = parts.get(first).filter(|one| one.bytes.start < to) {
                let bytes = one.bytes.end.min(to).saturating_sub(one.bytes.start.max(from));
                if bytes > best.map_or(0, |(most, _)| most) {
                    best = Some((bytes, one));
                }
                if one.bytes.end > to {
                    break;
                }
                first += 1;
            }
            // Blocks fill their segment.
            let Some((_, one)) = best else { break };
            shown.push((one.block, one.is_slack));
        }
        shown
    }

    /// Draws a part of the map onto a canvas, whatever is on it.
    #[must_use]
    pub fn draw(
        &self,
        state: &State,
        style: &Style,
        top: u64,
        height: usize,
        mut canvas: Canvas,
    ) -> Picture {
        let width = self.measures.width;
        canvas.resize(width, height);
        canvas.ids[canvas.first * height..][..width * height].fill(BACKGROUND);
        canvas.pixels.fill(style.background.to_le_bytes());
        let rows = self.rows(top..top.saturating_add(height as u64));
        let selected = style.selected.and_then(|allocation| find(state, allocation));
        for row in &rows {
            if let Shown::Segment(place, part) = row.shown {
                let segment = &state.segments[place];
                let shown = self.shown(state, segment, part);
                let above = row.top as i64 - top as i64;
                self.paint(state, style, &shown, above, height, &mut canvas);
            }
        }
        for row in rows {
            if let (Shown::Segment(place, part), Some((its, block))) = (row.shown, selected)
                && place == its
            {
                let above = row.top as i64 - top as i64;
                let columns = self.columns(&state.segments[place], &state.blocks[block], part);
                let rows = above..above + i64::from(self.measures.row);
                outline(style, &columns, rows, (width, height), &mut canvas);
            }
        }
        Picture {
            view: Viewport { from: 0.0, to: 1.0, bytes: 0..1, width, height },
            moments: Vec::new(),
            canvas,
            filled: vec![height as u32; width],
            selected: Vec::new(),
            style: style.clone(),
        }
    }

    /// Paints a row whose upper edge is at a height of the picture.
    fn paint(
        &self,
        state: &State,
        style: &Style,
        shown: &[(usize, bool)],
        above: i64,
        height: usize,
        canvas: &mut Canvas,
    ) {
        let (width, tall) = (self.measures.width, self.measures.row as usize);
        let lines = (0..tall).filter_map(|line| {
            let y = usize::try_from(above + line as i64).ok()?;
            (y < height).then_some((line, y))
        });
        let lines: Vec<(usize, usize)> = lines.collect();
        for (x, &(place, is_slack)) in shown.iter().enumerate() {
            let block = &state.blocks[place];
            let color = color(style, shown, x, block);
            for &(line, y) in &lines {
                let is_plain = match block.state {
                    _ if is_slack => line >= tall - tall.div_ceil(3),
                    BlockState::Pending => (x + line) % HATCH < HATCH / 2,
                    _ => true,
                };
                let color = match (is_plain, is_slack) {
                    (true, _) => color,
                    (false, true) => style.free,
                    (false, false) => mix(color, style.background, 3),
                };
                canvas.pixels[y * width + x] = color.to_le_bytes();
            }
            if let Some(allocation) = block.allocation {
                let column = (canvas.first + x) * height;
                for &(_, y) in &lines {
                    canvas.ids[column + height - 1 - y] = allocation;
                }
            }
        }
    }

    /// The pixels of a row that a block touches.
    fn columns(&self, segment: &SegmentAt, block: &BlockAt, part: u64) -> Range<usize> {
        let width = self.measures.width;
        let start = block.address - segment.address;
        let end = start + block.size;
        let places: Vec<usize> = (0..width)
            .filter(|&x| self.edge(part, x) < end && self.edge(part, x + 1) > start)
            .collect();
        places.first().map_or(0..0, |&first| first..first + places.len())
    }
}

/// Draws a line of two tones around some pixels of a row: inside and outside.
pub(super) fn outline(
    style: &Style,
    columns: &Range<usize>,
    rows: Range<i64>,
    (width, height): (usize, usize),
    canvas: &mut Canvas,
) {
    if columns.is_empty() {
        return;
    }
    let (left, right) = (columns.start as i64, columns.end as i64 - 1);
    let (top, bottom) = (rows.start, rows.end - 1);
    let mut frame = |by: i64, color: Pixel| {
        let (left, right, top, bottom) = (left - by, right + by, top - by, bottom + by);
        let mut put = |x: i64, y: i64| {
            if (0..width as i64).contains(&x) && (0..height as i64).contains(&y) {
                canvas.pixels[y as usize * width + x as usize] = color;
            }
        };
        for x in left..=right {
            put(x, top);
            put(x, bottom);
        }
        for y in top..=bottom {
            put(left, y);
            put(right, y);
        }
    };
    // A narrow block keeps its colour.
    if right - left >= 2 {
        frame(0, style.outline.0.to_le_bytes());
    }
    frame(1, style.outline.1.to_le_bytes());
}

/// The period of the hatching, in pixels.
const HATCH: usize = 6;

/// The colour of a pixel of a row: where a block of several pixels begins, that of an edge.
fn color(style: &Style, shown: &[(usize, bool)], x: usize, block: &BlockAt) -> u32 {
    let place = shown[x].0;
    let own = |allocation: u32| style.colors.get(allocation as usize).copied();
    let color = block.allocation.and_then(own).unwrap_or(style.free);
    let is_start = x > 0 && shown[x - 1].0 != place;
    let goes_on = shown.get(x + 1).is_some_and(|next| next.0 == place);
    if is_start && goes_on { style.edge(color) } else { color }
}

/// Bytes of a segment that are free or lost to rounding.
fn waste(state: &State, segment: &SegmentAt) -> u64 {
    let blocks = &state.blocks[segment.blocks.clone()];
    blocks.iter().map(|block| block.size - block.requested.min(block.size)).sum()
}

/// The segment and the block of an allocation.
fn find(state: &State, allocation: u32) -> Option<(usize, usize)> {
    let block = state.blocks.iter().position(|block| block.allocation == Some(allocation))?;
    let segment = state.segments.partition_point(|one| one.blocks.end <= block);
    Some((segment, block))
}

/// The parts of blocks in some bytes of a segment.
fn parts(state: &State, segment: &SegmentAt, bytes: Range<u64>) -> Vec<Part> {
    let blocks = &state.blocks[segment.blocks.clone()];
    let start = |block: &BlockAt| block.address - segment.address;
    let first = blocks.partition_point(|block| start(block) + block.size <= bytes.start);
    let mut parts = Vec::new();
    for (place, block) in (segment.blocks.start..).zip(blocks).skip(first) {
        let from = start(block);
        if from >= bytes.end {
            break;
        }
        let end = from + block.size;
        let slack = match block.state {
            BlockState::Free => end,
            _ => from + block.requested.min(block.size),
        };
        parts.push(Part { bytes: from..slack, block: place, is_slack: false });
        parts.push(Part { bytes: slack..end, block: place, is_slack: true });
    }
    parts
}
