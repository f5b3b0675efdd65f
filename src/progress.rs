//! Progress reports and cancellation of long work.

use crate::error::{Error, Result};

/// Called with (done, total), in bytes or rows; returns whether to go on.
pub type Report<'a> = &'a dyn Fn(u64, u64) -> bool;

/// A share of the whole that one stage of the work reports into.
///
/// Several stages (reading, storing, packing) add up to one bar: each has a range of it.
pub struct Progress<'a> {
    report: Option<Report<'a>>,
    from: f64,
    to: f64,
}

/// The bar's length: fine enough for a smooth bar, coarse enough to be called seldom.
const STEPS: u64 = 1000;

impl<'a> Progress<'a> {
    /// Reports to `report` over the whole bar.
    #[must_use]
    pub fn new(report: Report<'a>) -> Self {
        Self { report: Some(report), from: 0.0, to: 1.0 }
    }

    /// Reports nothing and is never cancelled.
    #[must_use]
    pub fn none() -> Self {
        Self { report: None, from: 0.0, to: 1.0 }
    }

    /// The part of this one's range between two fractions of it.
    #[must_use]
    pub fn part(&self, from: f64, to: f64) -> Progress<'a> {
        let width = self.to - self.from;
        Progress { report: self.report, from: self.from + width * from, to: self.from + width * to }
    }

    /// Reports how far this stage is; fails if the work should stop.
    pub fn at(&self, done: u64, total: u64) -> Result<()> {
        let Some(report) = self.report else { return Ok(()) };
        let fraction = if total == 0 { 1.0 } else { done.min(total) as f64 / total as f64 };
        let step = ((self.from + (self.to - self.from) * fraction) * STEPS as f64) as u64;
        if report(step, STEPS) { Ok(()) } else { Err(Error::Cancelled) }
    }
}
