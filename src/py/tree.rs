//! Call trees as Python sees them.

#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arguments::{self, choice, index, pixels, subset};
use super::getters::{Tuple, derefs, getters};
use super::image::PyImage;
use crate::analysis::frames;
use crate::analysis::paths::{By, Label, ROOT, Shown, Way};
use crate::analysis::tree::{Measure, Measured, Share, Tree};
use crate::filter::Pattern;
use crate::lifetimes::Lifetimes;
use crate::raster::{ColorBy, Drawn, Icicle, LastStyle, Lettering, PooledPicture, Theme, Viewport};
use crate::recording::{Look, Recording};
use crate::timeline::Clock;

/// A box of an icicle: the node, its left and upper edge, and its width.
type BoxRow = (u32, usize, usize, usize);

/// A text on an icicle: left and upper edge, width, and how far it covers each pixel.
type Letters<'py> = (usize, i64, usize, Bound<'py, PyBytes>);

/// What a caller asks of a device.
pub(super) struct Asked<'a, 'py> {
    pub event: Option<&'a Bound<'py, PyAny>>,
    pub events: Option<(i64, i64)>,
    pub measure: &'a str,
    pub by: &'a str,
    pub frames: &'a str,
    pub callers: bool,
    pub subset: Option<&'a Bound<'py, PyAny>>,
}

/// Call paths of a device's allocations, with weights.
#[pyclass(frozen, name = "Tree", module = "snapviewer")]
pub(super) struct PyTree {
    recording: Arc<Recording>,
    which: usize,
    tree: Arc<Tree>,
    style: Arc<LastStyle<Look>>,
}

derefs!(PyTree, |this| -> Tree { &this.tree });

impl PyTree {
    pub(super) fn new(
        py: Python<'_>,
        recording: &Arc<Recording>,
        which: usize,
        asked: &Asked<'_, '_>,
    ) -> PyResult<Self> {
        let lives = &recording.devices[which];
        let count = lives.totals.len() as i64;
        let way = Way {
            by: choice(By::NAMES, "by", asked.by)?,
            shown: choice(Shown::NAMES, "frames", asked.frames)?,
            callers: asked.callers,
        };
        let wanted = subset(asked.subset, lives.allocations.len())?;
        let (first, last) = asked.events.unwrap_or((0, count));
        let range = first.clamp(-1, count)..last.clamp(-1, count);
        let event = match asked.event.map(index).transpose()? {
            None => lives.peak_event,
            Some(event) if (-1..count.max(0)).contains(&event) => event,
            Some(event) => {
                let reason = format!("event {event} of {count}; -1 is before all");
                return Err(PyIndexError::new_err(reason));
            }
        };
        let clock = || py.detach(|| Clock::new(&recording.times(which), false).map(Arc::new));
        let measure = match choice(Measured::NAMES, "measure", asked.measure)? {
            Measured::Alive => Measure::Alive(event),
            Measured::Allocated => Measure::Allocated(range),
            Measured::Time => Measure::Time(range, clock()),
        };
        let tree = py.detach(|| recording.tree(which, way, measure, &wanted))?;
        let recording = Arc::clone(recording);
        Ok(Self { recording, which, tree: Arc::new(tree), style: Arc::default() })
    }

    fn lives(&self) -> &Lifetimes {
        &self.recording.devices[self.which]
    }

    fn checked(&self, node: &Bound<'_, PyAny>) -> PyResult<u32> {
        let count = self.paths.len();
        match index(node)? {
            place if (0..count as i64).contains(&place) => Ok(place as u32),
            _ => Err(PyIndexError::new_err(format!("node {node} of {count}"))),
        }
    }

    /// The function, the file and the line of a node, as far as it has one.
    fn frame(&self, node: u32) -> PyResult<Option<(&str, &str, u64)>> {
        let Label::Frame(id) = self.paths.labels[node as usize] else { return Ok(None) };
        let (name, filename, line) = self.recording.stack_texts()?.frame(id);
        Ok(Some(match self.paths.way.by {
            By::Line => (name, filename, line),
            By::Function => (name, filename, 0),
            By::File if frames::is_python(filename) => ("", filename, 0),
            By::File => (name, "", 0),
        }))
    }

    /// What a search looks at: as filters write frames, without the line where there is none.
    fn searched(&self, node: u32) -> String {
        match self.frame(node).ok().flatten() {
            None => String::new(),
            Some(("", filename, _)) => filename.to_owned(),
            Some((name, filename, 0)) => format!("{name} ({filename})"),
            Some((name, filename, line)) => format!("{name} ({filename}:{line})"),
        }
    }
}

