//! Timelines, pictures and clocks as Python sees them.

#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use numpy::ndarray::{ArrayView2, ArrayView3, s};
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::columns::lend;
use crate::error::Error;
use crate::filter::Filter;
use crate::lifetimes::Lifetimes;
use crate::raster::{self, Canvas, Channels, ColorBy, Frame, Mark, Scene, Style, Theme, View};
use crate::recording::Recording;
use crate::timeline::{Clock, NO_MOMENT, Order, Timeline};

/// One of some named choices.
pub(super) fn choice<T: Copy>(names: &[(&str, T)], what: &str, name: &str) -> PyResult<T> {
    let found = names.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names = names.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
        PyValueError::new_err(format!("{what} is one of {names}, not {name:?}"))
    })
}

/// Which allocations a caller means: all, those that a filter's text describes, or those of a mask.
#[derive(Clone, PartialEq)]
pub(super) enum Which {
    All,
    Text(String),
    Mask(Vec<bool>),
}

impl Which {
    /// What a caller gave, of so many allocations.
    pub(super) fn new(given: Option<&Bound<'_, PyAny>>, count: usize) -> PyResult<Self> {
        let Some(given) = given else { return Ok(Self::All) };
        if let Ok(text) = given.cast::<PyString>() {
            return Ok(Self::Text(text.to_string_lossy().into_owned()));
        }
        let wrong = |_| {
            let reason = "takes None, a filter's text, or an array of bool, one an allocation";
            PyTypeError::new_err(reason)
        };
        given.extract::<PyReadonlyArray1<'_, bool>>().map_err(wrong)?;
        // NumPy's bool may be any byte, Rust's may not.
        let bytes = given.call_method1("view", ("uint8",))?;
        let bytes = bytes.extract::<PyReadonlyArray1<'_, u8>>()?;
        // One array can be many times as long as its memory.
        if bytes.len()? != count {
            let reason = format!("the mask has {} entries for {count} allocations", bytes.len()?);
            return Err(PyValueError::new_err(reason));
        }
        Ok(Self::Mask(bytes.as_array().iter().map(|&byte| byte != 0).collect()))
    }

    /// One truth value an allocation; None if it is all.
    pub(super) fn mask(self, recording: &Recording, which: usize) -> PyResult<Option<Vec<bool>>> {
        match self {
            Self::All => Ok(None),
            Self::Text(text) => Ok(Some(recording.mask(which, &Filter::parse(&text)?)?)),
            Self::Mask(mask) => Ok(Some(mask)),
        }
    }
}

/// The colour of each allocation, all at full contrast.
pub(super) fn colors(
    recording: &Recording,
    which: usize,
    by: ColorBy,
    theme: Theme,
) -> PyResult<Vec<u32>> {
    let hashes = recording.stack_texts()?.hashes();
    Ok(raster::colors(&recording.devices[which], hashes, by, theme))
}

/// The colour of each allocation as Python gets it.
pub(super) fn color_array<'py>(
    py: Python<'py>,
    colors: &[u32],
) -> PyResult<Bound<'py, PyArray2<u8>>> {
    let channels = colors.iter().flat_map(|color| color.to_le_bytes().into_iter().take(3));
    PyArray1::from_iter(py, channels).reshape([colors.len(), 3])
}

/// Allocations of a device, stacked in an order and filtered.
#[pyclass(frozen, name = "Timeline", module = "snapviewer")]
pub(super) struct PyTimeline {
    recording: Arc<Recording>,
    which: usize,
    timeline: Arc<Timeline>,
    /// Of the last picture: pans keep them.
    style: Mutex<Option<(Look, Style)>>,
}

/// What a style is made of.
#[derive(PartialEq)]
struct Look {
    by: ColorBy,
    theme: Theme,
    /// What is not dimmed.
    kept: Which,
}

impl PyTimeline {
    pub(super) fn new(
        recording: &Arc<Recording>,
        which: usize,
        order: Order,
        filter: Option<Vec<bool>>,
    ) -> PyResult<Self> {
        let timeline = Timeline::new(Arc::clone(&recording.devices[which]), order, filter)?;
        Ok(Self {
            recording: Arc::clone(recording),
            which,
            timeline: Arc::new(timeline),
            style: Mutex::default(),
        })
    }

