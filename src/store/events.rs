//! The packed events as a table that SQL can read: `events`.
//!
//! Conditions on `device` and `event` skip the chunks that cannot match; SQLite checks all conditions
//! again, so here they may be coarse.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConfig, VTabConnection,
    VTabCursor, sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result};

use crate::snapshot::Action;
use crate::store::columns::CHUNK;
use crate::store::pack::unzigzag;
use crate::store::packed::{Chunk, Loaded, Packed};
use crate::store::schema;

fn damaged(reason: &str) -> Error {
    Error::ModuleError(format!("the events in elements.db are damaged: {reason}"))
}

/// Makes the table known; what it shows comes later.
pub(super) fn register(db: &Connection, loaded: Loaded) -> Result<()> {
    const MODULE: Module<'static, EventsTable> = Module::eponymous_only_module();
    db.create_module(c"events", &MODULE, Some(loaded))
}

#[repr(C)]
struct EventsTable {
    base: sqlite3_vtab,
    loaded: Loaded,
}

/// Which conditions `filter` gets, in this order; the bits of `idx_num`.
const DEVICE: c_int = 1;
const EVENT: c_int = 2;
const FROM: c_int = 4;
const TO: c_int = 8;

// SAFETY: `EventsTable` is `repr(C)` and begins with the base that SQLite expects.
#[allow(unsafe_code)]
unsafe impl<'vtab> VTab<'vtab> for EventsTable {
    type Aux = Loaded;
    type Cursor = EventsCursor;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&Loaded>,
        _module_name: &[u8],
        _database_name: &[u8],
        _table_name: &[u8],
        _args: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        db.config(VTabConfig::Innocuous)?;
        let loaded = aux.cloned().unwrap_or_default();
        Ok((
            Cow::Owned(CString::new(schema::EVENTS)?),
            Self { base: sqlite3_vtab::default(), loaded },
        ))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        use IndexConstraintOp as Op;
        let mut chosen: [Option<usize>; 4] = [None; 4];
        for (place, constraint) in info.constraints().enumerate() {
            let which = match (constraint.column(), constraint.operator()) {
                (0, Op::SQLITE_INDEX_CONSTRAINT_EQ) => 0,
                (1, Op::SQLITE_INDEX_CONSTRAINT_EQ) => 1,
                (1, Op::SQLITE_INDEX_CONSTRAINT_GT | Op::SQLITE_INDEX_CONSTRAINT_GE) => 2,
                (1, Op::SQLITE_INDEX_CONSTRAINT_LT | Op::SQLITE_INDEX_CONSTRAINT_LE) => 3,
                _ => continue,
            };
            if constraint.is_usable() {
                chosen[which].get_or_insert(place);
            }
        }
        let mut plan = 0;
        let mut arguments = 0;
        for (bit, place) in chosen.into_iter().enumerate() {
            if let Some(place) = place {
                plan |= 1 << bit;
                arguments += 1;
                info.constraint_usage(place).set_argv_index(arguments);
            }
        }
        let (devices, events) = match self.loaded.get() {
            Some(Ok(packed)) => (
                packed.devices.len().max(1),
                packed.devices.iter().map(|one| one.events).sum::<usize>(),
            ),
            _ => (1, 0),
        };
        let mut rows = if plan & DEVICE == 0 { events } else { events / devices };
        for (bits, share) in [(EVENT, events), (FROM, 4), (TO, 4)] {
            rows /= if plan & bits == 0 { 1 } else { share.max(1) };
        }
        info.set_estimated_rows(rows.max(1) as i64);
        // Getting at a chunk costs about as much as reading some rows of it.
        info.set_estimated_cost(rows as f64 + 20.0);
        let mut order = info.order_bys();
        let is_by_event = order.next().is_some_and(|by| by.column() == 1 && !by.is_order_by_desc());
        let is_sorted =
            is_by_event && order.next().is_none() && (devices == 1 || plan & DEVICE != 0);
        info.set_order_by_consumed(is_sorted);
        info.set_idx_num(plan);
        Ok(true)
    }

    fn open(&'vtab mut self) -> Result<EventsCursor> {
        Ok(EventsCursor {
            base: sqlite3_vtab_cursor::default(),
            loaded: Arc::clone(&self.loaded),
            chunk: None,
            devices: Vec::new(),
            events: 0..0,
            event: 0,
        })
    }
}

#[repr(C)]
struct EventsCursor {
    base: sqlite3_vtab_cursor,
    loaded: Loaded,
    chunk: Option<Arc<Chunk>>,
    /// The devices that are left, the current one last. Empty at the end.
    devices: Vec<usize>,
    /// The events that are wanted of each device.
    events: std::ops::Range<usize>,
    event: usize,
}

impl EventsCursor {
    fn packed(&self) -> Result<&Packed> {
        match self.loaded.get() {
            Some(Ok(packed)) => Ok(packed),
            Some(Err(reason)) => Err(damaged(reason)),
            None => Err(damaged("they were not read")),
        }
    }

