//! `allocations.json`: what drawing needs, in one small file.
//!
//! A JSON object with the figures of each device, readable as they are, and the allocations as packed
//! columns ([`crate::store::pack`]) in base64: 0.4 bytes an event, and 0.8 for the events' times.
//! Totals are not stored: they follow from the allocations.
//!
//! # Invariants
//!
//! What [`read`] returns is what [`write()`] was given. All that comes from a file is checked before
//! it is used, so that everything after may trust it: every event, stack and order.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::lifetimes::{Allocations, BEFORE, Check, Lifetimes, NO_STACK};
use crate::snapshot::Snapshot;
use crate::store::FORMAT_VERSION;
use crate::store::pack::{self, Form, MAX_RATIO, unzigzag, zigzag};

/// What the file's `format` says.
const FORMAT: &str = "snapviewer";

#[derive(Serialize, Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    format: Cow<'a, str>,
    version: u64,
    snapviewer_version: Cow<'a, str>,
    source_format: String,
    warnings: Vec<String>,
    /// How many stacks `elements.db` has.
    stacks: u64,
    #[serde(borrow)]
    devices: Vec<Device<'a>>,
}

/// Enough to say why a file is not one of ours.
#[derive(Deserialize)]
struct Header<'a> {
    #[serde(borrow)]
    format: Cow<'a, str>,
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[allow(clippy::struct_field_names)] // The names are the file's.
struct Device<'a> {
    device: i32,
    events: usize,
    allocations: usize,
    initial_bytes: u64,
    peak_bytes: u64,
    peak_event: i64,
    final_bytes: u64,
    reserved_initial_bytes: u64,
    reserved_peak_bytes: u64,
    oom_events: Vec<u64>,
    check: Check,
    #[serde(borrow)]
    columns: Columns<'a>,
}

/// Packed columns in base64: one number an allocation, but `time_us` one an event.
#[derive(Serialize, Deserialize)]
struct Columns<'a> {
    #[serde(borrow)]
    address: Cow<'a, str>,
    #[serde(borrow)]
    size: Cow<'a, str>,
    /// The sign in the lowest bit.
    #[serde(borrow)]
    stream: Cow<'a, str>,
    /// 1 is the first event, 0 before it.
    #[serde(borrow)]
    alloc_event: Cow<'a, str>,
    /// Events after `alloc_event`.
    #[serde(borrow)]
    free_event: Cow<'a, str>,
    /// 1 + the events before `free_event`, or 0 if there was no request.
    #[serde(borrow)]
    free_requested: Cow<'a, str>,
    #[serde(borrow)]
    stack: Cow<'a, str>,
    /// 1 + the stack, or 0 if it is not known.
    #[serde(borrow)]
    free_stack: Cow<'a, str>,
    #[serde(borrow)]
    flags: Cow<'a, str>,
    #[serde(borrow)]
    time_us: Cow<'a, str>,
}

/// What the file says.
#[derive(Debug)]
pub(super) struct Read {
    pub devices: Vec<Lifetimes>,
    pub times: Vec<Vec<u64>>,
    pub source_format: String,
    pub warnings: Vec<String>,
    pub stacks: u32,
}

/// Makes the file's bytes.
pub(super) fn write(
    snapshot: &Snapshot,
    lifetimes: &[Lifetimes],
    source_format: &str,
) -> Result<Vec<u8>> {
    let traces = snapshot.traces.iter().zip(lifetimes);
    let document = Document {
        format: FORMAT.into(),
        version: FORMAT_VERSION,
        snapviewer_version: env!("CARGO_PKG_VERSION").into(),
        source_format: source_format.to_owned(),
        warnings: snapshot.oddities.sentences(),
        stacks: snapshot.stacks.len() as u64,
        devices: traces
            .map(|(trace, one)| {
                let times: Vec<u64> =
                    trace.rows.clone().map(|row| snapshot.events.time_us(row)).collect();
                device(one, &times)
            })
            .collect(),
    };
    serde_json::to_vec(&document).map_err(|error| Error::bundle(error.to_string()))
}

