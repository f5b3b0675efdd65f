//! What must hold for any bytes at all.

pub mod archive;
pub mod bundle;
pub mod checkpoint;
pub mod columns;
#[path = "../../tests/common/mod.rs"]
mod common;
pub mod database;
pub mod replay;
mod samples;
pub mod text;
mod write;

use std::collections::HashSet;

use snapviewer::error::{Error, Result};
use snapviewer::lifetimes::{self, Lifetimes, NO_STACK};
use snapviewer::progress::Progress;
use snapviewer::snapshot::{
    self, Action, Annotation, Block, Event, Extras, HOST, History, Segment, Snapshot,
};

pub use write::pickle;

/// A packed file may reach this limit on one way only, because templates make fewer objects.
const MAY_DIFFER: &str = "more objects than a file of this length";

/// Reads bytes the fast way and the plain way. Neither may panic. Both must give the same snapshot
/// and the same lives, or refuse the bytes (which of several faults they name may differ).
///
/// # Panics
///
/// If they do not.
pub fn check(bytes: &[u8]) {
    let progress = Progress::none();
    match (lifetimes::read(bytes, &progress), plainly(bytes, &progress)) {
        (Ok((fast, fast_lives)), Ok((plain, plain_lives))) => {
            assert_same(&fast, &plain);
            assert_same_lives(&fast_lives, &plain_lives, &Both { fast: &fast, plain: &plain });
            replay::check(&fast, &fast_lives);
        }
        (Ok(_), Err(error)) => assert_may_differ(&error, "only the fast way reads this"),
        (Err(error), Ok(_)) => assert_may_differ(&error, "only the plain way reads this"),
        (Err(_), Err(_)) => {}
    }
}

fn assert_may_differ(error: &Error, what: &str) {
    let error = error.to_string();
    assert!(error.contains(MAY_DIFFER), "{what}; the other one says: {error}");
}

fn plainly(bytes: &[u8], progress: &Progress<'_>) -> Result<(Snapshot, Vec<Lifetimes>)> {
    let snapshot = snapshot::read_plainly(bytes, progress)?;
    let lives = lifetimes::lifetimes(&snapshot)?;
    Ok((snapshot, lives))
}

fn assert_same_lives(fast: &[Lifetimes], plain: &[Lifetimes], both: &Both<'_>) {
    assert_eq!(fast.len(), plain.len(), "devices");
    for (one, other) in fast.iter().zip(plain) {
        let mut other = other.clone();
        for (column, others) in [
            (&one.allocations.stack, &mut other.allocations.stack),
            (&one.allocations.free_stack, &mut other.allocations.free_stack),
        ] {
            assert_eq!(column.len(), others.len(), "allocations");
            for (&id, other) in column.iter().zip(others) {
                assert_eq!(id == NO_STACK, *other == NO_STACK, "a stack that is not known");
                if id != NO_STACK {
                    both.same_stack(id, *other);
                }
                *other = id;
            }
        }
        assert_eq!(one, &other, "lifetimes");
    }
}