    /// From `self.event` on, finds the next one that is there.
    fn settle(&mut self) -> Result<()> {
        while let Some(&device) = self.devices.last() {
            let there = self.packed()?.devices.get(device).map_or(0, |one| one.events);
            if self.event < there.min(self.events.end) {
                if self.chunk.is_none() || self.event.is_multiple_of(CHUNK) {
                    self.chunk = self.packed()?.chunk(device, self.event);
                }
                return Ok(());
            }
            self.devices.pop();
            self.event = self.events.start;
            self.chunk = None;
        }
        Ok(())
    }

    fn get(&self, column: usize) -> Result<u64> {
        let chunk = self.chunk.as_ref().ok_or_else(|| damaged("a chunk is missing"))?;
        chunk.get(column, self.event % CHUNK).map_err(damaged)
    }
}

/// The least event that is not below a bound, and the first that is above it.
fn around(bound: ValueRef<'_>) -> (usize, usize) {
    match bound {
        ValueRef::Integer(bound) if bound < 0 => (0, 0),
        ValueRef::Integer(bound) => (bound as usize, bound as usize + 1),
        // Out of range and NaN become the ends of the range of integers.
        ValueRef::Real(bound) => {
            (bound.floor() as usize, (bound.floor() as usize).saturating_add(1))
        }
        // SQLite knows how to compare other types with numbers.
        _ => (0, usize::MAX),
    }
}

// SAFETY: `EventsCursor` is `repr(C)` and begins with the base that SQLite expects.
#[allow(unsafe_code)]
unsafe impl VTabCursor for EventsCursor {
    fn filter(
        &mut self,
        plan: c_int,
        _idx_str: Option<&str>,
        arguments: &Filters<'_>,
    ) -> Result<()> {
        let mut arguments = arguments.iter();
        let mut next = |bit| if plan & bit == 0 { None } else { arguments.next() };
        let device = next(DEVICE);
        self.events = 0..usize::MAX;
        if let Some(bound) = next(EVENT) {
            let (from, to) = around(bound);
            self.events = from..to;
        }
        if let Some(bound) = next(FROM) {
            self.events.start = self.events.start.max(around(bound).0);
        }
        if let Some(bound) = next(TO) {
            self.events.end = self.events.end.min(around(bound).1);
        }
        let devices = &self.packed()?.devices;
        let is_wanted = |number: &usize| match device {
            Some(ValueRef::Integer(wanted)) => {
                devices.get(*number).is_some_and(|one| one.ordinal == wanted)
            }
            _ => true,
        };
        self.devices = (0..devices.len()).rev().filter(is_wanted).collect();
        self.event = self.events.start;
        self.chunk = None;
        self.settle()
    }

    fn next(&mut self) -> Result<()> {
        self.event = self.event.saturating_add(1);
        self.settle()
    }

    fn eof(&self) -> bool {
        self.devices.is_empty()
    }

    fn column(&self, to: &mut Context, column: c_int) -> Result<()> {
        let packed = self.packed()?;
        match column {
            0 => {
                let device = self.devices.last().and_then(|&number| packed.devices.get(number));
                to.set_result(device.map(|one| one.ordinal))
            }
            1 => to.set_result(self.event as i64),
            2 => to.set_result(packed.actions.get(self.get(0)? as usize)),
            // An OOM has no address; the bytes that were free on the device are in its place.
            3 | 14 => {
                let is_oom = self.get(0)? == u64::from(Action::OOM.0);
                let value = self.get(1)? as i64;
                to.set_result((is_oom == (column == 14)).then_some(value))
            }
            4 => to.set_result(self.get(2)? as i64),
            5 => to.set_result(unzigzag(self.get(3)?) as i64),
            6 => to.set_result(Some(self.get(4)? as i64).filter(|&time| time != 0)),
            7 => to.set_result(self.get(5)? as i64),
            15..=17 => {
                // Each has what it adds to the one before.
                let last = usize::try_from(column - 8).unwrap_or(0);
                let parts = (7..=last).map(|part| self.get(part).map(std::num::Wrapping));
                let sum = parts.sum::<Result<std::num::Wrapping<u64>>>();
                to.set_result(sum?.0 as i64)
            }
            18 => to.set_result(self.get(10)? as i64),
            _ => {
                let extras = packed.extras.get(self.get(6)? as usize);
                let which = usize::try_from(column - 8).unwrap_or(usize::MAX);
                to.set_result(extras.and_then(|one| one.get(which)).and_then(Option::as_deref))
            }
        }
    }

    fn rowid(&self) -> Result<i64> {
        // Unique as long as a device has fewer events than 2^40.
        let device = self.devices.last().copied().unwrap_or(0);
        Ok(((device as i64) << 40) | self.event as i64)
    }
}
