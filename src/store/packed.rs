//! The events of a bundle: packed chunks, unpacked on demand.
//!
//! The packed columns of all chunks (about 2 bytes an event) are read with the first query;
//! a chunk's column is unpacked when a row of it is looked at.
//!
//! # Cost
//!
//! At 5M events: reading 10 ms; an event of another chunk 5 ms, of the same one 0.3 µs; all events
//! with an action 15 ms.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rusqlite::Row;

use crate::snapshot::Action;
use crate::snapshot::event_text::{EventText, ExtrasText};
use crate::store::columns::{CHUNK, NAMES};
use crate::store::inconsistent;
use crate::store::limits::Reader;
use crate::store::pack::{unpack, unpack_as, unzigzag};

/// Unpacked chunks that are kept: 3.5 MB each if every column was looked at.
const KEPT: usize = 16;

/// Data that are read on demand, or why they cannot be.
pub(super) type Loaded = Arc<OnceLock<std::result::Result<Packed, String>>>;

/// What is wrong with the events.
type Damage = Cow<'static, str>;

/// All events, packed.
pub(super) struct Packed {
    pub devices: Vec<Device>,
    pub actions: Vec<String>,
    pub extras: Vec<[Option<String>; 6]>,
    kept: Mutex<Vec<Kept>>,
}

/// An unpacked chunk: the device and the chunk's number, and itself.
type Kept = ((usize, usize), Arc<Chunk>);

pub(super) struct Device {
    pub ordinal: i64,
    pub events: usize,
    chunks: Vec<Arc<[Vec<u8>; NAMES.len()]>>,
}

/// A chunk whose columns are unpacked as they are needed.
pub(super) struct Chunk {
    len: usize,
    packed: Arc<[Vec<u8>; NAMES.len()]>,
    columns: [OnceLock<std::result::Result<Vec<u64>, &'static str>>; NAMES.len()],
}

impl Chunk {
    pub(super) fn get(&self, column: usize, row: usize) -> Result<u64, &'static str> {
        let values = self.columns[column].get_or_init(|| unpack(&self.packed[column], self.len));
        values.as_ref().map_err(|&reason| reason)?.get(row).copied().ok_or("a chunk is too short")
    }
}

impl Packed {
    /// Reads the packed columns.
    pub(super) fn load(reader: &Reader<'_>) -> Result<Self, Damage> {
        let actions =
            numbered(reader, "select action, name from actions order by action", |row| row.get(1))?;
        let extras = numbered(
            reader,
            "select extras, compile_context, user_metadata, internal_metadata, category, pool, forward_frames
             from extras order by extras",
            |row| Ok([row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?]),
        )?;
        let mut devices: Vec<Device> = Vec::new();
        let all = "select device, first_event, events,
                action, address, size, stream, time_us, stack, extras,
                requested, allocated, active, reserved
             from event_columns order by rowid";
        let read = reader.each(all, [], |row| add_chunk(&mut devices, row));
        read.map_err(|error| Cow::Owned(error.to_string()))?;
        Ok(Self { devices, actions, extras, kept: Mutex::default() })
    }