    fn lives(&self) -> &Lifetimes {
        self.timeline.lives()
    }

    /// How many events there are.
    fn events(&self) -> usize {
        self.lives().totals.len()
    }

    fn moment(&self, event: &Bound<'_, PyAny>) -> PyResult<u32> {
        let events = self.events();
        match index(event)? {
            -1 => Ok(0),
            place if (0..events.max(1) as i64).contains(&place) => {
                Ok(self.timeline.moment(place as usize))
            }
            _ => Err(PyIndexError::new_err(format!("event {event} of {events}; -1 is before all"))),
        }
    }

    fn allocation(&self, which: &Bound<'_, PyAny>) -> PyResult<u32> {
        let count = self.lives().allocations.len();
        match index(which)? {
            place if (0..count as i64).contains(&place) => Ok(place as u32),
            _ => Err(PyIndexError::new_err(format!("allocation {which} of {count}"))),
        }
    }

    fn style(&self, look: Look, selected: Option<u32>) -> PyResult<Style> {
        let mut last = self.style.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, style)) = last.as_ref().filter(|(same, _)| *same == look) {
            return Ok(Style { selected, ..style.clone() });
        }
        let mut colors = colors(&self.recording, self.which, look.by, look.theme)?;
        let again = Look { kept: look.kept.clone(), ..look };
        if let Some(kept) = look.kept.mask(&self.recording, self.which)? {
            raster::dim(&mut colors, look.theme.background(), |which| kept[which]);
        }
        let style = Style::new(look.theme, colors.into(), selected);
        *last = Some((again, style.clone()));
        Ok(style)
    }
}

/// The part of the world that a caller means.
fn view(
    events: Option<(f64, f64)>,
    time: Option<(f64, f64)>,
    bytes: Range<u64>,
    size: (usize, usize),
) -> PyResult<View> {
    let ((Some(x), None) | (None, Some(x))) = (events, time) else {
        return Err(PyValueError::new_err("give either events=(from, to) or time=(from, to)"));
    };
    Ok(View::new(x, bytes, size)?)
}

/// A place in some column; one that no column has, if it is too large for a number here.
fn index(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    match value.extract::<i64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(i64::MAX),
        index => Ok(index?),
    }
}

/// A number of bytes, rounded down.
fn byte(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let number: f64 = value.extract()?;
    let exact = value.extract::<u64>().ok();
    let rounded = (number >= 0.0 && number < u64::MAX as f64).then_some(number as u64);
    let wrong = || PyValueError::new_err(format!("bytes are from 0 to 2**64 - 1, not {value}"));
    exact.or(rounded).ok_or_else(wrong)
}

/// A number of pixels.
fn pixels(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let number: i128 = value.extract()?;
    let wrong = || PyValueError::new_err(format!("a picture cannot be {number} pixels large"));
    usize::try_from(number).map_err(|_| wrong())
}

#[pymethods]
impl PyTimeline {
    /// Live bytes of what is shown, after each event.
    #[getter]
    fn totals<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<u64>> {
        let this = slf.get();
        lend(slf, (&this.timeline.totals()[..this.events()]).into())
    }

    /// The most live bytes of what is shown, before the first event or after any.
    #[getter]
    fn peak_bytes(&self) -> u64 {
        self.timeline.peak().1
    }

    /// The first event with that much; -1 if that was before the first event.
    #[getter]
    fn peak_event(&self) -> i64 {
        self.timeline.peak().0
    }

    /// Live bytes of what is shown before the first event.
    #[getter]
    fn initial_bytes(&self) -> u64 {
        self.timeline.initial_bytes()
    }

    /// How many allocations are shown.
    #[getter]
    fn shown(&self) -> usize {
        self.timeline.shown().0
    }

    /// The sizes of the allocations that are shown, added up.
    #[getter]
    fn shown_bytes(&self) -> u64 {
        self.timeline.shown().1
    }

    /// The bytes of memory that the index takes, beside the allocations.
    #[getter]
    fn index_bytes(&self) -> usize {
        self.timeline.memory()
    }