getters! {
    PyTree |this| {
        /// The weight of everything.
        total: u128 = this.tree.total(),
        /// How many allocations there are.
        count: u64 = this.share(ROOT).count,
        /// What weights are: "bytes", "byte-us" or "byte-events".
        unit: &'static str = match &this.measure {
            Measure::Time(_, Some(_)) => "byte-us",
            Measure::Time(_, None) => "byte-events",
            _ => "bytes",
        },
        /// How long the events take, in µs or events, if weights are bytes × time.
        duration: Option<u64> = this.measure.duration(),
        /// The event whose live allocations it shows, if it shows those.
        event: Option<i64> = match this.measure {
            Measure::Alive(event) => Some(event),
            _ => None,
        },
        /// The first event and the one behind the last, if it shows a range.
        events: Option<(i64, i64)> = match &this.measure {
            Measure::Alive(_) => None,
            Measure::Allocated(range) | Measure::Time(range, _) => Some((range.start, range.end)),
        },
    }

    /// A node; 0 is the root.
    fn node(&self, node: &Bound<'_, PyAny>) -> PyResult<PyTreeNode> {
        let node = self.checked(node)?;
        let frame = self.frame(node)?;
        let kind = match (self.paths.labels[node as usize], frame) {
            (Label::Root, _) => "root",
            (Label::NoStack, _) => "no stack",
            (Label::Folded, _) => "folded",
            (Label::Frame(id), _) => {
                let (name, filename, _) = self.recording.stack_texts()?.frame(id);
                frames::kind(name, filename)
            }
        };
        let (name, filename, line) = frame.unwrap_or_default();
        let text = match kind {
            "root" => "all".to_owned(),
            "no stack" => frames::NO_STACK.to_owned(),
            "folded" => "… torch".to_owned(),
            _ if name.is_empty() => frames::basename(filename).to_owned(),
            _ if line == 0 && frames::is_python(filename) => {
                format!("{} {name}", frames::basename(filename))
            }
            _ => frames::short_text(name, filename, line),
        };
        Ok(PyTreeNode {
            index: node,
            parent: (node != ROOT).then(|| self.paths.parents[node as usize]),
            depth: self.paths.depths[node as usize],
            kind,
            text,
            name: name.to_owned(),
            filename: filename.to_owned(),
            line,
            share: self.share(node),
            children: self.tree.children(node).collect(),
        })
    }

    /// The node of an allocation; None if the allocation is not counted.
    fn node_of(&self, allocation: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        let which = arguments::allocation(allocation, self.lives().allocations.len())?;
        Ok(self.tree.node_of(self.lives(), which as usize))
    }

    /// Which allocations are at a node or below it.
    fn mask<'py>(
        &self,
        py: Python<'py>,
        node: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let node = self.checked(node)?;
        Ok(PyArray1::from_vec(py, py.detach(|| self.tree.mask(self.lives(), node))))
    }

    /// The nodes that a regular expression matches, and the weight of these and all below them.
    fn search<'py>(
        &self,
        py: Python<'py>,
        text: &str,
    ) -> PyResult<(Bound<'py, PyArray1<u32>>, u128)> {
        let pattern = Pattern::new(text)?;
        let (nodes, weight) = py.detach(|| self.tree.search(&pattern, |node| self.searched(node)));
        Ok((PyArray1::from_vec(py, nodes), weight))
    }

    /// Lays out the tree from a node on, in rows of some pixels.
    #[pyo3(signature = (*, width, row, focus=None))]
    fn icicle(
        &self,
        py: Python<'_>,
        width: &Bound<'_, PyAny>,
        row: u16,
        focus: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyIcicle> {
        let focus = focus.map_or(Ok(ROOT), |node| self.checked(node))?;
        let width = pixels(width)?;
        // Checks the size.
        Viewport::new((0.0, 1.0), 0..1, (width, 1))?;
        let tree = Arc::clone(&self.tree);
        let icicle = py.detach(|| Icicle::new(tree, focus, width, usize::from(row)));
        Ok(PyIcicle {
            icicle,
            recording: Arc::clone(&self.recording),
            which: self.which,
            style: Arc::clone(&self.style),
            width,
        })
    }

    fn __len__(&self) -> usize {
        self.paths.len()
    }

    fn __repr__(&self) -> String {
        format!("Tree(nodes={}, total={})", self.paths.len(), self.tree.total())
    }
}

/// A node of a call tree.
#[pyclass(frozen, name = "TreeNode", module = "snapviewer")]
pub(super) struct PyTreeNode {
    index: u32,
    parent: Option<u32>,
    depth: u32,
    kind: &'static str,
    text: String,
    name: String,
    filename: String,
    line: u64,
    share: Share,
    children: Vec<u32>,
}

