//! Restores the lifetimes of allocations from the columns of `allocations.json`.
//!
//! All that comes from a file is checked before it is used, so that everything after may trust it:
//! every event, stack and order. Counts come first: a few bytes of a deflated column can stand for a
//! thousand times as many numbers, so the allocations must be as many as `elements.db`, where they are
//! not deflated, can have rows, and the events must have some relation to them ([`most_events`]).
//!
//! # Cost
//!
//! Two threads; at 5M events 0.14 s, half of it the system handing out 170 MB.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::bundle::document::{Device, damaged};
use crate::error::Result;
use crate::lifetimes::{
    Allocations, BEFORE, CATEGORIES, Check, Lifetimes, NO_STACK, are_pools, flag, peak_of,
};
use crate::snapshot::MAX_DEVICES;
use crate::store::pack::{self, unzigzag};

/// Bytes that a row of the table `allocations` takes at least: its length, key, header and columns.
const ROW_BYTES: u64 = 13;

/// The most events of one of so many devices: allocations have up to three each, other events are few
/// or have times, which differ. The writer keeps to it ([`super::document`]).
pub(super) fn most_events(devices: usize, allocations: usize, time_bytes: usize) -> usize {
    ((1_usize << 20) / devices.max(1))
        .saturating_add(allocations.saturating_mul(8))
        .saturating_add(time_bytes)
}

/// Refuses counts that the files cannot hold, before anything is unpacked.
pub(super) fn check_counts(devices: &[Device<'_>], elements_bytes: u64) -> Result<()> {
    let allocations = devices.iter().fold(0, |sum: usize, one| sum.saturating_add(one.allocations));
    let is_plausible = |one: &Device<'_>| {
        // Base64: four letters for three bytes.
        let time_bytes = one.columns.time_us.len() / 4 * 3;
        one.events <= most_events(devices.len(), one.allocations, time_bytes)
            && one.oom_events.len() <= one.events
    };
    if devices.len() > MAX_DEVICES {
        return Err(damaged("it has more than 1024 devices"));
    }
    if allocations as u64 > elements_bytes / ROW_BYTES || !devices.iter().all(is_plausible) {
        return Err(damaged("it cannot have that many allocations or events"));
    }
    Ok(())
}

/// The times of the events (none if none was recorded), and all else.
pub(super) fn lifetimes(stored: &Device<'_>, stacks: u32) -> Result<(Vec<u64>, Lifetimes)> {
    if stored.allocations >= NO_STACK as usize {
        return Err(damaged("it has too many allocations"));
    }
    if !are_pools(&stored.pools) {
        return Err(damaged("its memory pools are not in order"));
    }
    let (places, lives) = std::thread::scope(|scope| {
        let places = scope.spawn(|| places(stored, stacks));
        let lives = lives(stored).and_then(|all| Ok((totals(&all, stored.events)?, all)));
        (places.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), lives)
    });
    let (times, places) = places?;
    let ((initial_bytes, totals), lives) = lives?;
    // The first of the highest.
    let most = totals.iter().copied().max();
    let highest = most.and_then(|most| Some((totals.iter().position(|&one| one == most)?, most)));
    let (peak_event, peak_bytes) = peak_of(initial_bytes, highest);
    let result = Lifetimes {
        device: stored.device,
        allocations: Allocations {
            size: lives.size,
            alloc_event: lives.alloc_event,
            free_event: lives.free_event,
            free_requested: lives.free_requested,
            ..places
        },
        pools: stored.pools.clone(),
        totals,
        initial_bytes,
        peak_bytes,
        peak_event,
        reserved_initial_bytes: stored.reserved_initial_bytes,
        reserved_peak_bytes: stored.reserved_peak_bytes,
        oom_events: stored.oom_events.clone(),
        check: stored.check.clone(),
    };
    check(stored, &result)?;
    Ok((times, result))
}

/// Compares the figures with those of the allocations.
fn check(stored: &Device<'_>, result: &Lifetimes) -> Result<()> {
    let is_ascending = stored.oom_events.is_sorted_by(|one, next| one < next);
    if !is_ascending || stored.oom_events.last().is_some_and(|&last| last >= stored.events as u64) {
        return Err(damaged("its OOM events are out of range or order"));
    }
    let figures = (stored.initial_bytes, stored.peak_bytes, stored.peak_event, stored.final_bytes);
    let computed =
        (result.initial_bytes, result.peak_bytes, result.peak_event, result.final_bytes());
    if figures != computed || stored.check != recomputed(stored, result) {
        return Err(damaged("its figures do not follow from its allocations"));
    }
    Ok(())
}

/// The check as the allocations have it; what only the snapshot's segments and events show stays.
fn recomputed(stored: &Device<'_>, result: &Lifetimes) -> Check {
    let all = &result.allocations;
    let count = |mask| all.flags.iter().filter(|&&flags| flags & mask != 0).count() as u64;
    let older = all.alloc_event.iter().filter(|&&event| event == BEFORE).count() as u64;
    Check {
        initial_bytes: result.initial_bytes,
        peak_bytes: result.peak_bytes,
        final_bytes: result.final_bytes(),
        reserved_peak_bytes: stored.reserved_peak_bytes,
        implicit_frees: count(flag::IMPLICIT_FREE),
        missing_blocks: count(flag::MISSING_BLOCK),
        unknown_frees: older.saturating_sub(count(flag::ONLY_IN_SEGMENTS)),
        ..stored.check.clone()
    }
}