    /// The allocation at a byte of the stack after an event, or None above it; -1 is before all.
    fn at(
        &self,
        py: Python<'_>,
        event: &Bound<'_, PyAny>,
        byte: &Bound<'_, PyAny>,
    ) -> PyResult<Option<u32>> {
        let (moment, byte) = (self.moment(event)?, self::byte(byte)?);
        Ok(py.detach(|| self.timeline.at(moment, byte)))
    }

    /// The stack after an event, from the bottom: the allocations, and the byte where each begins.
    fn stack<'py>(
        &self,
        py: Python<'py>,
        event: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let moment = self.moment(event)?;
        let stack = py.detach(|| self.timeline.stack(moment));
        let ids = PyArray1::from_iter(py, stack.iter().map(|one| one.0));
        let offsets = PyArray1::from_iter(py, stack.iter().map(|one| one.1));
        (ids, offsets).into_pyobject(py)
    }

    /// The lowest and the highest total of each of some columns.
    #[pyo3(signature = (*, events=None, time=None, clock=None, size))]
    fn overview<'py>(
        &self,
        py: Python<'py>,
        events: Option<(f64, f64)>,
        time: Option<(f64, f64)>,
        clock: Option<&PyClock>,
        size: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let clock = self.clock(time, clock)?;
        let view = view(events, time, 0..1, (pixels(size)?, 1))?;
        let all = py.detach(|| view.overview(&self.timeline, clock.as_deref()));
        let low = PyArray1::from_iter(py, all.iter().map(|one| one.0));
        let high = PyArray1::from_iter(py, all.iter().map(|one| one.1));
        (low, high).into_pyobject(py)
    }

    /// Draws a part of the timeline.
    #[pyo3(signature = (
        *, events=None, time=None, bytes, size, clock=None, color="stack", theme="light", dim=None,
        selected=None, previous=None, threads=None
    ))]
    #[allow(clippy::too_many_arguments)] // Each has a name, and most a default.
    fn image(
        &self,
        py: Python<'_>,
        events: Option<(f64, f64)>,
        time: Option<(f64, f64)>,
        bytes: (Bound<'_, PyAny>, Bound<'_, PyAny>),
        size: (Bound<'_, PyAny>, Bound<'_, PyAny>),
        clock: Option<&PyClock>,
        color: &str,
        theme: &str,
        dim: Option<&Bound<'_, PyAny>>,
        selected: Option<&Bound<'_, PyAny>>,
        previous: Option<&PyImage>,
        threads: Option<usize>,
    ) -> PyResult<PyImage> {
        let clock = self.clock(time, clock)?;
        let bytes = byte(&bytes.0)?..byte(&bytes.1)?;
        let view = view(events, time, bytes, (pixels(&size.0)?, pixels(&size.1)?))?;
        let selected = selected.map(|which| self.allocation(which)).transpose()?;
        let look = Look {
            by: choice(&ColorBy::NAMES, "color", color)?,
            theme: choice(&Theme::NAMES, "theme", theme)?,
            kept: Which::new(dim, self.lives().allocations.len())?,
        };
        let previous =
            previous.and_then(|previous| previous.give_up(&self.timeline, clock.as_ref()));
        let threads = threads.unwrap_or_else(cores).clamp(1, 64);
        py.detach(|| {
            let style = self.style(look, selected)?;
            let (timeline, clock_) = (self.timeline.as_ref(), clock.as_deref());
            let scene = Scene { timeline, clock: clock_, style: &style, threads };
            let frame = match previous {
                Some(frame) => scene.pan(frame, &view),
                None => {
                    let canvas = spares().pop().unwrap_or_default();
                    scene.draw(&view, canvas)
                }
            };
            let held = Held { frame: Some(frame), timeline: Arc::clone(&self.timeline), clock };
            Ok(PyImage { held: Mutex::new(Some(Arc::new(held))) })
        })
    }

    fn __repr__(&self) -> String {
        let (shown, _) = self.timeline.shown();
        let all = self.lives().allocations.len();
        format!("<Timeline: {shown} of {all} allocations, {} events>", self.events())
    }
}

