//! PyTorch's caching allocator, replayed from a trace: the block of every allocation, the segments,
//! and whether each placement is the one that the allocator's rules predict.
//!
//! A trace has the requested sizes and the addresses; blocks and free memory follow from the rules
//! ([`rules`]), the segments at the end and the segment events. `extents` goes back from the end to the
//! segments at the start, `start` finds the blocks there, `forward` applies every event to a
//! [`heap::Heap`] and compares. With the size of every block known, the state at any event is a
//! question of intervals ([`state`]), and so are the curves ([`curves`]).
//!
//! # Invariants
//!
//! In a whole recording no counter of [`Contradictions`] is above 0, every placement is as predicted,
//! and the state after the last event is the file's, block by block. Tests hold this for all real
//! recordings, whole and cut anywhere.
//!
//! # Cost
//!
//! About 100 ns an event; 8 bytes an allocation.

pub mod addresses;
pub mod conf;
pub mod curves;
pub mod domains;
pub mod extents;
mod forward;
pub mod growth;
pub mod heap;
pub mod oom;
pub mod pending;
pub mod pins;
pub mod rules;
pub mod simulate;
mod start;
pub mod state;
pub mod whatif;

use serde::{Deserialize, Serialize};

pub use extents::Extent;
pub use growth::{Cause, Growth, Release, ReleaseCause};
pub use heap::Domain;
pub use oom::{Oom, Verdict};
pub use rules::{Rules, Ties};

use crate::lifetimes::{Allocations, BEFORE, Lifetimes};
use crate::snapshot::{HOST, Snapshot};

/// How often a file contradicts the rules of the allocator. All are 0 in a whole recording.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Contradictions {
    /// Allocations that do not begin where a free block begins.
    pub not_free: u64,
    /// Allocations in a free block that is too small.
    pub too_small: u64,
    /// Allocations in memory for other sizes or of another stream.
    pub wrong_domain: u64,
    /// Frees of what has no block.
    pub unplaced_frees: u64,
    /// Segments that were released while in use.
    pub busy_releases: u64,
    /// Segments that overlap others.
    pub segment_overlaps: u64,
    /// Segment events about segments that are not in the file.
    pub absent_segments: u64,
    /// Blocks at the end that are not those of the file.
    pub final_blocks: u64,
    /// `snapshot` events whose bytes are not the active bytes.
    pub snapshot_bytes: u64,
    /// Placements that the rules do not predict.
    pub mispredicted: u64,
}

impl Contradictions {
    /// Each counter with its description.
    #[must_use]
    pub fn counters(&self) -> [(&'static str, u64); 10] {
        [
            ("allocations that do not begin at a free block", self.not_free),
            ("allocations in a block that is too small", self.too_small),
            ("allocations in memory of another stream or size class", self.wrong_domain),
            ("frees of unknown blocks", self.unplaced_frees),
            ("segments released while in use", self.busy_releases),
            ("overlapping segments", self.segment_overlaps),
            ("segment events without their segment", self.absent_segments),
            ("blocks at the end that differ from the file's", self.final_blocks),
            ("`snapshot` events with other bytes", self.snapshot_bytes),
            ("placements that the rules do not predict", self.mispredicted),
        ]
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counters().iter().map(|(_, count)| count).sum()
    }

    /// All of them; None if that is more than 64 bits can hold, which only a stranger's file can have.
    #[must_use]
    pub fn checked_total(&self) -> Option<u64> {
        self.counters().iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count))
    }
}

/// What the replay of one device's trace found.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Replay {
    /// The settings in force.
    pub rules: Rules,
    /// Whether the file contains its settings.
    pub has_settings: bool,
    /// The block of each allocation, in bytes.
    pub block_size: Vec<u64>,
    /// Blocks older than the trace whose size is only known up to 1 MiB.
    pub uncertain_blocks: u64,
    /// Allocations that were given back before the trace, but not free yet, in ascending order.
    pub pending_at_start: Vec<u32>,
    /// All memory that came from the device, by the event that it came with.
    pub extents: Vec<Extent>,
    /// Why memory was requested from the device.
    pub growths: Vec<Growth>,
    /// Why memory went back to the device.
    pub releases: Vec<Release>,
    /// The requests that failed.
    pub ooms: Vec<Oom>,
    /// Allocations of the trace whose placement could be predicted.
    pub placements: u64,
    /// Those that are where the rules put them.
    pub as_recorded: u64,
    /// What does not fit.
    pub contradictions: Contradictions,
    /// The first event that does not fit.
    pub first_contradiction: Option<usize>,
}

impl Replay {
    /// Whether nothing contradicts the rules.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.contradictions.total() == 0
    }

    /// Since which event an allocation has waited for another stream; None if it never did.
    #[must_use]
    pub fn pending_since(&self, all: &Allocations, index: usize) -> Option<i64> {
        let request = all.free_requested[index];
        let is_old = || self.pending_at_start.binary_search(&(index as u32)).is_ok();
        (request != BEFORE || is_old()).then_some(request)
    }
}

/// Replays the trace of one device. Settings that the file does not contain are found by trying.
#[must_use]
pub fn replay(snapshot: &Snapshot, which: usize, lifetimes: &Lifetimes) -> Replay {
    let has_settings = !snapshot.settings.is_empty();
    let rules = Rules::of(&snapshot.settings);
    let run = |rules: Rules| {
        let mut replay = forward::run(snapshot, which, lifetimes, rules);
        replay.has_settings = has_settings;
        replay
    };
    let mut best = run(rules.clone());
    if lifetimes.device == HOST {
        return best;
    }
    for rules in variants(&rules, has_settings) {
        if best.is_exact() {
            break;
        }
        let other = run(rules);
        if other.contradictions.total() < best.contradictions.total() {
            best = other;
        }
    }
    best
}

/// Other settings and rules that would explain a trace that contradicts the first.
fn variants(rules: &Rules, has_settings: bool) -> Vec<Rules> {
    // A later release, and a fork of the allocator for another kind of device.
    let mut all = vec![Rules { ties: Ties::Segment, ..rules.clone() }, rules.of_npu()];
    if !has_settings {
        let other = Rules { is_expandable: !rules.is_expandable, ..rules.clone() };
        all.extend([other.of_npu(), other]);
        for divisions in [2, 4, 8, 16] {
            all.push(Rules { divisions: [divisions; 16], ..rules.clone() });
        }
        for megabytes in [20, 32, 64, 128, 256, 512] {
            all.push(Rules { max_split: megabytes << 20, ..rules.clone() });
        }
    }
    all
}
