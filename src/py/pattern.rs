//! Regular expressions as Python sees them.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::filter::Pattern;

/// A regular expression that takes time linear in what it searches.
#[pyclass(frozen, name = "Pattern", module = "snapviewer")]
pub(super) struct PyPattern(Pattern);

#[pymethods]
impl PyPattern {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        Ok(Self(Pattern::new(text)?))
    }

    /// Whether it matches somewhere in a text.
    fn is_match(&self, text: &Bound<'_, PyString>) -> bool {
        self.0.is_match(&text.to_string_lossy())
    }

    /// Whether a match ends after the first `characters` characters of a text.
    fn ends_behind(&self, text: &Bound<'_, PyString>, characters: usize) -> bool {
        self.0.ends_behind(&text.to_string_lossy(), characters)
    }

    /// Where it matches in a text, in characters.
    fn spans(&self, text: &Bound<'_, PyString>) -> Vec<(usize, usize)> {
        self.0.spans(&text.to_string_lossy())
    }
}
