//! Lends columns that Rust owns to NumPy.

use numpy::ndarray::ArrayView1;
use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::prelude::*;

/// A read-only array over a column, which `owner` keeps alive.
#[allow(unsafe_code)]
pub(super) fn lend<'py, T: Element, C>(
    owner: &Bound<'py, C>,
    column: &[T],
) -> Bound<'py, PyArray1<T>> {
    // SAFETY: the column lies in memory that the frozen `owner` holds and never changes or frees
    // before it is itself freed; the array keeps a reference to `owner` and is made read-only before
    // anybody sees it.
    let array =
        unsafe { PyArray1::borrow_from_array(&ArrayView1::from(column), owner.clone().into_any()) };
    array.readwrite().make_nonwriteable();
    array
}
