//! Frees that had to wait: blocks that the program gave back while another stream could still use them.

use std::collections::BTreeMap;

use super::Replay;
use crate::lifetimes::{BEFORE, Lifetimes};

/// The deferred frees of one stream's blocks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    /// The stream that the blocks belong to.
    pub stream: i64,
    /// How many frees waited.
    pub frees: u64,
    /// The bytes of their blocks.
    pub bytes: u64,
    /// The most that waited at one moment.
    pub most_bytes: u64,
    /// The longest wait, in events.
    pub longest_events: u64,
    /// The allocation that waited longest.
    pub longest: u32,
    /// The longest wait in microseconds; 0 without times.
    pub longest_us: u64,
    /// Bytes times microseconds, in units of 1 MiB · 1 µs; 0 without times.
    pub mib_us: u64,
}

/// What waited, by stream. Frees that completed with the next event did not wait. `times` are those of
/// the events, or empty.
#[must_use]
pub fn pending(lifetimes: &Lifetimes, replay: &Replay, times: &[u64]) -> Vec<Pending> {
    let all = &lifetimes.allocations;
    let mut found: BTreeMap<i64, Pending> = BTreeMap::new();
    // Bytes that begin or end to wait, by stream and event.
    let mut changes: Vec<(i64, i64, i128)> = Vec::new();
    let time = |event: i64| {
        let place = usize::try_from(event).unwrap_or(0).min(times.len().saturating_sub(1));
        times.get(place).copied().unwrap_or(0)
    };
    for index in 0..all.len() {
        let Some(since) = replay.pending_since(all, index) else { continue };
        let until = all.free_event[index];
        // At the end of a trace its completion is not recorded; before the trace, its request.
        let events = (until - since).unsigned_abs();
        if events <= 1 && since != BEFORE {
            continue;
        }
        let (stream, size) = (all.stream[index], replay.block_size[index]);
        let one = found.entry(stream).or_insert(Pending { stream, ..Pending::default() });
        one.frees += 1;
        one.bytes = one.bytes.saturating_add(size);
        let waited = time(until).saturating_sub(time(since));
        if events > one.longest_events {
            (one.longest_events, one.longest) = (events, index as u32);
        }
        one.longest_us = one.longest_us.max(waited);
        let product = (u128::from(size) * u128::from(waited)) >> 20;
        one.mib_us = one.mib_us.saturating_add(u64::try_from(product).unwrap_or(u64::MAX));
        changes.push((stream, since, i128::from(size)));
        changes.push((stream, until, -i128::from(size)));
    }
    // Ends come before beginnings at the same event.
    changes.sort_unstable();
    let (mut last, mut now) = (None, 0);
    for (stream, _, change) in changes {
        now = if last.replace(stream) == Some(stream) { now + change } else { change };
        if let Some(one) = found.get_mut(&stream) {
            one.most_bytes = one.most_bytes.max(u64::try_from(now).unwrap_or(0));
        }
    }
    found.into_values().collect()
}
