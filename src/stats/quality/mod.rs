//! What a tensor would lose if it were stored in fewer bits or with fewer values, and its spectral norm.
//!
//! # What is exact
//!
//! Round trips and pruning are computed in 64-bit floats, within about 1e-12 of the exact value; thresholds as
//! `pruning` describes, the spectral norm as `spectrum` does.
//!
//! # Invariants
//!
//! As with the statistics, the result is the same, bit by bit, on any number of threads.
//!
//! # Cost
//!
//! Two passes over the file, 2 s of processor time for 1 GB of 32-bit floats, then those of `spectrum`.
//! Memory: a few MiB a thread and 32 bytes a channel, for at most 2²² channels.

mod lanczos;
mod matrix;
mod pruning;
mod rounding;
mod spectrum;
mod survey;
#[cfg(test)]
mod tests;
mod walk;

pub use pruning::PruningPoint;
pub use spectrum::Spectrum;

use super::plan::Grain;
use super::values::{Form, Values};
use super::{Elements, broken};
use crate::error::Result;
use crate::progress::Progress;
use pruning::Thresholds;
use rounding::{FORMATS, Losses};
use survey::Channel;
use walk::{Along, Walk};

/// With more channels than this, a scale for each makes no sense.
const MAX_CHANNELS: u64 = 1 << 22;

/// Errors that are this much smaller than the numbers are those of our own rounding.
const NOTHING: f64 = 1e-24;

/// A channel is small if its norm is less than this part of the median, …
const SMALL: f64 = 0.1;

/// … or than this part of the root mean square of all norms, however many are: together, these have at most
/// a ten-thousandth of the tensor's squared norm.
const DEAD: f64 = 0.01;

/// What is left of a tensor after it was stored in a narrower format.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundTrip {
    /// The format.
    pub format: &'static str,
    /// The signal by the noise in decibels, with one scale; infinite if nothing is lost.
    pub sqnr_db: Option<f64>,
    /// The same with one scale for each channel.
    pub channel_sqnr_db: Option<f64>,
}

/// The norms of the slices along the first dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Channels {
    /// How many there are.
    pub count: u64,
    /// The median of their norms.
    pub median_norm: f64,
    /// How many norms are less than a tenth of that, or than a hundredth of their root mean square.
    pub small: u64,
}

/// What a tensor would lose. What is not finite is left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Quality {
    /// How many values there are.
    pub count: u64,
    /// How many are not a number.
    pub nan: u64,
    /// How many are infinite.
    pub inf: u64,
    /// The largest finite magnitude.
    pub max_abs: Option<f64>,
    /// What narrower formats would cost.
    pub round_trips: Vec<RoundTrip>,
    /// What setting the smallest values to 0 would cost.
    pub pruning: Vec<PruningPoint>,
    /// The slices along the first dimension, or why they are not there.
    pub channels: std::result::Result<Channels, String>,
    /// The largest singular value, or why it is not there.
    pub spectrum: std::result::Result<Spectrum, String>,
}

/// Finds what a tensor would lose; with its spectral norm if asked.
pub fn quality(
    elements: &Elements<'_>,
    with_spectrum: bool,
    progress: &Progress<'_>,
) -> Result<Quality> {
    quality_by(elements, with_spectrum, progress, Grain::usual())
}

