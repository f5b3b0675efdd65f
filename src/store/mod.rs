//! `elements.db`: everything in a snapshot, as tables for SQL queries.
//!
//! [`schema`] is the format, [`write`] makes it, [`lookup`] finds single things, and [`query`] runs
//! users' queries, which see the packed events ([`packed`]) as a table ([`events`]) and may add
//! tables ([`chosen`]). Nothing else in the program knows SQL.
//!
//! A file is untrusted. Its tables must be exactly ours ([`schema::check`]), and nothing that
//! is read from it, by us ([`limits`]) or by a query ([`functions`]), takes more than it should.
//!
//! # Cost
//!
//! Writing: 0.4 µs an allocation, and 0.1 µs an event on a second thread. Opening: under a
//! millisecond from a directory; from a zip, reading the file.

mod chosen;
pub(crate) mod columns;
mod events;
mod figures;
mod forked;
mod functions;
mod grouped;
mod limits;
mod lookup;
pub(crate) mod pack;
mod packed;
mod pattern;
mod query;
mod schema;
pub(crate) mod write;

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, MAIN_DB, OpenFlags};

pub use chosen::Chosen;
pub(crate) use figures::Figures;
pub(crate) use forked::Active;
pub use lookup::{AnnotationRow, StackLine};
pub use query::{Cell, Query, Table};
pub use schema::described;

use crate::error::{Error, Result};
use limits::{InMemory, Limits, Reader};

/// The version of the bundle's format, and so of this database's.
pub const FORMAT_VERSION: u64 = 4;

/// An open `elements.db`. Read-only; can be shared between threads, which then take turns.
pub struct Store {
    db: Mutex<Connection>,
    events: packed::Loaded,
    frames: FrameTexts,
    ranks: grouped::RankedStacks,
    chosen: chosen::Lists,
    limits: Limits,
}

/// Each frame as call stacks show it, made on demand.
type FrameTexts = Arc<OnceLock<Vec<String>>>;

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

impl Store {
    /// Opens a file of this length in place.
    pub(crate) fn open(path: &Path, bytes: u64) -> Result<Self> {
        let in_memory = InMemory::new(0);
        let opened = open_immutable(path).and_then(|db| Self::new(db, bytes, in_memory));
        opened.map_err(|error| damaged(&error))
    }

    /// Reads the file into memory; it must be `size` bytes long. `check` sees the reader before anything
    /// is made of the bytes.
    pub(crate) fn read<R: Read>(
        file: &mut R,
        size: usize,
        check: impl FnOnce(&R) -> Result<()>,
    ) -> Result<Self> {
        let in_memory = InMemory::new(size);
        let opened = Connection::open_in_memory().and_then(|mut db| {
            db.deserialize_read_exact(MAIN_DB, &mut *file, size, true)?;
            Ok(db)
        });
        let db = opened.map_err(|error| damaged(&error))?;
        check(file)?;
        Self::new(db, size as u64, in_memory).map_err(|error| damaged(&error))
    }

    fn new(mut db: Connection, bytes: u64, in_memory: InMemory) -> rusqlite::Result<Self> {
        let limits = Limits::set(&mut db, bytes, in_memory)?;
        schema::check(&db)?;
        functions::register(&db, &limits.stop)?;
        let (events, frames) = (packed::Loaded::default(), FrameTexts::default());
        let chosen = chosen::Lists::default();
        events::register(&db, Arc::clone(&events))?;
        chosen::register(&db, Arc::clone(&chosen))?;
        let texts = Arc::clone(&frames);
        let flags = FunctionFlags::SQLITE_UTF8
            | FunctionFlags::SQLITE_DETERMINISTIC
            | FunctionFlags::SQLITE_INNOCUOUS;
        db.create_scalar_function("callstack", 1, flags, move |context| {
            let ids = context.get_raw(0).as_str_or_null().unwrap_or_default();
            ids.map(|ids| callstack(ids, texts.get().map_or(&[], Vec::as_slice))).transpose()
        })?;
        let ranks = grouped::RankedStacks::default();
        grouped::register(&db, &ranks, &frames)?;
        db.execute_batch(schema::QUICK_VIEWS)?;
        db.execute_batch(grouped::VIEW)?;
        query::restrict(&mut db)?;
        Ok(Self { db: Mutex::new(db), events, frames, ranks, chosen, limits })
    }

    /// Runs a query. The calling thread calls `cancel` now and then.
    ///
    /// Besides the tables that the file has, there is `events`, with every event.
    pub fn query(&self, query: &Query<'_>, cancel: &dyn Fn() -> bool) -> Result<Table> {
        // Another query may take its time.
        let mut db = loop {
            match self.db.try_lock() {
                Ok(db) => break db,
                Err(TryLockError::Poisoned(error)) => break error.into_inner(),
                Err(TryLockError::WouldBlock) if cancel() => return Err(Error::Cancelled),
                Err(TryLockError::WouldBlock) => std::thread::sleep(query::TICK),
            }
        };
        self.load_events(&db);
        if self.frames.get().is_none() {
            let texts = self.limits.reader(&db).and_then(|reader| frame_texts(&reader));
            let texts = texts.map_err(|error| damaged(&error))?;
            self.frames.get_or_init(|| texts);
        }
        let grouped = grouped::rewritten(query.sql);
        if grouped.is_some() && self.ranks.get().is_none() {
            let frames = self.frames.get().map_or(&[][..], Vec::as_slice);
            let reader = self.limits.reader(&db);
            let ranks = reader.and_then(|reader| grouped::Ranks::read(&reader, frames));
            let ranks = ranks.map_err(|error| damaged(&error))?;
            self.ranks.get_or_init(|| ranks);
        }
        let with = chosen::With::new(&mut db, &self.chosen, &query.tables)?;
        query::restrict(with.db).map_err(|error| damaged(&error))?;
        let sql = grouped.as_deref().unwrap_or(query.sql);
        query::run(with.db, &self.limits, query, sql, cancel)
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The frames of a stack as the table has them: a JSON list of numbers.
fn frame_ids(list: &str) -> impl Iterator<Item = usize> + '_ {
    list.trim_matches(['[', ']']).split(',').filter_map(|id| id.parse().ok())
}

/// A call stack as text; the view `callstacks` has the same in SQL.
fn callstack(list: &str, frames: &[String]) -> rusqlite::Result<String> {
    let mut text = String::new();
    for line in frame_ids(list).filter_map(|id| frames.get(id)) {
        if text.len() + line.len() >= query::MAX_VALUE as usize {
            return Err(functions::too_long());
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    }
    Ok(text)
}

fn frame_texts(reader: &Reader<'_>) -> rusqlite::Result<Vec<String>> {
    reader.all("select text from frames order by frame", [], |row| row.get(0))
}

/// Opens a file that does not change: without locks, and whatever is beside it.
fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    #[cfg(unix)]
    if let Ok(absolute) = path.canonicalize() {
        use std::fmt::Write;
        let mut uri = "file://".to_owned();
        for &byte in absolute.as_os_str().as_encoded_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                    uri.push(byte.into());
                }
                // Writing to memory does not fail.
                _ => _ = write!(uri, "%{byte:02x}"),
            }
        }
        uri.push_str("?immutable=1");
        return Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI);
    }
    Connection::open_with_flags(path, flags)
}

fn inconsistent(reason: impl Into<String>) -> rusqlite::Error {
    rusqlite::Error::ModuleError(reason.into())
}

fn damaged(error: &rusqlite::Error) -> Error {
    Error::bundle(format!("elements.db is damaged ({error}); convert the snapshot again"))
}
