//! Tensors in memory: measured by the same code as those in files.

#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use super::calls::run;
use super::numbers::{PyQuality, PyStats};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::stats::{self, Elements};
use crate::strided::Strided;

/// Bytes, or an array of them.
#[derive(FromPyObject)]
pub(super) enum Data<'py> {
    Bytes(Bound<'py, pyo3::types::PyBytes>),
    Array(PyReadonlyArray1<'py, u8>),
}

impl Data<'_> {
    fn bytes(&self) -> PyResult<&[u8]> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.as_bytes()),
            Self::Array(array) => Ok(array.as_slice()?),
        }
    }
}

/// Statistics of a tensor in memory.
#[pyfunction]
#[pyo3(signature = (data, dtype, shape, *, bins=64, progress=None, cancel=None))]
pub(super) fn tensor_stats(
    py: Python<'_>,
    data: Data<'_>,
    dtype: &str,
    shape: Vec<u64>,
    bins: usize,
    progress: Option<Py<PyAny>>,
    cancel: Option<Py<PyAny>>,
) -> PyResult<PyStats> {
    let bytes = data.bytes()?;
    run(py, progress, cancel, |progress| {
        with_elements(bytes, dtype, shape, |elements| stats::measure(elements, bins, progress))
    })
    .map(PyStats)
}

/// What a tensor in memory would lose.
#[pyfunction]
#[pyo3(signature = (data, dtype, shape, *, spectrum=true, progress=None, cancel=None))]
pub(super) fn tensor_quality(
    py: Python<'_>,
    data: Data<'_>,
    dtype: &str,
    shape: Vec<u64>,
    spectrum: bool,
    progress: Option<Py<PyAny>>,
    cancel: Option<Py<PyAny>>,
) -> PyResult<PyQuality> {
    let bytes = data.bytes()?;
    run(py, progress, cancel, |progress| {
        with_elements(bytes, dtype, shape, |elements| stats::quality(elements, spectrum, progress))
    })
    .map(PyQuality)
}

/// Shows the elements that some bytes are.
fn with_elements<T>(
    bytes: &[u8],
    dtype: &str,
    shape: Vec<u64>,
    show: impl FnOnce(&Elements<'_>) -> Result<T>,
) -> Result<T> {
    let Some(dtype) = DType::from_torch(dtype) else {
        return Err(Error::argument(format!("there is no type {dtype:?}")));
    };
    let layout = Strided::contiguous(shape);
    let wanted = layout.as_ref().and_then(Strided::elements).and_then(|n| dtype.bytes_of(n));
    let (Some(layout), true) = (layout, wanted == Some(bytes.len() as u64)) else {
        let wanted = wanted.map_or_else(|| "more than 2⁶⁴".to_owned(), |wanted| wanted.to_string());
        let found = bytes.len();
        return Err(Error::argument(format!("the shape takes {wanted} bytes; there are {found}")));
    };
    show(&Elements {
        bytes: &bytes,
        start: 0,
        storage_bytes: bytes.len() as u64,
        dtype,
        layout: &layout,
        is_big_endian: false,
        quantization: None,
    })
}
