//! Maps of the allocator's memory as Python sees them.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arguments::{self, look, pixels};
use super::getters::{derefs, getters};
use super::image::PyImage;
use crate::allocator::state::{BlockAt, BlockState, State};
use crate::raster::{
    LastStyle, MapRow, Measures, MemoryMap, PooledPicture, Shown, Style, Viewport,
};
use crate::recording::{Look, Recording};

/// The upper edge of a row, the domain or the segment that it shows, and which part of it.
type Row = (i64, &'static str, usize, u64);

/// What the colours of a map come from.
#[derive(Clone)]
pub(super) struct Colored {
    pub recording: Arc<Recording>,
    pub which: usize,
    pub style: Arc<LastStyle<Look>>,
}

/// The measures of a map: of a row, between rows, and of a heading.
pub(super) fn measures(
    width: usize,
    row_bytes: u64,
    (row, gap, heading): (u16, u16, u16),
) -> PyResult<Measures> {
    if width == 0 || row == 0 {
        return Err(PyValueError::new_err("a row has at least one pixel"));
    }
    let [row, gap, heading] = [row, gap, heading].map(u32::from);
    Ok(Measures { width, row_bytes, row, gap, heading })
}

/// The segments of a state, laid out in rows.
#[pyclass(frozen, name = "MemoryMap", module = "snapviewer")]
pub(super) struct PyMemoryMap {
    map: MemoryMap,
    state: Arc<State>,
    colored: Colored,
    width: usize,
}

impl PyMemoryMap {
    pub(super) fn new(map: MemoryMap, state: &Arc<State>, colored: &Colored, width: usize) -> Self {
        Self { map, state: Arc::clone(state), colored: colored.clone(), width }
    }

    fn allocations(&self) -> usize {
        self.colored.recording.devices[self.colored.which].allocations.len()
    }
}

#[pymethods]
impl PyMemoryMap {
    /// The height of all rows, in pixels.
    #[getter]
    fn height(&self) -> u64 {
        self.map.height()
    }

    /// The rows of which something is between two heights: the upper edge, "domain" or "segment",
    /// its place in the state, and which part of it the row shows.
    fn rows(&self, top: u64, bottom: u64) -> Vec<Row> {
        let row = |row: MapRow| match row.shown {
            Shown::Heading(place) => (row.top as i64, "domain", place, 0),
            Shown::Segment(place, part) => (row.top as i64, "segment", place, part),
        };
        self.map.rows(top..bottom.max(top)).into_iter().map(row).collect()
    }

    /// The block at a pixel; None if there is none.
    fn at(&self, x: usize, y: u64) -> Option<PyBlock> {
        let (segment, block) = self.map.at(&self.state, x, y)?;
        Some(PyBlock { segment, block: self.state.blocks[block] })
    }

    /// The upper edge of the first row with an allocation; None if it has no block.
    fn top_of(&self, allocation: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let which = arguments::allocation(allocation, self.allocations())?;
        Ok(self.map.top_of(&self.state, which))
    }

    /// Draws what is below a height.
    #[pyo3(signature = (
        *, top=0, height, color="stack", theme="light", dim=None, selected=None, previous=None
    ))]
    #[allow(clippy::too_many_arguments)] // Each has a name, and most a default.
    fn image(
        &self,
        py: Python<'_>,
        top: u64,
        height: &Bound<'_, PyAny>,
        color: &str,
        theme: &str,
        dim: Option<&Bound<'_, PyAny>>,
        selected: Option<&Bound<'_, PyAny>>,
        previous: Option<&PyImage>,
    ) -> PyResult<PyImage> {
        // Checks the size.
        let size = (self.width, pixels(height)?);
        let Viewport { height, .. } = Viewport::new((0.0, 1.0), 0..1, size)?;
        let count = self.allocations();
        let (look, selected) = look((color, theme), dim, selected, count)?;
        let previous = previous.and_then(PyImage::give_up);
        py.detach(|| {
            let Colored { recording, which, style } = &self.colored;
            let style = style.get(look, |look| recording.style(*which, look))?;
            let style = Style { selected, ..style };
            let draw = |canvas| self.map.draw(&self.state, &style, top, height, canvas);
            Ok(PyImage::new(PooledPicture::of(draw, previous)))
        })
    }

    fn __repr__(&self) -> String {
        format!("MemoryMap(width={}, height={})", self.width, self.map.height())
    }
}

/// A block of a segment at one moment.
#[pyclass(frozen, name = "Block", module = "snapviewer")]
pub(super) struct PyBlock {
    segment: usize,
    block: BlockAt,
}

derefs!(PyBlock, |this| -> BlockAt { &this.block });

getters! {
    PyBlock |this| {
        /// The place of its segment in the state.
        segment: usize = this.segment,
        /// Where it begins.
        address: u64,
        /// Its bytes.
        size: u64,
        /// The requested bytes; 0 if it is free.
        requested: u64,
        /// One of "allocated", "pending" and "free".
        state: &str = match this.block.state {
            BlockState::Allocated => "allocated",
            BlockState::Pending => "pending",
            BlockState::Free => "free",
        },
        /// The allocation that has it; None if it is free.
        allocation: Option<u32>,
    }
}
