//! Getters for the records of the core.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// What becomes a tuple; a vector would become a list, which is mutable.
pub(super) struct Tuple<I>(pub I);

impl<'py, I> IntoPyObject<'py> for Tuple<I>
where
    I: IntoIterator<Item: IntoPyObject<'py>, IntoIter: ExactSizeIterator>,
{
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0)
    }
}

/// The methods of a class: a getter for each field, and others. A field without an expression is
/// that of the record that the class derefs to.
macro_rules! getters {
    (
        $class:ident |$this:ident| {
            $($(#[doc = $doc:literal])* $field:ident: $type:ty $(= $get:expr)?),+ $(,)?
        }
        $($others:tt)*
    ) => {
        #[pymethods]
        // A field may be called `from_…` or `new`.
        #[allow(clippy::wrong_self_convention, clippy::new_ret_no_self)]
        impl $class {
            $($(#[doc = $doc])*
            #[getter]
            fn $field(&self) -> $type {
                let $this = self;
                $crate::py::getters::got!($this.$field $(, $get)?)
            })+

            $($others)*
        }
    };
}

/// The expression of a getter, or a field.
macro_rules! got {
    ($this:ident.$field:ident) => {
        (**$this).$field
    };
    ($this:ident.$field:ident, $get:expr) => {
        $get
    };
}

/// The record that a class shows.
macro_rules! derefs {
    ($class:ident, |$this:ident| -> $record:ty $get:block) => {
        impl std::ops::Deref for $class {
            type Target = $record;

            fn deref(&self) -> &$record {
                let $this = self;
                $get
            }
        }
    };
}

/// A class that holds a record of the core, with getters for its numbers.
macro_rules! record {
    (
        $(#[$attribute:meta])*
        $class:ident($inner:ty) as $name:tt |$this:ident| { $($fields:tt)+ }
    ) => {
        $(#[$attribute])*
        #[pyclass(frozen, name = $name, module = "snapviewer")]
        pub(super) struct $class(pub $inner);

        $crate::py::getters::derefs!($class, |this| -> $inner { &this.0 });

        $crate::py::getters::getters! { $class |$this| { $($fields)+ } }
    };
}

pub(super) use {derefs, getters, got, record};