/// Compares what two snapshots say. Ids and rows may differ: templates look strings
/// and actions up earlier.
fn assert_same(fast: &Snapshot, plain: &Snapshot) {
    let both = Both { fast, plain };
    assert_eq!(fast.traces.len(), plain.traces.len(), "traces");
    let mut stacks = HashSet::new();
    for (trace, other) in fast.traces.iter().zip(&plain.traces) {
        assert_eq!(trace.device, other.device, "devices");
        assert_eq!(trace.rows.len(), other.rows.len(), "events of device {}", trace.device);
        for (row, other_row) in trace.rows.clone().zip(other.rows.clone()) {
            let (one, other) = (fast.events.get(row), plain.events.get(other_row));
            let Event { action, stack, extras, .. } = one;
            let same = Event { action, stack, extras, ..other };
            assert_eq!(one, same, "event in row {row}");
            both.same_action(action, other.action);
            stacks.insert((stack, other.stack));
            both.same_extras(fast.events.extras(row), plain.events.extras(other_row), row);
        }
    }
    assert_eq!(fast.segments.len(), plain.segments.len(), "segments");
    for (one, other) in fast.segments.iter().zip(&plain.segments) {
        stacks.insert((one.stack, other.stack));
        both.same_text(one.segment_type, other.segment_type);
        let (stack, segment_type) = (one.stack, one.segment_type);
        assert_eq!(one, &Segment { stack, segment_type, ..other.clone() }, "segment");
    }
    assert_eq!(fast.blocks.len(), plain.blocks.len(), "blocks");
    for (one, other) in fast.blocks.iter().zip(&plain.blocks) {
        stacks.insert((one.stack, other.stack));
        assert_eq!(one, &Block { stack: one.stack, ..other.clone() }, "block");
    }
    assert_eq!(fast.history.len(), plain.history.len(), "history");
    for (one, other) in fast.history.iter().zip(&plain.history) {
        stacks.insert((one.stack, other.stack));
        assert_eq!(one, &History { stack: one.stack, ..other.clone() }, "history");
    }
    for (one, other) in stacks {
        both.same_stack(one, other);
    }
    assert_eq!(fast.annotations.len(), plain.annotations.len(), "annotations");
    for (one, other) in fast.annotations.iter().zip(&plain.annotations) {
        both.same_text(one.name, other.name);
        both.same_text(one.stage, other.stage);
        let (name, stage) = (one.name, one.stage);
        assert_eq!(one, &Annotation { name, stage, ..other.clone() }, "annotation");
    }
    assert_eq!(fast.source_code.len(), plain.source_code.len(), "source code");
    for (one, other) in fast.source_code.iter().zip(&plain.source_code) {
        both.same_text(one.0, other.0);
        both.same_text(one.1, other.1);
    }
    assert_eq!(fast.settings, plain.settings, "settings");
    assert_eq!(fast.metadata, plain.metadata, "metadata");
    assert_eq!(fast.oddities, plain.oddities, "oddities");
    for device in [HOST, 0] {
        let has = |s: &Snapshot| s.has_segments(device);
        assert_eq!(has(fast), has(plain), "whether device {device} has segments");
    }
}

struct Both<'a> {
    fast: &'a Snapshot,
    plain: &'a Snapshot,
}

impl Both<'_> {
    fn same_text(&self, fast: u32, plain: u32) {
        assert_eq!(self.fast.strings.get(fast), self.plain.strings.get(plain), "a string");
    }

    fn same_action(&self, fast: Action, plain: Action) {
        let name = |s: &Snapshot, action: Action| s.actions.get(action.0 as usize).cloned();
        assert_eq!(name(self.fast, fast), name(self.plain, plain), "an action");
    }

    fn same_stack(&self, fast: u32, plain: u32) {
        let (fast, plain) = (self.fast.stacks.get(fast), self.plain.stacks.get(plain));
        assert_eq!(fast.len(), plain.len(), "the length of a stack");
        for (&fast, &plain) in fast.iter().zip(plain) {
            let (fast, plain) = (self.fast.stacks.frame(fast), self.plain.stacks.frame(plain));
            self.same_text(fast.name, plain.name);
            self.same_text(fast.filename, plain.filename);
            assert_eq!(fast.line, plain.line, "the line of a frame");
            fast.fx.iter().zip(&plain.fx).for_each(|(&fast, &plain)| self.same_text(fast, plain));
        }
    }

    fn same_extras(&self, fast: Extras, plain: Extras, row: usize) {
        self.same_text(fast.compile_context, plain.compile_context);
        self.same_text(fast.user_metadata, plain.user_metadata);
        self.same_text(fast.internal_metadata, plain.internal_metadata);
        self.same_text(fast.category, plain.category);
        let pool = |s: &Snapshot, id: u32| Some(s.pools[id.checked_sub(1)? as usize]);
        let pools = (pool(self.fast, fast.pool), pool(self.plain, plain.pool));
        assert_eq!(pools.0, pools.1, "the pool in row {row}");
        let texts = |s: &Snapshot, id: u32| -> Option<Vec<String>> {
            let list = &s.text_lists[id.checked_sub(1)? as usize];
            Some(list.iter().map(|&id| s.strings.get(id).to_owned()).collect())
        };
        let lists =
            (texts(self.fast, fast.forward_frames), texts(self.plain, plain.forward_frames));
        assert_eq!(lists.0, lists.1, "the forward frames in row {row}");
    }
}