/// Unpacks a column and converts each number.
fn decode<T>(
    text: &str,
    count: usize,
    reason: &'static str,
    one: impl FnMut(u64) -> Option<T>,
) -> Result<Vec<T>> {
    let packed = STANDARD.decode(text).map_err(|_| damaged("a column is not base64"))?;
    pack::unpack_as(&packed, count, reason, one).map_err(damaged)
}

/// The times of the events, and the address, stream, stacks, pool and category of the allocations.
fn places(stored: &Device<'_>, stacks: u32) -> Result<(Vec<u64>, Allocations)> {
    let (count, columns) = (stored.allocations, &stored.columns);
    let no_stack = "a stack is out of range";
    let stack = |value: u64| u32::try_from(value).ok().filter(|&stack| stack < stacks);
    let some_stack = |value: u64| if value == 0 { Some(NO_STACK) } else { stack(value - 1) };
    let times = decode(&columns.time_us, stored.events, "", Some)?;
    let has_times = times.iter().any(|&time| time != 0);
    let allocations = Allocations {
        address: decode(&columns.address, count, "", Some)?,
        stream: decode(&columns.stream, count, "", |value| Some(unzigzag(value) as i64))?,
        stack: decode(&columns.stack, count, no_stack, stack)?,
        free_stack: decode(&columns.free_stack, count, no_stack, some_stack)?,
        flags: decode(&columns.flags, count, "a flag is wrong", |value| u8::try_from(value).ok())?,
        pool: decode(&columns.pool, count, "a memory pool is out of range", |value| {
            u16::try_from(value).ok().filter(|&pool| usize::from(pool) <= stored.pools.len())
        })?,
        category: decode(&columns.category, count, "a category is out of range", |value| {
            u8::try_from(value).ok().filter(|&one| usize::from(one) <= CATEGORIES.len())
        })?,
        ..Allocations::default()
    };
    Ok((if has_times { times } else { Vec::new() }, allocations))
}

/// The sizes and the lifetimes of the allocations.
fn lives(stored: &Device<'_>) -> Result<Allocations> {
    let (count, columns) = (stored.allocations, &stored.columns);
    let events = i64::try_from(stored.events).map_err(|_| damaged("it has too many events"))?;
    let event = |value: u64| i64::try_from(value).ok().filter(|&event| event <= events);
    let out_of_range = "an event is out of range";
    let mut last = BEFORE;
    let alloc_event =
        decode(&columns.alloc_event, count, "its allocations are not in order", |value| {
            let alloc = event(value)? - 1;
            (alloc >= std::mem::replace(&mut last, alloc)).then_some(alloc)
        })?;
    let mut allocs = alloc_event.iter();
    let free_event = decode(&columns.free_event, count, out_of_range, |value| {
        // At least one event later, at most after the last.
        let life = i64::try_from(value).ok().filter(|&life| life > 0)?;
        life.checked_add(*allocs.next()?).filter(|&free| free <= events)
    })?;
    let mut lives = alloc_event.iter().zip(&free_event);
    let free_requested = decode(&columns.free_requested, count, out_of_range, |value| {
        let (&alloc, &free) = lives.next()?;
        match i64::try_from(value).ok()? {
            0 => Some(BEFORE),
            pending => {
                Some(free - (pending - 1)).filter(|&request| request > alloc && request < events)
            }
        }
    })?;
    let size = decode(&columns.size, count, "", Some)?;
    Ok(Allocations { size, alloc_event, free_event, free_requested, ..Allocations::default() })
}

/// Live bytes before the first event and after each.
#[allow(clippy::slow_vector_initialization)] // It is the quicker one here; see below.
fn totals(all: &Allocations, events: usize) -> Result<(u64, Vec<u64>)> {
    // So that no sum below can overflow.
    let sum = all.size.iter().try_fold(0_u64, |sum, &size| sum.checked_add(size));
    sum.ok_or_else(|| damaged("its sizes add up to more than 64 bits can hold"))?;
    let mut initial = 0;
    // Changes first, one more for those that never end; then their sums.
    let mut totals = Vec::with_capacity(events + 1);
    // Written, not only asked for: the system would hand out each page twice.
    totals.resize(events + 1, 0_u64);
    for ((&size, &alloc), &free) in all.size.iter().zip(&all.alloc_event).zip(&all.free_event) {
        match usize::try_from(alloc) {
            Ok(alloc) => totals[alloc] = totals[alloc].wrapping_add(size),
            Err(_) => initial += size,
        }
        let free = free as usize;
        totals[free] = totals[free].wrapping_sub(size);
    }
    totals.pop();
    let mut live = initial;
    for total in &mut totals {
        live = live.wrapping_add(*total);
        *total = live;
    }
    Ok((initial, totals))
}
