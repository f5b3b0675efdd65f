//! Getters for the numbers of a record of the core.

/// The methods of a class: a getter for each field of the record that the class derefs to, and others.
macro_rules! getters {
    ($class:ident { $($(#[doc = $doc:literal])* $field:ident: $type:ty),+ $(,)? } $($others:tt)*) => {
        #[pymethods]
        #[allow(clippy::wrong_self_convention)] // A field may be called `from_…`.
        impl $class {
            $($(#[doc = $doc])*
            #[getter]
            fn $field(&self) -> $type {
                (**self).$field
            })+

            $($others)*
        }
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
    ($(#[$attribute:meta])* $class:ident($inner:ty) as $name:tt { $($fields:tt)+ } $($others:tt)*) => {
        $(#[$attribute])*
        #[pyclass(frozen, name = $name, module = "snapviewer")]
        pub(super) struct $class(pub $inner);

        $crate::py::getters::derefs!($class, |this| -> $inner { &this.0 });

        $crate::py::getters::getters! { $class { $($fields)+ } $($others)* }
    };
}

pub(super) use {derefs, getters, record};
