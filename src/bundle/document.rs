//! `allocations.json`: what drawing needs, in one small file.
//!
//! A JSON object with the figures of each device, readable as they are, and the allocations as packed
//! columns ([`crate::store::pack`]) in base64: 0.4 bytes an event, and 0.8 for the events' times.
//! Totals are not stored: they follow from the allocations.
//!
//! The last two entries are added when the rest is known: the digest of `elements.db`, and the digest of
//! all bytes of this file before. A file that was changed, or is beside another's database, is refused.
//!
//! # Invariants
//!
//! [`read`] returns what [`write()`] and [`seal`] were given.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::allocator::Replay;
use crate::bundle::replay::{self, StoredReplay};
use crate::bundle::restore;
use crate::digest::{self, FileDigest, Origin};
use crate::error::{Error, Result};
use crate::lifetimes::{BEFORE, Check, Lifetimes, NO_STACK};
use crate::snapshot::Snapshot;
use crate::store::FORMAT_VERSION;
use crate::store::pack::{self, Form, zigzag};

/// The value of `format` in the file.
const FORMAT: &str = "snapviewer";

#[derive(Serialize, Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    format: Cow<'a, str>,
    version: u64,
    snapviewer_version: Cow<'a, str>,
    source_format: String,
    /// The file that was converted.
    source: FileDigest,
    warnings: Vec<String>,
    /// How many stacks `elements.db` has.
    stacks: u64,
    #[serde(borrow)]
    devices: Vec<Device<'a>>,
    /// `elements.db`. Written by [`seal`].
    #[serde(skip_serializing)]
    elements: Option<FileDigest>,
}

/// Enough to explain why a file is not a bundle of this version.
#[derive(Deserialize)]
struct Header<'a> {
    #[serde(borrow)]
    format: Cow<'a, str>,
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[allow(clippy::struct_field_names)] // The names are the file's.
pub(super) struct Device<'a> {
    pub device: i32,
    pub events: usize,
    pub allocations: usize,
    pub pools: Vec<(i64, i64)>,
    pub initial_bytes: u64,
    pub peak_bytes: u64,
    pub peak_event: i64,
    pub final_bytes: u64,
    pub reserved_initial_bytes: u64,
    pub reserved_peak_bytes: u64,
    pub oom_events: Vec<u64>,
    pub check: Check,
    #[serde(borrow)]
    pub columns: Columns<'a>,
    #[serde(borrow)]
    pub replay: StoredReplay<'a>,
}

/// Packed columns in base64: one number an allocation, but `time_us` one an event.
#[derive(Serialize, Deserialize)]
pub(super) struct Columns<'a> {
    #[serde(borrow)]
    pub address: Cow<'a, str>,
    #[serde(borrow)]
    pub size: Cow<'a, str>,
    /// The sign in the lowest bit.
    #[serde(borrow)]
    pub stream: Cow<'a, str>,
    /// 1 is the first event, 0 before it.
    #[serde(borrow)]
    pub alloc_event: Cow<'a, str>,
    /// Events after `alloc_event`.
    #[serde(borrow)]
    pub free_event: Cow<'a, str>,
    /// 1 + the events before `free_event`, or 0 if there was no request.
    #[serde(borrow)]
    pub free_requested: Cow<'a, str>,
    #[serde(borrow)]
    pub stack: Cow<'a, str>,
    /// 1 + the stack, or 0 if it is not known.
    #[serde(borrow)]
    pub free_stack: Cow<'a, str>,
    #[serde(borrow)]
    pub flags: Cow<'a, str>,
    /// 1 + the place in `pools`, or 0 if it is not known.
    #[serde(borrow)]
    pub pool: Cow<'a, str>,
    /// 1 + the place in [`crate::lifetimes::CATEGORIES`], or 0 if it is not known.
    #[serde(borrow)]
    pub category: Cow<'a, str>,
    #[serde(borrow)]
    pub time_us: Cow<'a, str>,
}

/// The content of the file.
#[derive(Debug)]
pub(super) struct Read {
    pub devices: Vec<Lifetimes>,
    pub replays: Vec<Replay>,
    pub times: Vec<Vec<u64>>,
    pub origin: Origin,
    pub warnings: Vec<String>,
    pub stacks: u32,
    pub elements: FileDigest,
}

/// Makes the file's bytes, which are to be sealed.
pub(super) fn write(
    snapshot: &Snapshot,
    lifetimes: &[Lifetimes],
    replays: &[Replay],
    origin: &Origin,
) -> Result<Vec<u8>> {
    let traces = snapshot.traces.iter().zip(lifetimes.iter().zip(replays));
    let document = Document {
        format: FORMAT.into(),
        version: FORMAT_VERSION,
        snapviewer_version: env!("CARGO_PKG_VERSION").into(),
        source_format: origin.format.clone(),
        source: origin.file.clone(),
        warnings: snapshot.oddities.sentences(),
        stacks: snapshot.stacks.len() as u64,
        devices: traces
            .map(|(trace, (one, replay))| {
                let times = trace.rows.clone().map(|row| snapshot.events.time_us(row));
                device(one, replay, lifetimes.len(), times)
            })
            .collect(),
        elements: None,
    };
    serde_json::to_vec(&document).map_err(|error| Error::bundle(error.to_string()))
}