fn device(one: &Lifetimes, times: &[u64]) -> Device<'static> {
    let all = &one.allocations;
    let frees = || all.free_event.iter().zip(&all.alloc_event);
    let requests = || all.free_requested.iter().zip(&all.free_event);
    let request = |(&request, &free): (&i64, &i64)| {
        if request == BEFORE { 0 } else { (free - request + 1) as u64 }
    };
    Device {
        device: one.device,
        events: one.totals.len(),
        allocations: all.len(),
        initial_bytes: one.initial_bytes,
        peak_bytes: one.peak_bytes,
        peak_event: one.peak_event,
        final_bytes: one.final_bytes(),
        reserved_initial_bytes: one.reserved_initial_bytes,
        reserved_peak_bytes: one.reserved_peak_bytes,
        oom_events: one.oom_events.clone(),
        check: one.check.clone(),
        columns: Columns {
            address: encode(&all.address, Form::Plain),
            size: encode(&all.size, Form::Plain),
            stream: column(all.stream.iter().map(|&stream| zigzag(stream as u64)), Form::Plain),
            alloc_event: column(
                all.alloc_event.iter().map(|&event| (event + 1) as u64),
                Form::Delta,
            ),
            free_event: column(frees().map(|(&free, &alloc)| (free - alloc) as u64), Form::Plain),
            free_requested: column(requests().map(request), Form::Plain),
            stack: column(all.stack.iter().map(|&stack| u64::from(stack)), Form::Plain),
            free_stack: column(
                all.free_stack.iter().map(|&stack| u64::from(stack.wrapping_add(1))),
                Form::Plain,
            ),
            flags: column(all.flags.iter().map(|&flags| u64::from(flags)), Form::Plain),
            time_us: encode(times, Form::Delta),
        },
    }
}

fn column(values: impl Iterator<Item = u64>, form: Form) -> Cow<'static, str> {
    encode(&values.collect::<Vec<_>>(), form)
}

fn encode(values: &[u64], form: Form) -> Cow<'static, str> {
    STANDARD.encode(pack::pack(values, form)).into()
}

/// Reads the file's bytes.
pub(super) fn read(bytes: &[u8]) -> Result<Read> {
    let document: Document<'_> = match serde_json::from_slice(bytes) {
        Ok(document) => document,
        Err(error) => return Err(why_not(bytes, &error)),
    };
    if document.format != FORMAT || document.version != FORMAT_VERSION {
        return Err(wrong(&document.format, document.version));
    }
    let stacks =
        u32::try_from(document.stacks).ok().filter(|&stacks| stacks > 0 && stacks < NO_STACK);
    let stacks = stacks.ok_or_else(|| damaged("it has no stacks"))?;
    let mut result = Read {
        devices: Vec::new(),
        times: Vec::new(),
        source_format: document.source_format,
        warnings: document.warnings,
        stacks,
    };
    for stored in document.devices {
        if result.devices.iter().any(|other| other.device == stored.device) {
            return Err(damaged("a device is there twice"));
        }
        // The times are half of the work.
        let (times, lifetimes) = std::thread::scope(|scope| {
            let times = scope.spawn(|| decode(&stored.columns.time_us, stored.events));
            let lifetimes = lifetimes(&stored, stacks);
            let times = times.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (times, lifetimes)
        });
        let mut times = times?;
        if times.iter().all(|&time| time == 0) {
            times = Vec::new();
        }
        result.devices.push(lifetimes?);
        result.times.push(times);
    }
    Ok(result)
}

/// Why bytes are no document: another version, the older program's, or something else.
fn why_not(bytes: &[u8], error: &serde_json::Error) -> Error {
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Error::bundle(
            "made by the older Snapviewer; convert the original snapshot again with \
             `convert_snap.py -i snap.pickle -o …`",
        );
    }
    match serde_json::from_slice::<Header<'_>>(bytes) {
        Ok(header) if header.format == FORMAT && header.version == FORMAT_VERSION => {
            damaged(&format!("{error}"))
        }
        Ok(header) => wrong(&header.format, header.version),
        Err(_) => {
            Error::bundle("not a snapviewer bundle: its allocations.json is damaged or not ours")
        }
    }
}

fn wrong(format: &str, version: u64) -> Error {
    if format != FORMAT {
        return Error::bundle("not a snapviewer bundle: its allocations.json says another format");
    }
    Error::bundle(if version > FORMAT_VERSION {
        format!("made by a newer snapviewer (format {version}); update, or convert again")
    } else {
        format!("made by a snapviewer that is too old (format {version}); convert again")
    })
}

fn damaged(reason: &str) -> Error {
    Error::bundle(format!("allocations.json is damaged ({reason}); convert the snapshot again"))
}

fn decode(text: &str, count: usize) -> Result<Vec<u64>> {
    let packed = STANDARD.decode(text).map_err(|_| damaged("a column is not base64"))?;
    pack::unpack(&packed, count).map_err(damaged)
}

