//! Pictures as Python sees them: arrays over the core's memory.

#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.

use std::sync::{Arc, Mutex, PoisonError};

use numpy::ndarray::{ArrayView2, ArrayView3, s};
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::columns::lend;
use crate::lifetimes::Lifetimes;
use crate::raster::{Channels, Mark, Picture, PooledPicture, Viewport};

/// The colour of each allocation as Python gets it.
pub(super) fn color_array<'py>(
    py: Python<'py>,
    colors: &[u32],
) -> PyResult<Bound<'py, PyArray2<u8>>> {
    let channels = colors.iter().flat_map(|color| color.to_le_bytes().into_iter().take(3));
    PyArray1::from_iter(py, channels).reshape([colors.len(), 3])
}

/// What NumPy's arrays of a picture keep alive.
#[pyclass(frozen, name = "_Owner", module = "snapviewer")]
pub(super) struct Owner(Arc<PooledPicture>);

impl Owner {
    pub(super) fn picture(&self) -> &Picture {
        self.0.picture()
    }

    /// Whether it shows a device's allocations.
    pub(super) fn is_of(&self, lives: &Lifetimes) -> bool {
        self.0.is_of(lives)
    }

    fn bytes(&self) -> ArrayView3<'_, u8> {
        let Viewport { width, height, .. } = self.picture().view;
        let pixels = self.picture().canvas.pixels.as_flattened();
        ArrayView3::from_shape((height, width, 4), pixels).unwrap_or_else(|_| unreachable!())
    }
}

/// A picture of a timeline: pixels, and the allocation in each.
#[pyclass(frozen, name = "Image", module = "snapviewer")]
pub(super) struct PyImage {
    held: Mutex<Option<Arc<PooledPicture>>>,
}

/// Left, top, width, height; red, green, blue; alpha; whether it is over allocations, too.
pub(super) type PyMark = (i64, i64, i64, i64, (u8, u8, u8), u8, bool);

/// Rectangles to paint onto a picture.
pub(super) fn marks(given: Vec<PyMark>) -> Vec<Mark> {
    let mark = |(x, y, width, height, (red, green, blue), alpha, over)| {
        let color = [red, green, blue];
        Mark { x, y, width, height, color, alpha, over }
    };
    given.into_iter().map(mark).collect()
}

impl PyImage {
    pub(super) fn new(picture: PooledPicture) -> Self {
        Self { held: Mutex::new(Some(Arc::new(picture))) }
    }

    pub(super) fn owner(&self) -> PyResult<Owner> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let given_up = || PyValueError::new_err("this picture was given up for the next one");
        held.clone().map(Owner).ok_or_else(given_up)
    }

    fn painted(&self, py: Python<'_>, marks: Vec<PyMark>) -> PyResult<Vec<u8>> {
        let (owner, marks) = (self.owner()?, self::marks(marks));
        let picture = owner.picture();
        let area = picture.area();
        Ok(py.detach(|| {
            let mut pixels = vec![[0; 4]; area.pixels()];
            picture.copy_marked(&area, &marks, Channels::Rgb, &mut pixels);
            pixels.into_flattened()
        }))
    }

    /// Takes the picture out, unless an array still uses it.
    pub(super) fn give_up(&self) -> Option<PooledPicture> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        held.and_then(Arc::into_inner)
    }
}

#[pymethods]
impl PyImage {
    /// The pixels: height × width × (red, green, blue), the first row on top.
    #[getter]
    fn rgb<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u8>>> {
        let owner = Bound::new(py, self.owner()?)?;
        Ok(lend(&owner, owner.get().bytes().slice_move(s![.., .., ..3])))
    }

    /// The pixels, in an array of their own, with rectangles painted on.
    fn marked<'py>(
        &self,
        py: Python<'py>,
        marks: Vec<PyMark>,
    ) -> PyResult<Bound<'py, PyArray3<u8>>> {
        let Viewport { width, height, .. } = self.owner()?.picture().view;
        PyArray1::from_vec(py, self.painted(py, marks)?).reshape([height, width, 4])
    }

    /// The same as bytes.
    fn marked_bytes<'py>(
        &self,
        py: Python<'py>,
        marks: Vec<PyMark>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.painted(py, marks)?))
    }

    /// The allocation in each pixel; 2**32-1 is background.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let owner = Bound::new(py, self.owner()?)?;
        let picture = owner.get().picture();
        let shape = (picture.view.width, picture.view.height);
        let columns = ArrayView2::from_shape(shape, picture.ids());
        let mut rows = columns.unwrap_or_else(|_| unreachable!()).reversed_axes();
        rows.invert_axis(numpy::ndarray::Axis(0));
        Ok(lend(&owner, rows))
    }

    /// The event that each column shows: the one with the largest total in it; -1 if there is none.
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        Ok(PyArray1::from_iter(py, self.owner()?.0.events()))
    }

    fn __repr__(&self) -> String {
        match self.owner() {
            Err(_) => "Image(closed)".to_owned(),
            Ok(owner) => {
                let Viewport { width, height, .. } = owner.picture().view;
                format!("Image(width={width}, height={height})")
            }
        }
    }
}