    /// The unpacked chunk with this event.
    pub(super) fn chunk(&self, device: usize, event: usize) -> Option<Arc<Chunk>> {
        let key = (device, event / CHUNK);
        let of = self.devices.get(device)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, chunk)) = kept.iter().find(|(known, _)| *known == key) {
            return Some(Arc::clone(chunk));
        }
        let packed = Arc::clone(of.chunks.get(key.1)?);
        let len = CHUNK.min(of.events - key.1 * CHUNK);
        let chunk = Arc::new(Chunk { len, packed, columns: Default::default() });
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((key, Arc::clone(&chunk)));
        Some(chunk)
    }

    /// Some events of a device, decoded.
    pub(super) fn texts(
        &self,
        device: i32,
        events: Range<usize>,
    ) -> Result<Vec<EventText>, Damage> {
        let Some(number) = self.number(device) else {
            return if events.is_empty() { Ok(Vec::new()) } else { Err(MISSING.into()) };
        };
        events.map(|event| self.text(number, event)).collect()
    }

    fn text(&self, device: usize, event: usize) -> Result<EventText, Damage> {
        let chunk = self.chunk(device, event).ok_or(MISSING)?;
        let get = |column| chunk.get(column, event % CHUNK);
        let action = u8::try_from(get(0)?).map_or(Err("an action is out of range"), Ok)?;
        let stack = u32::try_from(get(5)?).map_or(Err("a stack is out of range"), Ok)?;
        let extras = usize::try_from(get(6)?).ok().and_then(|number| self.extras.get(number));
        let extras = extras_text(extras.ok_or("an entry of the extras is missing")?)?;
        let event = crate::snapshot::Event {
            action: Action(action),
            address: get(1)?,
            size: get(2)?,
            stream: unzigzag(get(3)?) as i64,
            time_us: get(4)?,
            stack,
            extras: 0,
        };
        let name = Action(action).name(&self.actions).ok_or("an action has no name")?;
        Ok(EventText::new(&event, name, extras))
    }

    /// The events of a device that do this.
    pub(super) fn with_action(&self, device: i32, action: &str) -> Result<Vec<i64>, Damage> {
        let is_wanted = Action::all_named(action, &self.actions);
        let mut found = Vec::new();
        let Some(device) = self.number(device).map(|number| &self.devices[number]) else {
            return Ok(found);
        };
        if !is_wanted.contains(&true) {
            return Ok(found);
        }
        for (number, packed) in device.chunks.iter().enumerate() {
            let mut event = (number * CHUNK) as i64;
            let len = CHUNK.min(device.events - number * CHUNK);
            unpack_as(&packed[0], len, "an action is out of range", |action| {
                if is_wanted[usize::from(u8::try_from(action).ok()?)] {
                    found.push(event);
                }
                event += 1;
                Some(())
            })?;
        }
        Ok(found)
    }

    /// The extras of each event of a device, and what they are.
    pub(super) fn tags(&self, device: i32) -> Result<(Vec<u32>, Vec<ExtrasText>), Damage> {
        let texts: Vec<_> = self.extras.iter().map(extras_text).collect::<Result<_, _>>()?;
        let mut ids = Vec::new();
        let chunks = self.number(device).map(|number| &self.devices[number]);
        for (number, packed) in chunks.iter().flat_map(|of| of.chunks.iter().enumerate()) {
            let events = chunks.map_or(0, |of| of.events);
            let len = CHUNK.min(events - number * CHUNK);
            unpack_as(&packed[6], len, "an entry of the extras is missing", |id| {
                let id = u32::try_from(id).ok().filter(|&id| (id as usize) < texts.len())?;
                ids.push(id);
                Some(())
            })?;
        }
        Ok((ids, texts))
    }

    /// Where a device is in `devices`; one without events is not.
    fn number(&self, device: i32) -> Option<usize> {
        self.devices.iter().position(|one| one.ordinal == i64::from(device))
    }

    /// How many events a device has.
    pub(super) fn count(&self, device: i32) -> usize {
        self.number(device).map_or(0, |number| self.devices[number].events)
    }
}

const MISSING: &str = "a chunk is missing";

/// Adds the chunk in a row to its device.
fn add_chunk(devices: &mut Vec<Device>, row: &Row<'_>) -> rusqlite::Result<()> {
    let (device, first, events): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
    if devices.last().is_none_or(|last| last.ordinal != device) {
        devices.push(Device { ordinal: device, events: 0, chunks: Vec::new() });
    }
    let Some(last) = devices.last_mut() else { return Ok(()) };
    let is_next = first == last.events as i64 && last.events == last.chunks.len() * CHUNK;
    if !is_next || !(1..=CHUNK as i64).contains(&events) {
        return Err(inconsistent("its chunks do not follow each other"));
    }
    last.events += events as usize;
    let mut columns: [Vec<u8>; NAMES.len()] = Default::default();
    for (number, column) in columns.iter_mut().enumerate() {
        *column = row.get(number + 3)?;
    }
    last.chunks.push(Arc::new(columns));
    Ok(())
}

/// Rows of a table that is numbered from 0.
fn numbered<T>(
    reader: &Reader<'_>,
    sql: &str,
    one: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, Damage> {
    let read = reader.all(sql, [], |row| Ok((row.get::<_, i64>(0)?, one(row)?)));
    let all = read.map_err(|error| Cow::Owned(error.to_string()))?;
    if all.iter().zip(0..).any(|((number, _), expected)| *number != expected) {
        return Err("its names are not numbered".into());
    }
    Ok(all.into_iter().map(|(_, one)| one).collect())
}

/// A row of the extras, decoded.
fn extras_text(row: &[Option<String>; 6]) -> Result<ExtrasText, Damage> {
    let [compile_context, user_metadata, internal_metadata, category, pool, forward] = row;
    let pool = match pool {
        Some(text) => Some(pool_of(text).ok_or("a memory pool is not a pair of numbers")?),
        None => None,
    };
    let lines = forward.iter().flat_map(|text| text.split('\n'));
    Ok(ExtrasText {
        compile_context: compile_context.clone(),
        user_metadata: user_metadata.clone(),
        internal_metadata: internal_metadata.clone(),
        category: category.clone(),
        pool,
        forward_frames: lines.map(Into::into).collect(),
    })
}

/// A memory pool as the file has it: `[0,1]`.
fn pool_of(text: &str) -> Option<(i64, i64)> {
    let (high, low) = text.strip_prefix('[')?.strip_suffix(']')?.split_once(',')?;
    Some((high.parse().ok()?, low.parse().ok()?))
}