fn lifetimes(stored: &Device<'_>, stacks: u32) -> Result<Lifetimes> {
    let allocations = allocations(stored, stacks)?;
    let (initial_bytes, totals) = totals(&allocations, stored.events)?;
    if stored.oom_events.iter().any(|&event| event >= stored.events as u64) {
        return Err(damaged("an event is out of range"));
    }
    let result = Lifetimes {
        device: stored.device,
        allocations,
        totals,
        initial_bytes,
        peak_bytes: stored.peak_bytes,
        peak_event: stored.peak_event,
        reserved_initial_bytes: stored.reserved_initial_bytes,
        reserved_peak_bytes: stored.reserved_peak_bytes,
        oom_events: stored.oom_events.clone(),
        check: stored.check.clone(),
    };
    let peak = match usize::try_from(result.peak_event) {
        Ok(event) => result.totals.get(event).copied(),
        Err(_) => Some(initial_bytes),
    };
    let most = result.totals.iter().copied().max().unwrap_or(initial_bytes);
    if stored.initial_bytes != initial_bytes
        || stored.final_bytes != result.final_bytes()
        || peak != Some(stored.peak_bytes)
        || stored.peak_bytes < most
    {
        return Err(damaged("its figures do not follow from its allocations"));
    }
    Ok(result)
}

fn allocations(stored: &Device<'_>, stacks: u32) -> Result<Allocations> {
    let (count, columns) = (stored.allocations, &stored.columns);
    if count >= NO_STACK as usize || stored.events > columns.time_us.len().saturating_mul(MAX_RATIO)
    {
        return Err(damaged("it cannot have that many allocations or events"));
    }
    let events = i64::try_from(stored.events).map_err(|_| damaged("it has too many events"))?;
    let event = |value: u64| i64::try_from(value).ok().filter(|&event| event <= events);
    let out_of_range = || damaged("an event is out of range");

    // Only what was unpacked has proved that the count is not made up.
    let values = decode(&columns.alloc_event, count)?;
    let mut alloc_event = Vec::with_capacity(count);
    let mut last = BEFORE;
    for value in values {
        let alloc = event(value).ok_or_else(out_of_range)? - 1;
        if alloc < last {
            return Err(damaged("its allocations are not in order"));
        }
        last = alloc;
        alloc_event.push(alloc);
    }
    let mut free_event = Vec::with_capacity(count);
    for (value, &alloc) in decode(&columns.free_event, count)?.into_iter().zip(&alloc_event) {
        // At least one event later, at most after the last.
        let life = i64::try_from(value).ok().filter(|&life| life > 0);
        let free = life.and_then(|life| life.checked_add(alloc)).filter(|&free| free <= events);
        free_event.push(free.ok_or_else(out_of_range)?);
    }
    let mut free_requested = Vec::with_capacity(count);
    for (place, value) in decode(&columns.free_requested, count)?.into_iter().enumerate() {
        let (alloc, free) = (alloc_event[place], free_event[place]);
        let request = match i64::try_from(value).map_err(|_| out_of_range())? {
            0 => BEFORE,
            pending => Some(free - (pending - 1))
                .filter(|&request| request > alloc && request < events)
                .ok_or_else(out_of_range)?,
        };
        free_requested.push(request);
    }
    let stack = |value: u64| u32::try_from(value).ok().filter(|&stack| stack < stacks);
    let some_stack = |value: u64| match value {
        0 => Some(NO_STACK),
        value => stack(value - 1),
    };
    let no_stack = "a stack is out of range";
    Ok(Allocations {
        address: decode(&columns.address, count)?,
        size: decode(&columns.size, count)?,
        stream: decode(&columns.stream, count)?
            .into_iter()
            .map(|value| unzigzag(value) as i64)
            .collect(),
        alloc_event,
        free_event,
        free_requested,
        stack: convert(&decode(&columns.stack, count)?, stack, no_stack)?,
        free_stack: convert(&decode(&columns.free_stack, count)?, some_stack, no_stack)?,
        flags: convert(
            &decode(&columns.flags, count)?,
            |value| u8::try_from(value).ok(),
            "a flag is wrong",
        )?,
    })
}

fn convert<T>(values: &[u64], one: impl Fn(u64) -> Option<T>, reason: &str) -> Result<Vec<T>> {
    let converted: Option<Vec<T>> = values.iter().map(|&value| one(value)).collect();
    converted.ok_or_else(|| damaged(reason))
}

/// Live bytes before the first event and after each.
fn totals(all: &Allocations, events: usize) -> Result<(u64, Vec<u64>)> {
    // So that no sum below can overflow.
    let sum = all.size.iter().try_fold(0_u64, |sum, &size| sum.checked_add(size));
    sum.ok_or_else(|| damaged("its sizes add up to more than 64 bits can hold"))?;
    let mut initial = 0;
    // Changes first, one more for those that never end; then their sums.
    let mut totals = vec![0_u64; events + 1];
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
