//! A memory snapshot as PyTorch records it, in columns and tables.
//!
//! [`read`] takes the bytes of a pickle or of JSON. Both drive the same `build::Build`, which knows
//! PyTorch's keys; `shortcut` is a faster way through events and stacks that gives the same result;
//! `feed` brings events to their columns on a second thread; `assemble` turns what was built into a
//! [`Snapshot`].

mod assemble;
mod build;
mod direct;
pub mod event_text;
pub mod events;
mod feed;
pub mod intern;
mod json;
mod raw_stacks;
mod records;
mod shortcut;
pub mod stack_text;
mod template;
mod texts;

use std::collections::BTreeMap;
use std::ops::Range;

pub use events::{Action, Event, Events, Extras};
pub use feed::Follow;
pub use intern::{Frame, Stacks, Strings};

use crate::error::{Error, Result};
use crate::pickle;
use crate::progress::Progress;

/// The number that pinned host memory has among the devices.
pub const HOST: i32 = -1;

/// The most devices of a file. PyTorch is built for up to 128.
pub(crate) const MAX_DEVICES: usize = 1024;

/// The content of a snapshot file.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The strings that ids elsewhere stand for.
    pub strings: Strings,
    /// Frames and stacks.
    pub stacks: Stacks,
    /// The events of all devices, each device's in one range.
    pub events: Events,
    /// The names of the actions, by their number.
    pub actions: Vec<String>,
    /// The devices, in order; the host's pinned memory, if recorded, comes last.
    pub traces: Vec<Trace>,
    /// The segments, in the file's order.
    pub segments: Vec<Segment>,
    /// The blocks of all segments.
    pub blocks: Vec<Block>,
    /// The past of blocks in torch 2.0's layout.
    pub history: Vec<History>,
    /// Memory pools that events name.
    pub pools: Vec<(i64, i64)>,
    /// Lists of strings (forward stacks) that events name.
    pub text_lists: Vec<Vec<u32>>,
    /// Annotations of the program, with times.
    pub annotations: Vec<Annotation>,
    /// The allocator's settings, by dotted name.
    pub settings: Vec<(String, serde_json::Value)>,
    /// Source files that the recorder put in: path, text.
    pub source_code: Vec<(u32, u32)>,
    /// Further top-level entries, as JSON.
    pub metadata: Vec<(String, serde_json::Value)>,
    /// Whether the file has the final state of the devices' memory.
    pub has_device_segments: bool,
    /// Whether the file has the final state of pinned host memory.
    pub has_host_segments: bool,
    /// What was not as expected.
    pub oddities: Oddities,
}

/// One device's trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The device's ordinal, or [`HOST`].
    pub device: i32,
    /// Its events, as rows of [`Snapshot::events`].
    pub rows: Range<usize>,
}

/// A range of memory that the allocator got from the device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)] // The format's own names.
pub struct Segment {
    pub device: i32,
    pub address: u64,
    pub total_size: u64,
    pub allocated_size: u64,
    pub active_size: u64,
    pub requested_size: u64,
    pub stream: i64,
    /// 'small' or 'large', a string id.
    pub segment_type: u32,
    pub pool: (i64, i64),
    pub is_expandable: bool,
    pub stack: u32,
    /// Rows of [`Snapshot::blocks`].
    pub blocks: Range<usize>,
}

/// The state of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlockState {
    /// In use.
    Allocated,
    /// Given back, but not free yet.
    PendingFree,
    /// Free.
    #[default]
    Inactive,
}

impl BlockState {
    /// Whether the block takes memory.
    #[must_use]
    pub fn is_active(self) -> bool {
        self != Self::Inactive
    }

    /// The format's name of the state.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allocated => "active_allocated",
            Self::PendingFree => "active_pending_free",
            Self::Inactive => "inactive",
        }
    }
}

/// A part of a segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// Where it begins.
    pub address: u64,
    /// Its bytes, rounded up by the allocator.
    pub size: u64,
    /// The requested bytes; stale in an inactive block.
    pub requested_size: u64,
    /// Its state.
    pub state: BlockState,
    /// The stack that allocated it.
    pub stack: u32,
    /// Rows of [`Snapshot::history`], the newest first.
    pub history: Range<usize>,
}

/// One allocation in a block's past (torch 2.0).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)] // The format's own names.
pub struct History {
    pub address: u64,
    pub real_size: u64,
    pub stack: u32,
}

/// A mark that the program set in the trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Annotation {
    /// What it is called, a string id.
    pub name: u32,
    /// 'START' or 'END', a string id.
    pub stage: u32,
    /// The device it belongs to, if recorded.
    pub device: Option<i32>,
    /// When, in Unix microseconds.
    pub time_us: u64,
}

