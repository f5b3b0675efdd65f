//! What part of the world a picture shows, and at which moments.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::timeline::{Clock, Timeline};

/// Pixels in all that a picture may have, which take 0.8 GB, and in each direction.
const MAX_PIXELS: usize = 1 << 26;
const LONGEST: usize = 1 << 16;

/// A rectangle of the world, and how many pixels it gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Viewport {
    /// The first and the last x: events, or microseconds on a clock.
    pub from: f64,
    /// See `from`.
    pub to: f64,
    /// The bytes from the lowest row up to the highest.
    pub bytes: Range<u64>,
    /// In pixels.
    pub width: usize,
    /// In pixels.
    pub height: usize,
}

impl Viewport {
    /// Checks that there is something to see.
    pub fn new(x: (f64, f64), bytes: Range<u64>, size: (usize, usize)) -> Result<Self> {
        let (from, to) = x;
        let (width, height) = size;
        let is_possible = |pixels: usize| (1..=LONGEST).contains(&pixels);
        if !is_possible(width) || !is_possible(height) || width * height > MAX_PIXELS {
            let reason = format!(
                "a picture has from 1 to {LONGEST} pixels in each direction and {MAX_PIXELS} in all, \
                 not {width} × {height}"
            );
            return Err(Error::argument(reason));
        }
        if !(from.is_finite() && to.is_finite() && from < to) {
            let reason = format!("a picture needs a range from less to more, not {from} to {to}");
            return Err(Error::argument(reason));
        }
        // So that a column's edges are not lost in rounding.
        if from.abs().max(to.abs()) > 9e15 || (to - from) / (width as f64) < 1e-6 {
            return Err(Error::argument(format!(
                "{from} to {to} is too far or too narrow to draw; choose another range"
            )));
        }
        if bytes.is_empty() {
            let Range { start, end } = bytes;
            let reason = format!("a picture needs bytes from less to more, not {start} to {end}");
            return Err(Error::argument(reason));
        }
        Ok(Self { from, to, bytes, width, height })
    }

    /// Where a column begins.
    fn x(&self, column: usize) -> f64 {
        self.from + column as f64 * (self.to - self.from) / self.width as f64
    }

    /// How many columns away from x = 0 the first one is, rounded.
    pub(super) fn origin(&self) -> i64 {
        (self.from * self.width as f64 / (self.to - self.from)).round() as i64
    }

    /// What decides which events a column shows: its edges in whole events or microseconds.
    pub(super) fn edges(&self, column: usize, clock: Option<&Clock>) -> [i64; 3] {
        let (from, to) = (self.x(column), self.x(column + 1));
        let to = if clock.is_some() { to.ceil() } else { to.floor().max(from.floor() + 1.0) };
        [from.floor() as i64, from.ceil() as i64, to as i64]
    }

    /// The events that a column shows.
    fn events(&self, column: usize, clock: Option<&Clock>, count: usize) -> Range<usize> {
        let [from, from_ceiled, to] = self.edges(column, clock);
        match clock {
            Some(clock) if to <= 0 || i128::from(from_ceiled) > i128::from(clock.length_us()) => {
                0..0
            }
            Some(clock) => clock.events(from, to),
            None => from.max(0) as usize..count.min(to.max(0) as usize),
        }
    }

    /// The moment that each of some columns shows: the one with the largest total inside it.
    pub(super) fn moments(
        &self,
        columns: Range<usize>,
        timeline: &Timeline,
        clock: Option<&Clock>,
        into: &mut [u32],
    ) {
        let count = timeline.totals().len();
        for (moment, column) in into.iter_mut().zip(columns) {
            *moment = timeline.highest(self.events(column, clock, count));
        }
    }

    /// The lowest and highest total in each column; 0 where there is none.
    #[must_use]
    pub fn overview(&self, timeline: &Timeline, clock: Option<&Clock>) -> Vec<(u64, u64)> {
        let count = timeline.totals().len();
        let one = |column| match self.events(column, clock, count) {
            events if events.is_empty() => (0, 0),
            events => {
                let extremes = timeline.extremes(events);
                (extremes.low, extremes.high)
            }
        };
        (0..self.width).map(one).collect()
    }
}