impl PyTimeline {
    /// The clock of a picture whose x is time.
    fn clock(
        &self,
        time: Option<(f64, f64)>,
        given: Option<&PyClock>,
    ) -> PyResult<Option<Arc<Clock>>> {
        match (time, given) {
            (None, None) => Ok(None),
            (None, Some(_)) => {
                Err(PyValueError::new_err("a clock goes with time=(from, to), not with events"))
            }
            (Some(_), Some(given)) if given.clock.at_us.len() != self.events() => {
                Err(PyValueError::new_err("the clock is of another device"))
            }
            (Some(_), Some(given)) => Ok(Some(Arc::clone(&given.clock))),
            (Some(_), None) => {
                let clock = Clock::new(&self.recording.times(self.which), false);
                let missing = || Error::argument("the file has no times; draw by events");
                Ok(Some(Arc::new(clock.ok_or_else(missing)?)))
            }
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(8)
}

/// A picture, for as long as an image or an array needs it.
struct Held {
    /// None once it was given up.
    frame: Option<Frame>,
    timeline: Arc<Timeline>,
    clock: Option<Arc<Clock>>,
}

/// Canvases that are kept for the next picture, of whatever timeline: new memory takes the system
/// as long as drawing.
static SPARES: Mutex<Vec<Canvas>> = Mutex::new(Vec::new());
const MOST_SPARES: usize = 2;
/// Larger ones are for files, not for screens.
const LARGEST_SPARE: usize = 1 << 23;

fn spares() -> MutexGuard<'static, Vec<Canvas>> {
    SPARES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep(canvas: Canvas) {
    let mut spares = spares();
    if spares.len() < MOST_SPARES && canvas.pixels.len() <= LARGEST_SPARE {
        spares.push(canvas);
    }
}

/// Has memory for a picture of this size ready.
pub(super) fn prepare(width: usize, height: usize) {
    spares().clear();
    keep(Canvas::new(width, height));
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(frame) = self.frame.take() {
            keep(frame.canvas);
        }
    }
}

/// What NumPy's arrays of a picture keep alive.
#[pyclass(frozen, name = "_Owner", module = "snapviewer")]
pub(super) struct Owner(Arc<Held>);

impl Owner {
    pub(super) fn frame(&self) -> &Frame {
        // Only who holds the last reference takes it out.
        self.0.frame.as_ref().unwrap_or_else(|| unreachable!())
    }

    fn bytes(&self) -> ArrayView3<'_, u8> {
        let View { width, height, .. } = self.frame().view;
        let pixels = self.frame().canvas.pixels.as_flattened();
        ArrayView3::from_shape((height, width, 4), pixels).unwrap_or_else(|_| unreachable!())
    }
}

/// A picture of a timeline: pixels, and who is in each.
#[pyclass(frozen, name = "Image", module = "snapviewer")]
pub(super) struct PyImage {
    held: Mutex<Option<Arc<Held>>>,
}

/// Left, top, width, height; red, green, blue; alpha; whether it is over allocations, too.
pub(super) type PyMark = (i64, i64, i64, i64, (u8, u8, u8), u8, bool);

/// Rectangles that a caller wants on a picture.
pub(super) fn marks(given: Vec<PyMark>) -> Vec<Mark> {
    let mark = |(x, y, width, height, (red, green, blue), alpha, over)| {
        let color = [red, green, blue];
        Mark { x, y, width, height, color, alpha, over }
    };
    given.into_iter().map(mark).collect()
}

