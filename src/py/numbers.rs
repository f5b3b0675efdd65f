//! Numbers over tensors as Python sees them: statistics, differences, what a tensor would lose.

use pyo3::prelude::*;

use super::getters::{Tuple, record};
use crate::stats::{Channels, Difference, PruningPoint, Quality, RoundTrip, Spectrum, Stats};

record! {
    /// Statistics of a tensor.
    PyStats(Stats) as "Stats" |this| {
        count: u64,
        mean: Option<f64>,
        std: Option<f64>,
        min: Option<f64>,
        max: Option<f64>,
        zeros: u64,
        nan: u64,
        inf: u64,
        denormal: u64,
        l1: f64,
        l2: f64,
        skewness: Option<f64>,
        kurtosis: Option<f64>,
        entropy: Option<f64>,
        edges: Option<(f64, f64)>,
        histogram: Tuple<&[u64]> = Tuple(&this.0.histogram),
    }
}

record! {
    /// How two tensors differ.
    PyDifference(Difference) as "Difference" |this| {
        is_equal: bool,
        changed: u64,
        count: u64,
        to_nonfinite: u64,
        from_nonfinite: u64,
        max_abs: Option<f64>,
        mean_abs: Option<f64>,
        relative_l2: Option<f64>,
    }
}

record! {
    /// What a tensor would lose in fewer bits or with fewer values.
    PyQuality(Quality) as "Quality" |this| {
        count: u64,
        nan: u64,
        inf: u64,
        max_abs: Option<f64>,
        round_trips: Tuple<Vec<PyRoundTrip>> =
            Tuple(this.0.round_trips.iter().copied().map(PyRoundTrip).collect()),
        pruning: Tuple<Vec<PyPruningPoint>> =
            Tuple(this.0.pruning.iter().copied().map(PyPruningPoint).collect()),
        channels: Option<PyChannels> = this.0.channels.as_ref().ok().copied().map(PyChannels),
        channels_unavailable: Option<&str> = this.0.channels.as_ref().err().map(String::as_str),
        spectrum: Option<PySpectrum> = this.0.spectrum.as_ref().ok().copied().map(PySpectrum),
        spectrum_unavailable: Option<&str> = this.0.spectrum.as_ref().err().map(String::as_str),
    }
}

record! {
    /// What is left of a tensor in a narrower format.
    PyRoundTrip(RoundTrip) as "RoundTrip" |this| {
        format: &'static str,
        sqnr_db: Option<f64>,
        channel_sqnr_db: Option<f64>,
    }
}

record! {
    /// What setting a share of the values to 0 would cost.
    PyPruningPoint(PruningPoint) as "PruningPoint" |this| { share: f64, threshold: f64, lost: f64 }
}

record! {
    /// The norms of the slices along the first dimension.
    PyChannels(Channels) as "Channels" |this| { count: u64, median_norm: f64, small: u64 }
}

record! {
    /// The largest singular value of a tensor as a matrix.
    PySpectrum(Spectrum) as "Spectrum" |this| {
        shape: (u64, u64),
        norm: f64,
        upper_bound: f64,
        iterations: usize,
        change: f64,
        stable_rank: Option<f64>,
        captured: Option<f64>,
    }
}
