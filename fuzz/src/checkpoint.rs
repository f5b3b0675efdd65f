//! What must hold for a checkpoint of any bytes at all.

use snapviewer::checkpoint::describe::{self, Sizes};
use snapviewer::checkpoint::files::CheckpointFile;
use snapviewer::checkpoint::open::Checkpoint;
use snapviewer::checkpoint::preview::preview;
use snapviewer::checkpoint::values::Values;
use snapviewer::checkpoint::{Ledger, Storage};
use snapviewer::pickle::Value;
use snapviewer::progress::Progress;

/// How many values of each tree are put into words, and how many tensors are measured.
const LOOKED_AT: usize = 2000;
const MEASURED: usize = 4;
const SMALL: u64 = 1 << 16;

/// Reads bytes as a checkpoint. It may refuse them; what it accepts must add up.
///
/// # Panics
///
/// If it does not.
pub fn check(bytes: Vec<u8>) {
    let file = CheckpointFile::from_vec("fuzzed", bytes);
    let Ok(checkpoint) = Checkpoint::from_file(file, &Progress::none()) else { return };
    let length = checkpoint.file_bytes();
    let Ledger { tensors, unreferenced, pickle, padding, archive } = checkpoint.ledger;
    assert_eq!(tensors + unreferenced + pickle + padding + archive, length, "the ledger");
    let mut stored = 0_u64;
    for Storage { start, packed_bytes, bytes, .. } in &checkpoint.storages {
        assert!(start.checked_add(*packed_bytes).is_some_and(|end| end <= length), "a storage");
        stored = stored.saturating_add(*bytes);
    }
    assert!(checkpoint.unique_bytes() <= stored, "more is reached than there is");
    assert!(checkpoint.wasted_bytes() <= stored, "more is wasted than there is");
    assert!(checkpoint.root_tree < checkpoint.trees.len(), "the root");
    for tree in &checkpoint.trees {
        for &index in tree.tensor_of.values() {
            assert!((index as usize) < checkpoint.tensors.len(), "a tensor of a tree");
        }
        let logical = |index: u32| checkpoint.tensors[index as usize].logical_bytes;
        let sizes = Sizes::new(&tree.values, tree.root, &tree.tensor_of, logical);
        put_into_words(&tree.values, tree.root, &sizes);
    }
    for (index, tensor) in checkpoint.tensors.iter().enumerate().take(LOOKED_AT) {
        let reached = checkpoint.reached_by(tensor);
        assert!(reached <= stored, "a tensor reaches more than there is");
        if index < MEASURED && tensor.logical_bytes <= SMALL {
            drop(checkpoint.measure(index, 8, &Progress::none()));
            drop(checkpoint.compare(index, &checkpoint, index, &Progress::none()));
        }
    }
}

/// Walks over a tree as somebody does who opens every part of it, to some depth.
fn put_into_words(values: &Values, root: Value, sizes: &Sizes) {
    let mut open = vec![(root, 0)];
    let mut looks = 0;
    while let Some((value, depth)) = open.pop() {
        let _ = (describe::type_name(values, value), preview(values, value));
        let _ = (describe::is_container(values, value), sizes.of(values, value));
        let parts = values.parts(value);
        for index in 0..parts.len() {
            looks += 1;
            if looks > LOOKED_AT {
                return;
            }
            let (label, part) = parts.get(values, index).expect("a part that was counted");
            let _ = describe::label(values, label);
            if depth < 8 {
                open.push((part, depth + 1));
            }
        }
        assert!(parts.get(values, parts.len()).is_none());
    }
}