impl PyImage {
    pub(super) fn owner(&self) -> PyResult<Owner> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let given_up = || PyValueError::new_err("this picture was given up for the next one");
        held.clone().map(Owner).ok_or_else(given_up)
    }

    /// Takes the picture out, if it is of this timeline and clock and nobody has an array of it.
    fn give_up(&self, timeline: &Arc<Timeline>, clock: Option<&Arc<Clock>>) -> Option<Frame> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let is_same = Arc::ptr_eq(&held.timeline, timeline)
            && held.clock.as_ref().map(Arc::as_ptr) == clock.map(Arc::as_ptr);
        Arc::into_inner(held).filter(|_| is_same)?.frame.take()
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

    /// The same with a fourth channel, which is 255: in one piece of memory.
    #[getter]
    fn rgba<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u8>>> {
        let owner = Bound::new(py, self.owner()?)?;
        Ok(lend(&owner, owner.get().bytes()))
    }

    /// The pixels, in an array of their own, with rectangles painted on.
    fn marked<'py>(
        &self,
        py: Python<'py>,
        marks: Vec<PyMark>,
    ) -> PyResult<Bound<'py, PyArray3<u8>>> {
        let (owner, marks) = (self.owner()?, self::marks(marks));
        let frame = owner.frame();
        let area = frame.area();
        let pixels = py.detach(|| {
            let mut pixels = vec![[0; 4]; area.pixels()];
            frame.copy_marked(&area, &marks, Channels::Rgb, &mut pixels);
            pixels.into_flattened()
        });
        PyArray1::from_vec(py, pixels).reshape([area.rows.len(), area.columns.len(), 4])
    }

    /// The allocation in each pixel; 2**32-1 is background.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let owner = Bound::new(py, self.owner()?)?;
        let frame = owner.get().frame();
        let shape = (frame.view.width, frame.view.height);
        let columns = ArrayView2::from_shape(shape, frame.ids());
        let mut rows = columns.unwrap_or_else(|_| unreachable!()).reversed_axes();
        rows.invert_axis(numpy::ndarray::Axis(0));
        Ok(lend(&owner, rows))
    }

    /// The event that each column shows: the one with the largest total in it; -1 if there is none.
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let owner = self.owner()?;
        let first = i64::from(!owner.0.timeline.lives().totals.is_empty());
        let event =
            |&moment: &u32| if moment == NO_MOMENT { -1 } else { i64::from(moment) - first };
        Ok(PyArray1::from_iter(py, owner.frame().moments.iter().map(event)))
    }

    fn __repr__(&self) -> String {
        match self.owner() {
            Err(_) => "<Image, given up>".to_owned(),
            Ok(owner) => {
                let View { width, height, .. } = owner.frame().view;
                format!("<Image {width} × {height}>")
            }
        }
    }
}

/// When events happened, in microseconds since the first one.
#[pyclass(frozen, name = "Clock", module = "snapviewer")]
pub(super) struct PyClock {
    clock: Arc<Clock>,
}

impl PyClock {
    pub(super) fn new(recording: &Recording, which: usize, compress: bool) -> Option<Self> {
        let clock = Arc::new(Clock::new(&recording.times(which), compress)?);
        Some(Self { clock })
    }
}

#[pymethods]
impl PyClock {
    /// The Unix time of the first event, in microseconds.
    #[getter]
    fn start_us(&self) -> u64 {
        self.clock.start_us
    }

    /// From the first to the last event, on this clock.
    #[getter]
    fn length_us(&self) -> u64 {
        self.clock.length_us()
    }

    /// The time of each event on this clock, which never runs backwards.
    #[getter]
    fn times<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<u64>> {
        lend(slf, slf.get().clock.at_us.as_slice().into())
    }

    /// Where time without events was cut short: the event before, from and to on this clock, and
    /// how long it was.
    #[getter]
    fn gaps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let gap = |gap: &crate::timeline::Gap| {
            (gap.after, gap.from_us, gap.from_us + gap.shown_us, gap.real_us)
        };
        PyTuple::new(py, self.clock.gaps.iter().map(gap))
    }

    /// The time of an event on this clock.
    fn at(&self, event: &Bound<'_, PyAny>) -> PyResult<u64> {
        let found = usize::try_from(index(event)?).ok();
        let found = found.and_then(|event| self.clock.at_us.get(event));
        let count = self.clock.at_us.len();
        found.copied().ok_or_else(|| PyIndexError::new_err(format!("event {event} of {count}")))
    }

    /// The real time since the first event that this clock shows as `us`.
    fn real(&self, us: f64) -> f64 {
        self.clock.real_us(us)
    }

    fn __repr__(&self) -> String {
        format!("<Clock: {} µs>", self.clock.length_us())
    }
}
