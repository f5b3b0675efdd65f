//! Statistics and differences of tensors as Python sees them.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::stats::{Difference, Stats};

/// Statistics of a tensor.
#[pyclass(frozen, name = "Stats", module = "snapviewer")]
pub(super) struct PyStats(pub Stats);

#[pymethods]
impl PyStats {
    #[getter]
    fn count(&self) -> u64 {
        self.0.count
    }

    #[getter]
    fn mean(&self) -> Option<f64> {
        self.0.mean
    }

    #[getter]
    fn std(&self) -> Option<f64> {
        self.0.std
    }

    #[getter]
    fn min(&self) -> Option<f64> {
        self.0.min
    }

    #[getter]
    fn max(&self) -> Option<f64> {
        self.0.max
    }

    #[getter]
    fn zeros(&self) -> u64 {
        self.0.zeros
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
    fn denormal(&self) -> u64 {
        self.0.denormal
    }

    #[getter]
    fn l1(&self) -> f64 {
        self.0.l1
    }

    #[getter]
    fn l2(&self) -> f64 {
        self.0.l2
    }

    #[getter]
    fn skewness(&self) -> Option<f64> {
        self.0.skewness
    }

    #[getter]
    fn kurtosis(&self) -> Option<f64> {
        self.0.kurtosis
    }

    #[getter]
    fn entropy(&self) -> Option<f64> {
        self.0.entropy
    }

    #[getter]
    fn histogram<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.histogram)
    }

    #[getter]
    fn edges(&self) -> Option<(f64, f64)> {
        self.0.edges
    }
}

/// How two tensors differ.
#[pyclass(frozen, name = "Difference", module = "snapviewer")]
pub(super) struct PyDifference(pub Difference);

#[pymethods]
impl PyDifference {
    #[getter]
    fn is_equal(&self) -> bool {
        self.0.is_equal
    }

    #[getter]
    fn changed(&self) -> u64 {
        self.0.changed
    }

    #[getter]
    fn count(&self) -> u64 {
        self.0.count
    }

    #[getter]
    fn to_nonfinite(&self) -> u64 {
        self.0.to_nonfinite
    }

    #[getter(from_nonfinite)]
    fn no_longer_nonfinite(&self) -> u64 {
        self.0.from_nonfinite
    }

    #[getter]
    fn max_abs(&self) -> Option<f64> {
        self.0.max_abs
    }

    #[getter]
    fn mean_abs(&self) -> Option<f64> {
        self.0.mean_abs
    }

    #[getter]
    fn relative_l2(&self) -> Option<f64> {
        self.0.relative_l2
    }
}