/// Adds the digests of `elements.db` and of the file itself.
pub(super) fn seal(mut bytes: Vec<u8>, elements: &FileDigest) -> Vec<u8> {
    bytes.pop();
    let FileDigest { bytes: length, blake3 } = elements;
    let ends = format!(r#","elements":{{"bytes":{length},"blake3":"{blake3}"}}"#);
    bytes.extend_from_slice(ends.as_bytes());
    let seal = seal_of(&bytes);
    bytes.extend_from_slice(seal.as_bytes());
    bytes
}

/// How the file ends after these bytes.
fn seal_of(bytes: &[u8]) -> String {
    format!(r#","digest":"{}"}}"#, digest::hex(bytes))
}

/// Whether the file ends with the digest of what is before.
fn is_sealed(bytes: &[u8]) -> bool {
    let length = seal_of(&[]).len();
    let parts = bytes.len().checked_sub(length).map(|at| bytes.split_at(at));
    parts.is_some_and(|(content, seal)| seal_of(content).as_bytes() == seal)
}

/// One of so many devices.
fn device(
    one: &Lifetimes,
    replay: &Replay,
    devices: usize,
    times: impl Iterator<Item = u64> + Clone,
) -> Device<'static> {
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
        pools: one.pools.clone(),
        initial_bytes: one.initial_bytes,
        peak_bytes: one.peak_bytes,
        peak_event: one.peak_event,
        final_bytes: one.final_bytes(),
        reserved_initial_bytes: one.reserved_initial_bytes,
        reserved_peak_bytes: one.reserved_peak_bytes,
        oom_events: one.oom_events.clone(),
        check: one.check.clone(),
        columns: Columns {
            address: column(all.address.iter().copied(), Form::Plain),
            size: column(all.size.iter().copied(), Form::Plain),
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
            pool: column(all.pool.iter().map(|&pool| u64::from(pool)), Form::Plain),
            category: column(all.category.iter().map(|&one| u64::from(one)), Form::Plain),
            time_us: column_of_times(times, restore::most_events(devices, all.len(), 0)),
        },
        replay: replay::store(one, replay),
    }
}

/// Times, which few bytes may stand for only if there are not many more events than allocations: see
/// [`restore::most_events`].
fn column_of_times(
    times: impl Iterator<Item = u64> + Clone,
    most_packed: usize,
) -> Cow<'static, str> {
    let packed = pack::pack(times.clone(), Form::Delta);
    let is_plausible = times.clone().count() <= most_packed.saturating_add(packed.len());
    let packed = if is_plausible { packed } else { pack::pack_loosely(times, Form::Delta) };
    STANDARD.encode(packed).into()
}

fn column(values: impl Iterator<Item = u64> + Clone, form: Form) -> Cow<'static, str> {
    STANDARD.encode(pack::pack(values, form)).into()
}

/// Reads the file's bytes; `elements.db` is this long.
pub(super) fn read(bytes: &[u8], elements_bytes: u64) -> Result<Read> {
    if !is_sealed(bytes) {
        return Err(why_not(bytes, "it was changed or cut off since it was written"));
    }
    let document: Document<'_> = match serde_json::from_slice(bytes) {
        Ok(document) => document,
        Err(error) => return Err(why_not(bytes, &error.to_string())),
    };
    if document.format != FORMAT || document.version != FORMAT_VERSION {
        return Err(wrong(&document.format, document.version));
    }
    let Some(elements) = document.elements else {
        return Err(damaged("it has no digest of elements.db"));
    };
    if elements.bytes != elements_bytes {
        return Err(Error::bundle(OTHER_ELEMENTS));
    }
    restore::check_counts(&document.devices, elements_bytes)?;
    let stacks =
        u32::try_from(document.stacks).ok().filter(|&stacks| stacks > 0 && stacks < NO_STACK);
    let stacks = stacks.ok_or_else(|| damaged("it has no stacks"))?;
    let mut result = Read {
        devices: Vec::new(),
        replays: Vec::new(),
        times: Vec::new(),
        origin: Origin { format: document.source_format, file: document.source },
        warnings: document.warnings,
        stacks,
        elements,
    };
    for stored in document.devices {
        if result.devices.iter().any(|other| other.device == stored.device) {
            return Err(damaged("a device is there twice"));
        }
        let (times, lifetimes) = restore::lifetimes(&stored, stacks)?;
        result.replays.push(replay::restore(stored.replay, &lifetimes, stacks)?);
        result.devices.push(lifetimes);
        result.times.push(times);
    }
    Ok(result)
}

/// Why bytes are no document: another version, the older program's, or something else.
fn why_not(bytes: &[u8], reason: &str) -> Error {
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Error::bundle(
            "made by the older Snapviewer, whose files this one does not read; open the original \
             snapshot, or convert it again with `convert_snap.py -i snap.pickle -o snap.zip`",
        );
    }
    match serde_json::from_slice::<Header<'_>>(bytes) {
        Ok(header) if header.format == FORMAT && header.version == FORMAT_VERSION => {
            damaged(reason)
        }
        Ok(header) => wrong(&header.format, header.version),
        Err(_) => Error::bundle(
            "not a snapviewer bundle: its allocations.json is damaged or of another program",
        ),
    }
}

/// Why a database is refused.
pub(super) const OTHER_ELEMENTS: &str = "elements.db is of another bundle, or was changed since it \
    was written; convert the snapshot again";

fn wrong(format: &str, version: u64) -> Error {
    if format != FORMAT {
        return Error::bundle("not a snapviewer bundle: its allocations.json has another format");
    }
    Error::bundle(if version > FORMAT_VERSION {
        format!(
            "made by a newer snapviewer (format {version}, this one reads {FORMAT_VERSION}); update \
             snapviewer, or open the original snapshot"
        )
    } else {
        format!(
            "made by a snapviewer that is too old (format {version}, this one reads \
             {FORMAT_VERSION}); open the original snapshot, or convert it again"
        )
    })
}

pub(super) fn damaged(reason: &str) -> Error {
    Error::bundle(format!("allocations.json is damaged ({reason}); convert the snapshot again"))
}