derefs!(PyTreeNode, |this| -> Share { &this.share });

getters! {
    PyTreeNode |this| {
        /// Its number.
        index: u32 = this.index,
        /// The node above it; None for the root.
        parent: Option<u32> = this.parent,
        /// How many nodes are above it.
        depth: u32 = this.depth,
        /// "root", "no stack", "folded", or whose code it is: "own", "library", "torch" or "other".
        kind: &'static str = this.kind,
        /// A short text for it: `model.py:77 attention`.
        text: &str = &this.text,
        /// The function; empty if it is no frame or nodes are files.
        name: &str = &this.name,
        /// The file; empty if it is not known.
        filename: &str = &this.filename,
        /// The line; 0 if it has none.
        line: u64 = this.line,
        /// The weight of it and of everything below it.
        weight: u128,
        /// The weight without what is below it.
        own: u128,
        /// How many allocations are at it or below it.
        count: u64,
        /// The largest allocation of the heaviest stack at it or below it.
        largest: Option<u32>,
        /// The nodes below it that have allocations, in the file's order.
        children: Tuple<&[u32]> = Tuple(&this.children),
    }

    fn __repr__(&self) -> String {
        format!("TreeNode(index={}, kind={:?}, name={:?})", self.index, self.kind, self.name)
    }
}

/// A call tree, laid out in rows.
#[pyclass(frozen, name = "Icicle", module = "snapviewer")]
pub(super) struct PyIcicle {
    icicle: Icicle,
    recording: Arc<Recording>,
    which: usize,
    style: Arc<LastStyle<Look>>,
    width: usize,
}

#[pymethods]
impl PyIcicle {
    /// The height of all rows, in pixels.
    #[getter]
    fn height(&self) -> usize {
        self.icicle.height()
    }

    /// The node at a pixel; None if there is none.
    fn at(&self, x: usize, y: usize) -> Option<u32> {
        self.icicle.at(x, y)
    }

    /// The boxes of at least `least` pixels between two heights: node, left, top and width.
    #[pyo3(signature = (*, least=1, top=0, height))]
    fn boxes(&self, py: Python<'_>, least: usize, top: usize, height: usize) -> Vec<BoxRow> {
        let boxes = py.detach(|| self.icicle.boxes(least, top..top.saturating_add(height)));
        let row = |(one, y): (crate::raster::NodeBox, usize)| {
            (one.node, one.columns.start, y, one.columns.len())
        };
        boxes.into_iter().map(row).collect()
    }

    /// Draws what is below a height.
    #[pyo3(signature = (
        *, top=0, height, color="stack", theme="light", dim=None, selected=None, found=None,
        letters=Vec::new(), previous=None
    ))]
    #[allow(clippy::too_many_arguments)] // Each has a name, and most a default.
    fn image(
        &self,
        py: Python<'_>,
        top: usize,
        height: &Bound<'_, PyAny>,
        color: &str,
        theme: &str,
        dim: Option<&Bound<'_, PyAny>>,
        selected: Option<u32>,
        found: Option<numpy::PyReadonlyArray1<'_, u32>>,
        letters: Vec<Letters<'_>>,
        previous: Option<&PyImage>,
    ) -> PyResult<PyImage> {
        // Checks the size.
        let size = (self.width, pixels(height)?);
        let Viewport { height, .. } = Viewport::new((0.0, 1.0), 0..1, size)?;
        let look = Look {
            by: choice(ColorBy::NAMES, "color", color)?,
            theme: choice(Theme::NAMES, "theme", theme)?,
            kept: subset(dim, self.recording.devices[self.which].allocations.len())?,
        };
        let found: Option<Vec<u32>> = found.map(|nodes| nodes.as_array().to_vec());
        let lettering =
            |(x, y, width, coverage): &Letters<'_>| (*x, *y, *width, coverage.as_bytes().to_vec());
        let letters: Vec<_> = letters.iter().map(lettering).collect();
        let previous = previous.and_then(PyImage::give_up);
        py.detach(|| {
            let style = self.style.get(look, |look| self.recording.style(self.which, look))?;
            let letterings = letters
                .iter()
                .map(|(x, y, width, coverage)| Lettering { x: *x, y: *y, width: *width, coverage })
                .collect();
            let drawn = Drawn { style: &style, selected, found: found.as_deref(), letterings };
            let draw = |canvas| self.icicle.draw(&drawn, top, height, canvas);
            Ok(PyImage::new(PooledPicture::of(draw, previous)))
        })
    }

    fn __repr__(&self) -> String {
        format!("Icicle(width={}, height={})", self.width, self.icicle.height())
    }
}
