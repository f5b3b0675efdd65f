//! Lends columns that Rust owns to NumPy.

use numpy::ndarray::{ArrayView, Dimension};
use numpy::{Element, PyArray, PyArrayMethods};
use pyo3::prelude::*;

/// A read-only array over a column, which `owner` keeps alive.
#[allow(unsafe_code, clippy::needless_pass_by_value)] // A view is a pointer and its shape.
pub(super) fn lend<'py, T: Element, D: Dimension, C>(
    owner: &Bound<'py, C>,
    column: ArrayView<'_, T, D>,
) -> Bound<'py, PyArray<T, D>> {
    // SAFETY: the column is in memory that the frozen `owner` holds and never changes or frees
    // before it is itself freed; the array keeps a reference to `owner` and is made read-only before
    // anyone sees it.
    let array = unsafe { PyArray::borrow_from_array(&column, owner.clone().into_any()) };
    array.readwrite().make_nonwriteable();
    array
}