/// What a file has that we did not expect, with how often: reported, never fatal.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Oddities {
    /// Fields that we do not know.
    pub unknown_fields: BTreeMap<String, u64>,
    /// Actions that we do not know.
    pub unknown_actions: BTreeMap<String, u64>,
    /// Fields whose value is not of the type that the format gives.
    pub wrong_types: BTreeMap<String, u64>,
}

impl Oddities {
    /// Returns them as sentences.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let list = |counts: &BTreeMap<String, u64>, what: &str| {
            counts
                .iter()
                .map(|(name, count)| format!("{what} `{name}` ({count}×)"))
                .collect::<Vec<_>>()
        };
        let mut all = list(&self.unknown_actions, "unknown action");
        all.extend(list(&self.unknown_fields, "unknown field"));
        all.extend(list(&self.wrong_types, "value of an unexpected type in"));
        all
    }
}

impl Snapshot {
    /// Whether the file has the final state of a device's memory.
    #[must_use]
    pub fn has_segments(&self, device: i32) -> bool {
        if device == HOST { self.has_host_segments } else { self.has_device_segments }
    }

    /// The size of the block that is in use at an address at the end; None if there is none.
    #[must_use]
    pub fn block_size(&self, device: i32, address: u64) -> Option<u64> {
        let segments = self.segments.iter().filter(|segment| segment.device == device);
        let mut blocks = segments.flat_map(|segment| &self.blocks[segment.blocks.clone()]);
        let block = blocks.find(|block| block.state.is_active() && block.address == address);
        block.map(|block| block.size)
    }

    /// Leaves only what belongs to one device.
    pub fn keep_device(&mut self, device: i32) -> Result<()> {
        if !self.traces.iter().any(|trace| trace.device == device) {
            let available = self.traces.iter().map(|trace| trace.device).collect();
            return Err(Error::NoDevice { device, available });
        }
        self.traces.retain(|trace| trace.device == device);
        self.annotations.retain(|one| one.device.is_none_or(|its| its == device));
        let blocks = std::mem::take(&mut self.blocks);
        self.segments.retain(|segment| segment.device == device);
        for segment in &mut self.segments {
            let first = self.blocks.len();
            self.blocks.extend_from_slice(&blocks[segment.blocks.clone()]);
            segment.blocks = first..self.blocks.len();
        }
        Ok(())
    }
}

/// Reads the bytes of a pickle, or of JSON if they do not begin as a pickle does. The follower sees
/// the events while they are read.
pub fn read<F: Follow + Default + Send>(
    bytes: &[u8],
    progress: &Progress<'_>,
) -> Result<(Snapshot, F)> {
    match read_with(bytes, progress, true) {
        // A shortcut's failure on an odd file is no reason to refuse it; the machine decides and explains.
        Err(Error::Malformed { .. }) => read_with(bytes, progress, false),
        result => result,
    }
}

/// The same without shortcuts: slower, and the model that [`read`] is compared with.
pub fn read_plainly(bytes: &[u8], progress: &Progress<'_>) -> Result<Snapshot> {
    Ok(read_with::<()>(bytes, progress, false)?.0)
}

/// Events of real files take 80 to 200 bytes.
const LIKELY_EVENT_BYTES: usize = 75;

fn read_with<F: Follow + Default + Send>(
    bytes: &[u8],
    progress: &Progress<'_>,
    use_shortcuts: bool,
) -> Result<(Snapshot, F)> {
    let mut follower = F::default();
    follower.expect(bytes.len() / LIKELY_EVENT_BYTES);
    let (feed, worker) = feed::feed(follower);
    let mut build = build::Build::new(feed, use_shortcuts.then(Box::default), bytes.len());
    let (root, end, events, follower) = if bytes.len() < feed::WORTH_A_THREAD {
        let (root, end) = run(bytes, &mut build, progress)?;
        let (events, follower) = worker.run();
        (root, end, events, follower)
    } else {
        std::thread::scope(|scope| {
            let worker = std::thread::Builder::new()
                .spawn_scoped(scope, || worker.run())
                .map_err(|error| Error::io(std::path::Path::new("a second thread"), error))?;
            let (root, end) = run(bytes, &mut build, progress)?;
            let (events, follower) = match worker.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            Ok((root, end, events, follower))
        })?
    };
    let (snapshot, has_moved) = assemble::assemble(build, events, root, end)?;
    // A follower knows rows by their old numbers.
    Ok((snapshot, if has_moved { F::default() } else { follower }))
}

/// Runs through the bytes and sends all events off. Returns the root, and where it ends.
fn run(
    bytes: &[u8],
    build: &mut build::Build,
    progress: &Progress<'_>,
) -> Result<(pickle::Value, usize)> {
    let done = if bytes.first() == Some(&pickle::op::PROTO) {
        pickle::run(bytes, build, progress)
    } else {
        json::run(bytes, build, progress).map(|root| (root, bytes.len()))
    };
    build.events.finish();
    done
}
