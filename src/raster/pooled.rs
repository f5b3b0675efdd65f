//! Pictures drawn one after the other, as a window does.
//!
//! New memory for a picture takes the system as long as drawing it, so canvases go back to a pool and
//! the next picture, of whatever timeline, takes one. A picture of the same timeline and clock also
//! takes over the columns of the one before.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Canvas, Picture, Scene, Style, Viewport};
use crate::error::Result;
use crate::lifetimes::Lifetimes;
use crate::timeline::{Clock, Timeline};

static POOL: Mutex<Vec<Canvas>> = Mutex::new(Vec::new());
const MAX_CANVASES: usize = 2;
/// Larger ones are for files, not for screens.
const MAX_PIXELS: usize = 1 << 23;
const MAX_THREADS: usize = 64;

fn pool() -> MutexGuard<'static, Vec<Canvas>> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep(canvas: Canvas) {
    let mut pool = pool();
    if pool.len() < MAX_CANVASES && canvas.pixels.len() <= MAX_PIXELS {
        pool.push(canvas);
    }
}

/// Puts memory for a picture of this size into the pool, in place of what is there.
pub fn prepare(width: usize, height: usize) {
    pool().clear();
    keep(Canvas::new(width, height));
}

/// A picture that returns its memory to the pool.
#[derive(Debug)]
pub struct PooledPicture {
    /// None once its memory was taken.
    picture: Option<Picture>,
    /// None if it is not of a timeline.
    timeline: Option<Arc<Timeline>>,
    clock: Option<Arc<Clock>>,
}

impl PooledPicture {
    /// Draws a part of a timeline, with time as its x-axis if there is a clock. `previous` is a
    /// picture that is no longer needed. All cores work on it, up to 8, unless `threads` says otherwise.
    #[must_use]
    pub fn draw(
        timeline: &Arc<Timeline>,
        clock: Option<Arc<Clock>>,
        style: &Style,
        view: &Viewport,
        threads: Option<usize>,
        previous: Option<Self>,
    ) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from).min(8);
        let threads = threads.unwrap_or_else(cores).clamp(1, MAX_THREADS);
        let scene = Scene { timeline, clock: clock.as_deref(), style, threads };
        let is_same = |picture: &Self| {
            picture.timeline.as_ref().is_some_and(|one| Arc::ptr_eq(one, timeline))
                && picture.clock.as_ref().map(Arc::as_ptr) == clock.as_ref().map(Arc::as_ptr)
        };
        let picture = match previous.filter(is_same).and_then(|mut same| same.picture.take()) {
            Some(picture) => scene.pan(picture, view),
            None => {
                let canvas = pool().pop().unwrap_or_default();
                scene.draw(view, canvas)
            }
        };
        Self { picture: Some(picture), timeline: Some(Arc::clone(timeline)), clock }
    }

    /// Draws something else onto a canvas of the pool. `previous` is no longer needed.
    #[must_use]
    pub fn of(draw: impl FnOnce(Canvas) -> Picture, previous: Option<Self>) -> Self {
        drop(previous);
        let canvas = pool().pop().unwrap_or_default();
        Self { picture: Some(draw(canvas)), timeline: None, clock: None }
    }

    /// The picture.
    #[must_use]
    pub fn picture(&self) -> &Picture {
        // Only `draw` and `drop` take it, and both own this.
        self.picture.as_ref().unwrap_or_else(|| unreachable!())
    }

    /// Whether it shows a device's allocations.
    #[must_use]
    pub fn is_of(&self, lives: &Lifetimes) -> bool {
        self.timeline.as_ref().is_some_and(|one| std::ptr::eq(one.lives(), lives))
    }

    /// The event that each column shows, the one with the largest total in it; -1 if there is none.
    #[must_use]
    pub fn events(&self) -> impl ExactSizeIterator<Item = i64> {
        let event = |&moment| self.timeline.as_ref().map_or(-1, |one| one.event(moment));
        self.picture().moments.iter().map(event)
    }
}

impl Drop for PooledPicture {
    fn drop(&mut self) {
        if let Some(picture) = self.picture.take() {
            keep(picture.canvas);
        }
    }
}

/// The style of the last picture, for the next one that looks the same: pans need not make it again.
#[derive(Debug)]
pub struct LastStyle<L>(Mutex<Option<(L, Style)>>);

impl<L> Default for LastStyle<L> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<L: PartialEq> LastStyle<L> {
    /// The style for a look, made only if it is not the last one's.
    pub fn get(&self, look: L, make: impl FnOnce(&L) -> Result<Style>) -> Result<Style> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, style)) = last.as_ref().filter(|(same, _)| *same == look) {
            return Ok(style.clone());
        }
        let style = make(&look)?;
        *last = Some((look, style.clone()));
        Ok(style)
    }
}
