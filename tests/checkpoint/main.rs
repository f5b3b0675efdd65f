//! What pickles of checkpoints hold, from opcodes written by hand.

mod archives;
mod describing;
mod objects;
mod streams;
mod tensors;
mod walking;
mod write;

use snapviewer::checkpoint::Tensor;
use snapviewer::checkpoint::tensors::{StorageId, Storages};
use snapviewer::checkpoint::values::{self, Values};
use snapviewer::checkpoint::walk::{self, TensorOf};
use snapviewer::pickle::Value;
use snapviewer::progress::Progress;

/// Reads a value.
fn read(value: &[u8]) -> (Values, Value) {
    let (values, root, _) = values::read(&write::pickle(value), &Progress::none()).unwrap();
    (values, root)
}

/// A file that has the storages `0` to `9`.
#[derive(Default)]
struct Ten {
    warnings: Vec<String>,
}

impl Storages for Ten {
    fn find(&mut self, id: &StorageId<'_>) -> Option<u32> {
        id.key.parse().ok().filter(|&key| key < 10)
    }

    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// The tensors of a value, and what was warned of.
fn walked(value: &[u8]) -> (Vec<Tensor>, TensorOf, Vec<String>) {
    let (values, root) = read(value);
    let mut storages = Ten::default();
    let (tensors, tensor_of) =
        walk::tensors(&values, root, "", &mut storages, &Progress::none()).unwrap();
    (tensors, tensor_of, storages.warnings)
}

fn names(value: &[u8]) -> Vec<String> {
    walked(value).0.into_iter().map(|tensor| tensor.name).collect()
}