fn quality_by(
    elements: &Elements<'_>,
    with_spectrum: bool,
    progress: &Progress<'_>,
    grain: Grain,
) -> Result<Quality> {
    let layout = elements.layout;
    let nonsense = || broken("a tensor's shape and strides make no sense", elements.start);
    layout.span().ok_or_else(nonsense)?;
    let count = layout.elements().ok_or_else(nonsense)?;
    if count == 0 {
        return Ok(nothing());
    }
    let values = Values::of(elements.dtype);
    let walk = Walk::new(elements, &values, grain)?;
    let (along, why_no_channels) = channels_of(elements, &walk);
    let rest = if with_spectrum { 0.1 } else { 0.5 };
    let survey = survey::survey(&walk, along, &progress.part(0.0, rest))?;
    let thresholds = Thresholds::new(&survey, walk.copies);
    let second = progress.part(rest, 2.0 * rest);
    let (losses, cells) = rounding::losses(&walk, along, &survey, &thresholds, &second)?;
    let unit = rounding::Unit::new(survey.max);
    let square = |x: f64| unit.of(x) * unit.of(x);
    let is_wide = !matches!(values.form, Form::Byte | Form::TwoInByte | Form::TwoBytes | Form::F32)
        || elements.quantization.is_some();
    let pruning = thresholds.points(&survey, &losses.classes, &cells, is_wide, square);
    drop(cells);
    let spectrum = if with_spectrum {
        let third = progress.part(2.0 * rest, 1.0);
        spectrum::spectrum(elements, &values, survey.max, losses.squares, grain, &third)?
    } else {
        Err("it was not requested".to_owned())
    };
    let channels = match why_no_channels {
        Some(why) => Err(why),
        None => {
            let is_expanded = survey.channels.len() as u64 != layout.shape[0];
            let copies = if is_expanded { walk.copies / layout.shape[0] } else { walk.copies };
            channels(&survey.channels, layout.shape[0], copies)
        }
    };
    Ok(Quality {
        count: count.saturating_mul(values.values_of_element()),
        nan: losses.nan.saturating_mul(walk.copies),
        inf: losses.inf.saturating_mul(walk.copies),
        max_abs: (survey.finite > 0).then_some(survey.max),
        round_trips: round_trips(&losses, channels.is_ok(), survey.channels.len() > 1),
        pruning,
        channels,
        spectrum,
    })
}

/// What is known of a tensor without elements.
fn nothing() -> Quality {
    let why = || "it has no elements".to_owned();
    let format = |format: &rounding::Format| RoundTrip {
        format: format.name,
        sqnr_db: None,
        channel_sqnr_db: None,
    };
    Quality {
        count: 0,
        nan: 0,
        inf: 0,
        max_abs: None,
        round_trips: FORMATS.iter().map(format).collect(),
        pruning: Vec::new(),
        channels: Err(why()),
        spectrum: Err(why()),
    }
}

/// Where the channels are among the numbers, or why there are none.
fn channels_of(elements: &Elements<'_>, walk: &Walk<'_>) -> (Along, Option<String>) {
    match elements.layout.shape.as_slice() {
        [] | [_] => (Along::NOWHERE, Some("it has fewer than two dimensions".to_owned())),
        [channels, ..] if *channels > MAX_CHANNELS => {
            let why = format!("it has {channels} channels, more than {MAX_CHANNELS}");
            (Along::NOWHERE, Some(why))
        }
        _ => (walk.first, None),
    }
}

fn round_trips(losses: &Losses, has_channels: bool, has_several: bool) -> Vec<RoundTrip> {
    let decibels = |errors: f64, largest: f64| {
        let noise = errors / (largest * largest) / losses.squares;
        let quiet = if noise < NOTHING { f64::INFINITY } else { -10.0 * noise.log10() };
        (losses.squares > 0.0).then_some(quiet)
    };
    let of = |(at, format): (usize, &rounding::Format)| {
        let sqnr_db = decibels(losses.of_tensor[at], format.largest);
        let of_channels = if has_several { losses.of_channels[at] } else { losses.of_tensor[at] };
        let channel_sqnr_db = decibels(of_channels, format.largest).filter(|_| has_channels);
        RoundTrip { format: format.name, sqnr_db, channel_sqnr_db }
    };
    FORMATS.iter().enumerate().map(of).collect()
}

/// The norms of channels, of which there are `count` (as many as are given, or copies of one), each of whose
/// elements is meant so many times.
fn channels(found: &[Channel], count: u64, copies: u64) -> std::result::Result<Channels, String> {
    let norm = |channel: &Channel| channel.squares.sqrt() * (copies as f64).sqrt();
    let mut norms: Vec<f64> = found.iter().map(norm).collect();
    norms.sort_unstable_by(f64::total_cmp);
    let middle = norms.len() / 2;
    let (low, high) = (norms[(norms.len() - 1) / 2], norms[middle]);
    let median_norm = low / 2.0 + high / 2.0;
    if !median_norm.is_finite() {
        return Err("the norms of its channels are too large for 64-bit floats".to_owned());
    }
    let largest = norms[norms.len() - 1];
    let squares: f64 = norms.iter().map(|norm| (norm / largest).powi(2)).sum();
    let root_mean_square = largest * (squares / norms.len() as f64).sqrt();
    // Not a number if all norms are 0 or one is infinite; `max` takes the other then.
    let limit = (SMALL * median_norm).max(DEAD * root_mean_square);
    let small = norms.partition_point(|&norm| norm < limit);
    Ok(Channels { count, median_norm, small: small as u64 })
}
