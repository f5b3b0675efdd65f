//! Call trees of a recording. The call paths are made at the first use, and kept.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Recording, Subset};
use crate::analysis::paths::{Paths, Way};
use crate::analysis::tree::{Measure, Tree};
use crate::error::Result;

/// Ways of looking at the stacks that were used last; a window shows one or two.
const MAX_WAYS: usize = 4;

/// The call paths that were made, the newest last.
#[derive(Debug, Default)]
pub(super) struct MadePaths(Mutex<Vec<Arc<Paths>>>);

impl Recording {
    /// All call paths, in one way of looking at them.
    pub fn call_paths(&self, way: Way) -> Result<Arc<Paths>> {
        let made = || self.paths.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(paths) = made().iter().find(|paths| paths.way == way) {
            return Ok(Arc::clone(paths));
        }
        let paths = Arc::new(Paths::new(self.stack_texts()?, way));
        let mut made = made();
        if made.len() == MAX_WAYS {
            made.remove(0);
        }
        made.push(Arc::clone(&paths));
        Ok(paths)
    }

    /// The call tree of some of a device's allocations.
    pub fn tree(&self, which: usize, way: Way, measure: Measure, shown: &Subset) -> Result<Tree> {
        let paths = self.call_paths(way)?;
        let shown = self.subset(which, shown)?;
        Ok(Tree::new(paths, &self.devices[which], measure, shown.as_deref()))
    }
}
