//! Windows that pictures are put into, as Python sees them.

#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use super::image::{PyImage, PyMark, marks};
use crate::error::Error;
use crate::raster;
use crate::screen::Screen;

/// A window that pictures are put into.
#[pyclass(frozen, name = "Screen", module = "snapviewer")]
pub(super) struct PyScreen {
    /// None once it is closed.
    screen: Mutex<Option<Screen>>,
}

#[pymethods]
impl PyScreen {
    #[new]
    #[pyo3(signature = (window, display=None))]
    fn new(py: Python<'_>, window: u64, display: Option<String>) -> PyResult<Self> {
        let screen = py.detach(|| Screen::new(window, display.as_deref()))?;
        Ok(Self { screen: Mutex::new(Some(screen)) })
    }

    /// Allocates memory for pictures of a size.
    fn prepare(&self, py: Python<'_>, width: u16, height: u16) -> PyResult<()> {
        py.detach(|| {
            let (width, height) = (usize::from(width).max(1), usize::from(height).max(1));
            let mut screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
            let closed = || Error::screen("the screen is closed");
            screen.as_mut().ok_or_else(closed)?.prepare(width * height)?;
            raster::prepare(width, height);
            Ok(())
        })
    }

    /// Puts a picture into the window, with rectangles painted on, and waits until it is there.
    #[pyo3(
        signature = (image, marks=Vec::new(), *, x=0, y=0),
        text_signature = "($self, image, marks=(), *, x=0, y=0)"
    )]
    fn show(
        &self,
        py: Python<'_>,
        image: &PyImage,
        marks: Vec<PyMark>,
        x: i64,
        y: i64,
    ) -> PyResult<()> {
        let (owner, marks) = (image.owner()?, self::marks(marks));
        py.detach(|| {
            let mut screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
            let closed = || Error::screen("the screen is closed");
            let screen = screen.as_mut().ok_or_else(closed)?;
            Ok(screen.show(owner.picture(), &marks, (x, y))?)
        })
    }

    /// Releases everything; later pictures are refused.
    fn close(&self, py: Python<'_>) {
        py.detach(|| *self.screen.lock().unwrap_or_else(PoisonError::into_inner) = None);
    }
}
