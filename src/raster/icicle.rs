//! Pictures of a call tree: a row per depth, a box per node, as wide as its weight.
//!
//! The node in focus takes the whole width, below the nodes above it. A node's own part comes first,
//! then its children in the file's order. A pixel shows the node that owns the weight at its centre,
//! so boxes do not move when others are too narrow to be seen. A box has the colour that the timeline
//! gives to the largest allocation of its heaviest stack.
//!
//! # Invariants
//!
//! A box is inside of the one above it, and its width is right to the pixel. Tests compare with the
//! definition, pixel by pixel.
//!
//! # Cost
//!
//! Boxes in view and above it, not nodes: each about 100 ns.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::colors::mix;
use super::memory_map::outline;
use super::{BACKGROUND, Canvas, Picture, Style, Viewport};
use crate::analysis::paths::ROOT;
use crate::analysis::tree::Tree;

/// Positions are computed in 64 bits, of which a width takes up to 17.
const POSITION_BITS: u32 = 46;

/// A node in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeBox {
    /// The node.
    pub node: u32,
    /// Its pixels.
    pub columns: Range<usize>,
}

/// A line of text, as the share of each pixel that it covers.
#[derive(Debug)]
pub struct Lettering<'a> {
    /// From the left of the picture.
    pub x: usize,
    /// From its top, which may be above it.
    pub y: i64,
    /// In pixels.
    pub width: usize,
    /// Row by row.
    pub coverage: &'a [u8],
}

/// What of a tree is drawn.
#[derive(Debug)]
pub struct Icicle {
    tree: Arc<Tree>,
    /// The nodes above the one in focus, and itself.
    above: Vec<u32>,
    width: usize,
    row: usize,
    rows: usize,
    /// The weights are divided by two to the power of this.
    shift: u32,
    /// The weight of the focus, divided so.
    total: u64,
    /// The boxes down to a row that were asked for last: they are drawn after they are labelled.
    last: Mutex<Option<(usize, Arc<Vec<Placed>>)>>,
}

/// A box, and its row.
type Placed = (NodeBox, usize);

/// How an icicle is drawn.
#[derive(Debug)]
pub struct Drawn<'a> {
    /// The colours.
    pub style: &'a Style,
    /// The node with an outline.
    pub selected: Option<u32>,
    /// The nodes that are not dimmed, in ascending order; None: all.
    pub found: Option<&'a [u32]>,
    /// What is written on it.
    pub letterings: Vec<Lettering<'a>>,
}

impl Icicle {
    /// Lays out a tree from a node on.
    #[must_use]
    pub fn new(tree: Arc<Tree>, focus: u32, width: usize, row: usize) -> Self {
        let paths = &tree.paths;
        let above = paths.above(focus);
        let below = focus..paths.ends[focus as usize];
        let deepest = below.filter(|&node| tree.is_there(node)).map(|n| paths.depths[n as usize]);
        let rows = deepest.max().map_or(above.len(), |depth| depth as usize + 1);
        let weight = tree.share(focus).weight;
        let shift = (u128::BITS - weight.leading_zeros()).saturating_sub(POSITION_BITS);
        let (width, row, total) = (width.max(1), row.max(1), (weight >> shift) as u64);
        Self { tree, above, width, row, rows, shift, total, last: Mutex::default() }
    }

    /// The height of all rows.
    #[must_use]
    pub fn height(&self) -> usize {
        self.rows * self.row
    }

    fn focus(&self) -> u32 {
        self.above.last().copied().unwrap_or(ROOT)
    }

    /// A place in the tree, from the beginning of the focus.
    fn position(&self, place: u128) -> u64 {
        (place.saturating_sub(self.tree.start(self.focus())) >> self.shift) as u64
    }

    /// What a pixel's centre is at.
    fn center(&self, x: usize) -> u64 {
        self.total * (2 * x as u64 + 1) / (2 * self.width as u64)
    }

    /// The first pixel whose centre is at a position or behind it.
    fn column(&self, position: u64) -> usize {
        if self.total == 0 {
            return self.width;
        }
        let double = position * 2 * self.width as u64;
        (double.saturating_sub(self.total).div_ceil(2 * self.total) as usize).min(self.width)
    }

