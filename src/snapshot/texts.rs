//! How long all texts of a snapshot are where each is written out, as in a table or a list of frames.
//!
//! A pickle names a text in two bytes, however long it is: a file of a megabyte could have frames of
//! gigabytes. Those of real files are at most two thirds as long as the file.

use crate::error::{Error, Result};
use crate::snapshot::Snapshot;

/// What any file may have, and what it may have for each of its bytes.
const ALWAYS: usize = 32 << 20;
const PER_BYTE: usize = 8;

/// Refuses a snapshot of a file of this length if its texts are out of proportion.
pub(super) fn check(snapshot: &Snapshot, length: usize) -> Result<()> {
    if bytes(snapshot) > length.saturating_mul(PER_BYTE).saturating_add(ALWAYS) {
        let reason = "its call stacks, marks or segments repeat long texts over and over";
        return Err(Error::malformed(reason, length));
    }
    Ok(())
}

fn bytes(snapshot: &Snapshot) -> usize {
    let text = |id: &u32| snapshot.strings.get(*id).len();
    let lists: Vec<usize> =
        snapshot.text_lists.iter().map(|list| list.iter().map(text).sum()).collect();
    let frames = snapshot.stacks.frames().iter().map(|frame| {
        text(&frame.name) + text(&frame.filename) + frame.fx.iter().map(text).sum::<usize>()
    });
    let extras = snapshot.events.extras_table.items().iter().map(|one| {
        let list = one.forward_frames.checked_sub(1).and_then(|id| lists.get(id as usize));
        [one.compile_context, one.user_metadata, one.internal_metadata, one.category]
            .iter()
            .map(text)
            .sum::<usize>()
            + list.copied().unwrap_or(0)
    });
    let segments = snapshot.segments.iter().map(|one| text(&one.segment_type));
    let annotations = snapshot.annotations.iter().map(|one| text(&one.name) + text(&one.stage));
    let source_code = snapshot.source_code.iter().map(|(path, code)| text(path) + text(code));
    let all = frames.chain(extras).chain(segments).chain(annotations).chain(source_code);
    all.fold(0, usize::saturating_add)
}
