//! Four amounts of memory after each event: requested, allocated, active and reserved.
//!
//! They are those of PyTorch's statistics. *Requested* is what the program asked for, and is in
//! [`Lifetimes::totals`]. *Allocated* are the blocks that the program has; *active* also those that
//! it gave back but another stream may still use; *reserved* is all memory from the device.
//!
//! # Cost
//!
//! `O(events + allocations)`; 4 to 12 bytes an event.

use super::Replay;
use crate::column::Packed;
use crate::lifetimes::{BEFORE, Lifetimes};

/// How many events are packed together.
const CHUNK: usize = 4096;

/// A number after each event, and before the first.
#[derive(Debug, Clone)]
pub struct Curve {
    chunks: Vec<Packed>,
    len: usize,
    /// Before the first event.
    pub initial: u64,
    /// The most.
    pub peak: u64,
    /// The first event with that much, or [`BEFORE`].
    pub peak_event: i64,
}

impl Curve {
    /// Adds up changes: of the start, and of each event.
    fn of(initial: u64, mut changes: Vec<u64>) -> Self {
        let (mut now, mut peak, mut peak_event) = (initial, initial, BEFORE);
        for (event, change) in (0..).zip(&mut changes) {
            now = now.wrapping_add(*change);
            *change = now;
            if now > peak {
                (peak, peak_event) = (now, event);
            }
        }
        let chunks = changes.chunks(CHUNK).map(|chunk| Packed::pack(chunk.iter().copied()));
        Self { chunks: chunks.collect(), len: changes.len(), initial, peak, peak_event }
    }

    /// The number after an event; before the first if it is negative.
    #[must_use]
    pub fn at(&self, event: i64) -> u64 {
        match usize::try_from(event) {
            Ok(event) if self.len > 0 => {
                let event = event.min(self.len - 1);
                self.chunks[event / CHUNK].get(event % CHUNK)
            }
            _ => self.initial,
        }
    }

    /// The numbers after all events.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len).map(|event| self.chunks[event / CHUNK].get(event % CHUNK))
    }
}

/// The curves that a replay adds to the requested bytes.
#[derive(Debug, Clone)]
pub struct Curves {
    /// Blocks that the program has.
    pub allocated: Curve,
    /// Those, and the ones that wait for another stream.
    pub active: Curve,
    /// Memory from the device.
    pub reserved: Curve,
}

impl Curves {
    /// Adds them up.
    #[must_use]
    pub fn of(lifetimes: &Lifetimes, replay: &Replay) -> Self {
        let all = &lifetimes.allocations;
        let events = lifetimes.totals.len();
        let blocks = |ends_at_request: bool| {
            let one = move |index: usize| {
                let free = all.free_event[index];
                let request = replay.pending_since(all, index).filter(|_| ends_at_request);
                (all.alloc_event[index], request.unwrap_or(free), replay.block_size[index])
            };
            (0..all.len()).map(one)
        };
        let extents = replay.extents.iter().map(|one| (one.born, one.died, one.size));
        Self {
            allocated: added_up(blocks(true), events),
            active: added_up(blocks(false), events),
            reserved: added_up(extents, events),
        }
    }
}

/// From (first event, event that ends it, bytes).
fn added_up(parts: impl Iterator<Item = (i64, i64, u64)>, events: usize) -> Curve {
    let mut initial = 0_u64;
    let mut changes = vec![0_u64; events];
    for (from, to, bytes) in parts.filter(|&(from, to, _)| from < to) {
        match usize::try_from(from) {
            Ok(from) => changes[from] = changes[from].wrapping_add(bytes),
            Err(_) => initial = initial.wrapping_add(bytes),
        }
        if let Some(change) = usize::try_from(to).ok().and_then(|to| changes.get_mut(to)) {
            *change = change.wrapping_sub(bytes);
        }
    }
    Curve::of(initial, changes)
}