    /// The boxes down to a row, row by row, each from the left.
    fn down_to(&self, lowest: usize) -> Arc<Vec<Placed>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, boxes)) = last.as_ref().filter(|(row, _)| *row == lowest) {
            return Arc::clone(boxes);
        }
        let whole = |(row, &node)| (NodeBox { node, columns: 0..self.width }, row);
        let mut boxes: Vec<Placed> =
            self.above.iter().enumerate().take(lowest + 1).map(whole).collect();
        let mut before = boxes.len().saturating_sub(1);
        for row in self.above.len()..=lowest {
            let above = before..boxes.len();
            before = above.end;
            for place in above {
                let one = boxes[place].0.clone();
                self.inside(&one, row, &mut boxes);
            }
        }
        let boxes = Arc::new(boxes);
        *last = Some((lowest, Arc::clone(&boxes)));
        boxes
    }

    /// Adds the boxes of the children inside of one.
    fn inside(&self, one: &NodeBox, row: usize, boxes: &mut Vec<Placed>) {
        let children = self.tree.paths.children(one.node);
        if self.total == 0 || children.is_empty() {
            return;
        }
        let mut x = one.columns.start;
        while x < one.columns.end {
            let center = self.center(x);
            let start = |node: u32| self.position(self.tree.start(node));
            let behind = children.partition_point(|&child| start(child) <= center);
            // Left of the first child is the node's own part.
            let Some(&child) = behind.checked_sub(1).and_then(|place| children.get(place)) else {
                let next = children.first().map_or(self.width, |&first| self.column(start(first)));
                x = next.max(x + 1);
                continue;
            };
            let mut end = one.columns.end;
            // Most boxes of a large tree have a pixel.
            if end > x + 1 {
                let share = self.tree.share(child).weight;
                let edge = self.column(self.position(self.tree.start(child) + share));
                end = edge.clamp(x + 1, end);
            }
            boxes.push((NodeBox { node: child, columns: x..end }, row));
            x = end;
        }
    }

    /// The boxes of at least some pixels between two heights, each with its upper edge.
    #[must_use]
    pub fn boxes(&self, least: usize, heights: Range<usize>) -> Vec<(NodeBox, usize)> {
        let Some(lowest) = heights.end.div_ceil(self.row).min(self.rows).checked_sub(1) else {
            return Vec::new();
        };
        let is_in = |&&(ref one, row): &&Placed| {
            (row + 1) * self.row > heights.start && one.columns.len() >= least
        };
        let place = |(one, row): &Placed| (one.clone(), row * self.row);
        self.down_to(lowest).iter().filter(is_in).map(place).collect()
    }

    /// The node at a pixel of the whole.
    #[must_use]
    pub fn at(&self, x: usize, y: usize) -> Option<u32> {
        let row = y / self.row;
        if row >= self.rows || x >= self.width {
            return None;
        }
        let lowest = self.last.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|l| l.0);
        // What is on the screen is known already.
        let boxes = self.down_to(lowest.filter(|&lowest| lowest >= row).unwrap_or(row));
        let behind = boxes.partition_point(|(one, its)| (*its, one.columns.start) <= (row, x));
        let (one, its) = boxes.get(behind.checked_sub(1)?)?;
        (*its == row && one.columns.contains(&x)).then_some(one.node)
    }

    /// Draws what is below a height onto a canvas, whatever is on it.
    #[must_use]
    pub fn draw(
        &self,
        drawn: &Drawn<'_>,
        top: usize,
        height: usize,
        mut canvas: Canvas,
    ) -> Picture {
        let (width, style) = (self.width, drawn.style);
        canvas.resize(width, height);
        canvas.ids[canvas.first * height..][..width * height].fill(BACKGROUND);
        canvas.pixels.fill(style.background.to_le_bytes());
        let mut outlined = None;
        for (one, at) in self.boxes(1, top..top + height) {
            self.fill(drawn, &one, at as i64 - top as i64, height, &mut canvas);
            if drawn.selected == Some(one.node) {
                outlined = Some((one.columns, at as i64 - top as i64));
            }
        }
        for lettering in &drawn.letterings {
            write(lettering, width, height, &mut canvas);
        }
        if let Some((columns, above)) = outlined {
            let tall = self.row as i64 - 1;
            outline(style, &columns, above..above + tall, (width, height), &mut canvas);
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

    fn fill(
        &self,
        drawn: &Drawn<'_>,
        one: &NodeBox,
        above: i64,
        height: usize,
        canvas: &mut Canvas,
    ) {
        let (style, width) = (drawn.style, self.width);
        let largest = self.tree.share(one.node).largest;
        let own = largest.and_then(|which| style.colors.get(which as usize)).copied();
        let is_found = drawn.found.is_none_or(|found| found.binary_search(&one.node).is_ok());
        let is_above = one.node != self.focus() && self.above.contains(&one.node);
        let color = match own.unwrap_or(style.free) {
            color if is_found && !is_above => color,
            color => mix(color, style.background, 3),
        };
        // A line between neighbours, if there is room for it.
        let line = usize::from(one.columns.len() >= 3);
        let filled = one.columns.start..one.columns.end - line;
        for y in above.max(0)..(above + self.row as i64 - 1).min(height as i64) {
            let y = y as usize;
            canvas.pixels[y * width..][filled.clone()].fill(color.to_le_bytes());
        }
        let (top, bottom) = (above.max(0), (above + self.row as i64).min(height as i64));
        let ids = height - bottom as usize..height - top as usize;
        for x in one.columns.clone() {
            canvas.ids[(canvas.first + x) * height..][ids.clone()].fill(one.node);
        }
    }
}

/// Dark on light boxes, light on dark ones.
const INKS: [u32; 2] = [0xff28_231f, 0xffff_ffff];

/// Puts a text onto a picture.
fn write(text: &Lettering<'_>, width: usize, height: usize, canvas: &mut Canvas) {
    if text.width == 0 {
        return;
    }
    let lines = text.coverage.chunks_exact(text.width);
    let middle = text.y + lines.len() as i64 / 2;
    let below = canvas.pixels.get((middle.max(0) as usize).min(height - 1) * width + text.x);
    let Some(&ground) = below else { return };
    let ink = INKS[usize::from(!is_light(ground))].to_le_bytes();
    for (line, y) in lines.zip(text.y..) {
        let Some(y) = usize::try_from(y).ok().filter(|&y| y < height) else { continue };
        let room = width.saturating_sub(text.x).min(text.width);
        let pixels = canvas.pixels[y * width..][..width].iter_mut().skip(text.x).take(room);
        for (pixel, &covered) in pixels.zip(line) {
            let covered = u16::from(covered);
            for (channel, ink) in pixel.iter_mut().zip(ink) {
                let mixed = u16::from(ink) * covered + u16::from(*channel) * (255 - covered);
                *channel = (mixed / 255) as u8;
            }
        }
    }
}

/// Whether dark text is easier to read on a colour than light text.
fn is_light([red, green, blue, _]: [u8; 4]) -> bool {
    let linear = |channel: u8| (f64::from(channel) / 255.0).powf(2.2);
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue) > 0.18
}
