//! Pictures of a timeline: pixels, and the allocation in each.
//!
//! Every column shows one moment, the one with the largest total inside it, so that no peak is ever
//! hidden. A pixel shows the allocation that owns the byte at its centre. Where 32 neighbours in the stacking order
//! are together at most half a pixel tall, the heaviest of them is shown for all. So what is shown is
//! in that pixel, what takes more than half of a pixel is shown there, and the height of the whole is
//! exact.
//!
//! # Invariants
//!
//! A picture depends on the timeline, the view and the style alone: not on the number of threads, nor
//! on what was drawn before. Tests compare with the definition, pixel by pixel.
//!
//! # Cost
//!
//! Pixels, and leaves that change from one column to the next; not events
//! (docs/internals/benchmarks.md).

mod colors;
mod icicle;
mod legend;
mod marks;
mod memory_map;
mod outline;
mod paint;
mod pan;
mod parts;
mod pooled;
mod transpose;
mod viewport;

use std::ops::Range;
use std::sync::Mutex;

pub use colors::{ColorBy, Style, Theme, colors, dim};
pub use icicle::{Drawn, Icicle, Lettering, NodeBox};
pub use legend::{Group, groups, visible_extent};
pub use marks::{Area, Channels, Mark};
pub use memory_map::{MapRow, Measures, MemoryMap, Shown, SortBy};
pub use pooled::{LastStyle, PooledPicture, prepare};
pub use viewport::Viewport;

use crate::timeline::{Clock, NO_MOMENT, Rows, Timeline};

/// The id of the background.
pub const BACKGROUND: u32 = u32::MAX;

/// Red, green, blue, and 255.
pub type Pixel = [u8; 4];

/// A picture.
#[derive(Debug)]
pub struct Picture {
    /// What it shows.
    pub view: Viewport,
    /// The moment of each column, or [`NO_MOMENT`].
    pub moments: Vec<u32>,
    /// Its pixels, and the allocation in each.
    pub canvas: Canvas,
    /// How many rows of each column, from the bottom, are allocations; the others are background.
    filled: Vec<u32>,
    /// The rows of the selected allocation in each column.
    selected: Vec<(u32, u32)>,
    style: Style,
}

/// The memory of a picture: 20 MB, which the system would take longer to hand out than the drawing
/// takes. So it is used again.
#[derive(Debug, Default)]
pub struct Canvas {
    /// The allocation in each pixel, column by column, each from the bottom up. There is room for twice as
    /// many columns, so that most pans need not move them.
    ids: Vec<u32>,
    /// Where the first column is.
    first: usize,
    /// The pixels, row by row from the top, each from the left.
    pub pixels: Vec<Pixel>,
}

impl Canvas {
    /// A canvas for pictures of this size.
    #[must_use]
    pub fn new(width: usize, height: usize) -> Self {
        let mut canvas = Self::default();
        canvas.resize(width, height);
        canvas
    }

    fn resize(&mut self, width: usize, height: usize) {
        self.ids.resize(2 * width * height, BACKGROUND);
        self.first = width / 2;
        self.pixels.resize(width * height, [0; 4]);
    }
}

impl Picture {
    /// The allocation in each pixel, column by column from the left, each from the bottom up.
    #[must_use]
    pub fn ids(&self) -> &[u32] {
        let Viewport { width, height, .. } = self.view;
        &self.canvas.ids[self.canvas.first * height..][..width * height]
    }
}

/// What is drawn, and how.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The stack.
    pub timeline: &'a Timeline,
    /// If x is time.
    pub clock: Option<&'a Clock>,
    /// The colours.
    pub style: &'a Style,
    /// How many threads work on it.
    pub threads: usize,
}

impl Scene<'_> {
    /// Draws a picture onto a canvas, whatever is on it.
    #[must_use]
    pub fn draw(&self, view: &Viewport, mut canvas: Canvas) -> Picture {
        let (width, height) = (view.width, view.height);
        canvas.resize(width, height);
        let mut picture = Picture {
            view: view.clone(),
            moments: vec![NO_MOMENT; width],
            canvas,
            filled: vec![0; width],
            selected: vec![(0, 0); width],
            style: self.style.clone(),
        };
        self.fill(&mut picture, &(0..0));
        picture
    }

    /// Draws another part of the same timeline, on the same clock. Columns that are there already are
    /// only moved.
    #[must_use]
    pub fn pan(&self, mut picture: Picture, view: &Viewport) -> Picture {
        let Some(moved) = pan::moved(&picture, view, self.style, self.clock) else {
            return self.draw(view, picture.canvas);
        };
        pan::shift(&mut picture, &moved);
        picture.view = view.clone();
        self.fill(&mut picture, &moved.columns);
        picture
    }

    /// Draws all columns but some.
    fn fill(&self, picture: &mut Picture, kept: &Range<usize>) {
        let view = picture.view.clone();
        let rows = Rows::new(&view.bytes, view.height);
        let parts = parts::split(picture, kept, self.threads);
        share(parts, self.threads, |part| paint::paint(part, self, &rows, &view));
        if self.style.selected.is_some() {
            outline::outline(picture);
        }
    }
}

/// Works on parts of a picture, on several threads.
fn share<T: Send>(parts: Vec<T>, threads: usize, work: impl Fn(T) + Sync) {
    let helpers = threads.min(parts.len());
    let parts = Mutex::new(parts);
    let next = || parts.lock().ok().and_then(|mut parts| parts.pop());
    let work_on = || {
        while let Some(part) = next() {
            work(part);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..helpers {
            // Without another thread this one does it all.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work_on);
        }
        work_on();
    });
}
