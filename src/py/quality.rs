//! What a tensor would lose, as Python sees it.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::stats::{Channels, PruningPoint, Quality, RoundTrip, Spectrum};

/// What a tensor would lose in fewer bits or with fewer values.
#[pyclass(frozen, name = "Quality", module = "snapviewer")]
pub(super) struct PyQuality(pub Quality);

#[pymethods]
impl PyQuality {
    #[getter]
    fn count(&self) -> u64 {
        self.0.count
    }

    #[getter]
    fn nan(&self) -> u64 {
        self.0.nan
    }

    #[getter]
    fn inf(&self) -> u64 {
        self.0.inf
    }

    #[getter]
    fn max_abs(&self) -> Option<f64> {
        self.0.max_abs
    }

    #[getter]
    fn round_trips<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.round_trips.iter().copied().map(PyRoundTrip))
    }

    #[getter]
    fn pruning<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.pruning.iter().copied().map(PyPruningPoint))
    }

    #[getter]
    fn channels(&self) -> Option<PyChannels> {
        self.0.channels.as_ref().ok().copied().map(PyChannels)
    }

    #[getter]
    fn channels_unavailable(&self) -> Option<&str> {
        self.0.channels.as_ref().err().map(String::as_str)
    }

    #[getter]
    fn spectrum(&self) -> Option<PySpectrum> {
        self.0.spectrum.as_ref().ok().cloned().map(PySpectrum)
    }

    #[getter]
    fn spectrum_unavailable(&self) -> Option<&str> {
        self.0.spectrum.as_ref().err().map(String::as_str)
    }
}

/// What is left of a tensor in a narrower format.
#[pyclass(frozen, name = "RoundTrip", module = "snapviewer")]
pub(super) struct PyRoundTrip(RoundTrip);

#[pymethods]
impl PyRoundTrip {
    #[getter]
    fn format(&self) -> &'static str {
        self.0.format
    }

    #[getter]
    fn sqnr_db(&self) -> Option<f64> {
        self.0.sqnr_db
    }

    #[getter]
    fn channel_sqnr_db(&self) -> Option<f64> {
        self.0.channel_sqnr_db
    }
}

/// What setting a share of the values to 0 would cost.
#[pyclass(frozen, name = "PruningPoint", module = "snapviewer")]
pub(super) struct PyPruningPoint(PruningPoint);

#[pymethods]
impl PyPruningPoint {
    #[getter]
    fn share(&self) -> f64 {
        self.0.share
    }

    #[getter]
    fn threshold(&self) -> f64 {
        self.0.threshold
    }

    #[getter]
    fn lost(&self) -> f64 {
        self.0.lost
    }
}

/// The norms of the slices along the first dimension.
#[pyclass(frozen, name = "Channels", module = "snapviewer")]
pub(super) struct PyChannels(Channels);

#[pymethods]
impl PyChannels {
    #[getter]
    fn count(&self) -> u64 {
        self.0.count
    }

    #[getter]
    fn median_norm(&self) -> f64 {
        self.0.median_norm
    }

    #[getter]
    fn small(&self) -> u64 {
        self.0.small
    }
}

/// Singular values of a tensor as a matrix.
#[pyclass(frozen, name = "Spectrum", module = "snapviewer")]
pub(super) struct PySpectrum(Spectrum);

#[pymethods]
impl PySpectrum {
    #[getter]
    fn shape(&self) -> (u64, u64) {
        self.0.shape
    }

    #[getter]
    fn norm(&self) -> f64 {
        self.0.norm
    }

    #[getter]
    fn upper_bound(&self) -> f64 {
        self.0.upper_bound
    }

    #[getter]
    fn method(&self) -> &'static str {
        if self.0.is_estimate { "iteration" } else { "eigenvalues" }
    }

    #[getter]
    fn iterations(&self) -> usize {
        self.0.iterations
    }

    #[getter]
    fn change(&self) -> f64 {
        self.0.change
    }

    #[getter]
    fn stable_rank(&self) -> Option<f64> {
        self.0.stable_rank
    }

    #[getter]
    fn effective_rank(&self) -> Option<f64> {
        self.0.effective_rank.as_ref().ok().copied()
    }

    #[getter]
    fn effective_rank_unavailable(&self) -> Option<&str> {
        self.0.effective_rank.as_ref().err().map(String::as_str)
    }
}
