//! Paints columns: what is the same as in the column before is copied, the rest is walked through.

use crate::raster::colors::mix;
use crate::raster::parts::Part;
use crate::raster::transpose::{self, TILE};
use crate::raster::{BACKGROUND, Scene, Style, Viewport};
use crate::timeline::{LiveStack, NO_LEAF, NO_MOMENT, Rows, Timeline};

/// Runs of fewer rows have no edge.
const EDGE_ROWS: usize = 4;

/// Stripes are this many pixels apart, and this many wide.
const STRIPES: (i64, i64) = (8, 3);

/// Paints the columns of a part.
pub(super) fn paint(part: Part<'_>, scene: &Scene<'_>, rows: &Rows, view: &Viewport) {
    let Scene { timeline, clock, style, .. } = *scene;
    let height = rows.height();
    view.moments(part.columns.clone(), timeline, clock, part.moments);
    let stride = transpose::stride(height);
    // The first column of the tile is the last one before it.
    let mut tile = vec![style.background; (TILE + 1) * stride];
    let mut painter = Painter::new(timeline, rows, style);
    let mut ids = part.ids;
    let mut before: &[u32] = &[];
    let mut out = part.rows;
    for first in (0..part.columns.len()).step_by(TILE) {
        let count = TILE.min(part.columns.len() - first);
        for place in 0..count {
            let column = first + place;
            let Some(into) = ids.split_off_mut(..height) else { return };
            let (left, colors) = tile.split_at_mut((place + 1) * stride);
            let left = &left[place * stride..][..height];
            let number = view.origin().wrapping_add((part.columns.start + column) as i64);
            painter.column(
                part.moments[column],
                number,
                (before, left),
                into,
                &mut colors[..height],
            );
            part.filled[column] = painter.top as u32;
            part.selected[column] = painter.selected(view);
            before = into;
        }
        let pieces = out.iter_mut().map(|row| &mut row[first..first + count]);
        transpose::transpose(&tile[stride..], stride, height, pieces);
        let (first, rest) = tile.split_at_mut(stride);
        first.copy_from_slice(&rest[(count - 1) * stride..][..stride]);
    }
}

/// Goes from column to column.
struct Painter<'a> {
    timeline: &'a Timeline,
    rows: &'a Rows,
    style: &'a Style,
    stack: LiveStack<'a>,
    moment: u32,
    /// The first row above the stack in the column painted last.
    top: usize,
    /// Whose frees are pending in this column.
    pending: Vec<u32>,
}

impl<'a> Painter<'a> {
    fn new(timeline: &'a Timeline, rows: &'a Rows, style: &'a Style) -> Self {
        let stack = LiveStack::new(timeline);
        Self { timeline, rows, style, stack, moment: NO_MOMENT, top: 0, pending: Vec::new() }
    }

    /// Paints a column, from the bottom up. `before` has the ids and colours of the one before.
    fn column(
        &mut self,
        moment: u32,
        number: i64,
        before: (&[u32], &[u32]),
        ids: &mut [u32],
        colors: &mut [u32],
    ) {
        if moment == NO_MOMENT {
            (self.moment, self.top) = (NO_MOMENT, 0);
            ids.fill(BACKGROUND);
            colors.fill(self.style.background);
            return;
        }
        // Stripes are not where they were, and what is no longer pending has none.
        let can_copy = self.moment != NO_MOMENT && self.pending.is_empty();
        let lowest = if moment == self.moment { NO_LEAF } else { self.stack.advance(moment) };
        self.moment = moment;
        self.pending.clear();
        self.timeline.each_pending(moment, |which| self.pending.push(which));
        let from = if can_copy { lowest } else { 0 };
        let same = match from {
            NO_LEAF => self.rows.height(),
            leaf => self.rows.below(self.stack.below(leaf)),
        };
        if same > 0 {
            ids[..same].copy_from_slice(&before.0[..same]);
            colors[..same].copy_from_slice(&before.1[..same]);
        }
        if same < self.rows.height() {
            self.top = self.walk(from, ids, colors);
            ids[self.top..].fill(BACKGROUND);
            colors[self.top..].fill(self.style.background);
        }
        if !self.pending.is_empty() {
            self.pending.sort_unstable();
            self.hatch(number, ids, colors);
        }
    }

    /// Paints from a leaf up. Returns the first row above the stack.
    fn walk(&self, from: usize, ids: &mut [u32], colors: &mut [u32]) -> usize {
        let height = ids.len();
        let style = self.style;
        self.stack.walk(from, self.rows, |rows, which| {
            let color = style.colors[which as usize];
            let end = rows.end;
            let has_edge = rows.len() >= EDGE_ROWS && end < height;
            // Most runs are of one or two rows: a loop is quicker than a call.
            for row in rows {
                ids[row] = which;
                colors[row] = color;
            }
            if has_edge {
                colors[end - 1] = style.edge(color);
            }
        })
    }

    /// Puts stripes on what is pending.
    fn hatch(&self, number: i64, ids: &[u32], colors: &mut [u32]) {
        let (mut last, mut is_pending) = (BACKGROUND, false);
        for (row, (&id, color)) in ids.iter().zip(colors).enumerate() {
            if id != last {
                (last, is_pending) = (id, self.pending.binary_search(&id).is_ok());
            }
            if is_pending && number.wrapping_add(row as i64).rem_euclid(STRIPES.0) < STRIPES.1 {
                *color = mix(*color, self.style.background, 3);
            }
        }
    }

    /// The rows of the selected allocation in the column painted last.
    fn selected(&self, view: &Viewport) -> (u32, u32) {
        let Some(which) = self.style.selected.filter(|_| self.moment != NO_MOMENT) else {
            return (0, 0);
        };
        let Some(bytes) = self.stack.extent(which as usize) else { return (0, 0) };
        let (first, end) = (self.rows.below(bytes.start), self.rows.below(bytes.end));
        let is_inside = view.bytes.contains(&bytes.start);
        // What is too thin to be seen is shown where it is.
        let thin = usize::from(first == end && is_inside);
        let first = first.min(self.rows.height() - thin);
        (first as u32, (first + thin).max(end) as u32)
    }
}
