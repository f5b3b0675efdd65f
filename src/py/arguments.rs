//! Arguments of Python calls: numbers, choices and subsets of allocations, checked.

use std::ops::Range;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::raster::{ColorBy, Theme, Viewport};
use crate::recording::{Look, Subset};

/// One of some named choices.
pub(super) fn choice<T: Copy>(names: &[(&str, T)], what: &str, name: &str) -> PyResult<T> {
    let found = names.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names = names.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
        PyValueError::new_err(format!("{what} is one of {names}, not {name:?}"))
    })
}

/// The allocations that an argument selects: all, those that a filter matches, or those of a mask.
pub(super) fn subset(given: Option<&Bound<'_, PyAny>>, count: usize) -> PyResult<Subset> {
    let Some(given) = given else { return Ok(Subset::All) };
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(Subset::Text(text.to_string_lossy().into_owned()));
    }
    let wrong = |_| {
        let reason = "takes None, a filter's text, or an array of bool, one per allocation";
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
    Ok(Subset::Mask(bytes.as_array().iter().map(|&byte| byte != 0).collect()))
}

/// The index of an allocation, checked against their number.
pub(super) fn allocation(given: &Bound<'_, PyAny>, count: usize) -> PyResult<u32> {
    match index(given)? {
        place if (0..count as i64).contains(&place) => Ok(place as u32),
        _ => Err(PyIndexError::new_err(format!("allocation {given} of {count}"))),
    }
}

/// The colours that a caller means, and the allocation to mark among `count`.
pub(super) fn look(
    (color, theme): (&str, &str),
    dim: Option<&Bound<'_, PyAny>>,
    selected: Option<&Bound<'_, PyAny>>,
    count: usize,
) -> PyResult<(Look, Option<u32>)> {
    let selected = selected.map(|which| allocation(which, count)).transpose()?;
    let by = choice(ColorBy::NAMES, "color", color)?;
    let theme = choice(Theme::NAMES, "theme", theme)?;
    Ok((Look { by, theme, kept: subset(dim, count)? }, selected))
}

/// The part of the world that a caller means.
pub(super) fn view(
    events: Option<(f64, f64)>,
    time: Option<(f64, f64)>,
    bytes: Range<u64>,
    size: (usize, usize),
) -> PyResult<Viewport> {
    let ((Some(x), None) | (None, Some(x))) = (events, time) else {
        return Err(PyValueError::new_err("give either events=(from, to) or time=(from, to)"));
    };
    Ok(Viewport::new(x, bytes, size)?)
}

/// A place in some column; one that no column has, if it is too large for a number here.
pub(super) fn index(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    match value.extract::<i64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(i64::MAX),
        index => Ok(index?),
    }
}

/// A number of bytes, rounded down.
pub(super) fn byte(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let number: f64 = value.extract()?;
    let exact = value.extract::<u64>().ok();
    let rounded = (number >= 0.0 && number < u64::MAX as f64).then_some(number as u64);
    let wrong = || PyValueError::new_err(format!("bytes are from 0 to 2**64 - 1, not {value}"));
    exact.or(rounded).ok_or_else(wrong)
}

/// A number of pixels.
pub(super) fn pixels(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let number: i128 = value.extract()?;
    let wrong = || PyValueError::new_err(format!("a picture cannot be {number} pixels large"));
    usize::try_from(number).map_err(|_| wrong())
}
