//! A pickle that torch did not write: a dict of NumPy arrays, results of an evaluation.

use super::files::CheckpointFile;
use super::legacy::{self, Stream};
use super::table::Table;
use super::values::{self, Node, Values};
use super::walk;
use super::{Content, Tree};
use crate::error::{Error, Result};
use crate::pickle::Value;
use crate::progress::Progress;

/// Reads such a file.
pub(super) fn read(file: &CheckpointFile, number: u32, progress: &Progress<'_>) -> Result<Content> {
    let mut stream = Stream::new(file.map()?, 0, number);
    let (values, root, pickle) = stream.pickle(progress)?;
    if values::is_long(root) && stream.at < file.map()?.len() {
        // The number of torch's old files, further behind than torch writes it.
        return legacy::read(file.map()?, number, progress);
    }
    if is_snapshot(&values, root) {
        let reason = "it is a memory snapshot, not a checkpoint: `snapviewer info` reads it";
        return Err(Error::checkpoint(reason, 0));
    }
    let mut table = Table::default();
    let (tensors, tensor_of) = walk::tensors(&values, root, "", &mut table, progress)?;
    let mut warnings = table.warnings;
    if (stream.at as u64) < file.len() {
        warnings.push(format!("bytes follow the pickle's end (at byte {})", stream.at));
    }
    let has_packed = values.globals().any(|global| global == ("torch.storage", "_load_from_bytes"));
    if has_packed {
        warnings.push(
            "its tensors are packed inside its pickle, and not listed: save it with torch.save"
                .to_owned(),
        );
    }
    Ok(Content {
        format: "pickle",
        stretches: stream.stretches,
        tensors,
        trees: vec![Tree { values, root, tensor_of, pickle }],
        imports: stream.imports,
        warnings,
        ..Content::default()
    })
}

/// Whether this is what `torch.cuda.memory._snapshot` returns.
fn is_snapshot(values: &Values, root: Value) -> bool {
    let Some(Node::Dict(entries)) = values.node(root) else { return false };
    let has =
        |name| entries.as_chunks().0.iter().any(|&[key, _]| values.as_text(key) == Some(name));
    has("segments") && has("device_traces")
}
