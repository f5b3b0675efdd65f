//! `elements.db`: everything a snapshot says, as tables that people can query.
//!
//! [`schema`] is the format, [`write`] makes it, [`events`] shows its packed events as a table, and
//! [`query`] runs what people write. Nothing else in the program knows SQL.
//!
//! # Cost
//!
//! Writing: 0.4 µs an allocation, and 0.1 µs an event on a second thread. Opening: under a
//! millisecond from a directory; from a zip, reading the file.

pub(crate) mod columns;
mod events;
pub(crate) mod pack;
mod query;
mod schema;
pub(crate) mod write;

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, MAIN_DB, OpenFlags, OptionalExtension};

pub use query::{Cell, Limits, Table};

use crate::error::{Error, Result};
use crate::stack_texts::StackTexts;

/// The version of the bundle's format, and so of this database's.
pub const FORMAT_VERSION: u64 = 2;

/// An open `elements.db`. Read-only; can be shared between threads, which then take turns.
pub struct Store {
    db: Mutex<Connection>,
    events: events::Loaded,
    frames: FrameTexts,
}

/// Each frame as call stacks show it, once somebody has asked.
type FrameTexts = Arc<OnceLock<Vec<String>>>;

/// A line of a call stack: function, file, line.
pub type StackLine = (String, String, u64);

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

impl Store {
    /// Opens the file in place.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        // SQLite would only say that it cannot open it.
        std::fs::File::open(path).map_err(|error| Error::io(path, error))?;
        let opened = open_immutable(path).and_then(Self::new);
        opened.map_err(|error| damaged(&error).in_file(path))
    }

    /// Reads the file into memory; it must be `size` bytes long.
    pub(crate) fn read(file: impl Read, size: usize) -> Result<Self> {
        let opened = Connection::open_in_memory().and_then(|mut db| {
            db.deserialize_read_exact(MAIN_DB, file, size, true)?;
            Self::new(db)
        });
        opened.map_err(|error| damaged(&error))
    }

    fn new(mut db: Connection) -> rusqlite::Result<Self> {
        let mut names =
            db.prepare("select 1 from sqlite_schema where type = 'table' and name = ?")?;
        for name in schema::NEEDED {
            if !names.exists([name])? {
                return Err(inconsistent(format!("it has no table {name}")));
            }
        }
        drop(names);
        let (events, frames) = (events::Loaded::default(), FrameTexts::default());
        events::register(&db, Arc::clone(&events))?;
        let texts = Arc::clone(&frames);
        let flags = FunctionFlags::SQLITE_UTF8
            | FunctionFlags::SQLITE_DETERMINISTIC
            | FunctionFlags::SQLITE_INNOCUOUS;
        db.create_scalar_function("callstack", 1, flags, move |context| {
            let ids = context.get_raw(0).as_str_or_null().unwrap_or_default();
            Ok(ids.map(|ids| callstack(ids, texts.get().map_or(&[], Vec::as_slice))))
        })?;
        db.execute_batch(schema::QUICK_VIEWS)?;
        query::restrict(&mut db)?;
        Ok(Self { db: Mutex::new(db), events, frames })
    }

    /// Runs one statement that only reads. The calling thread asks `cancel` now and then.
    ///
    /// Besides the tables that the file has, there is `events`, with every event.
    pub fn query(&self, sql: &str, limits: &Limits, cancel: &dyn Fn() -> bool) -> Result<Table> {
        let mut db = self.lock();
        self.events.get_or_init(|| events::Packed::load(&db).map_err(|error| error.to_string()));
        self.frames.get_or_init(|| frame_texts(&db).unwrap_or_default());
        query::run(&mut db, sql, limits, cancel)
    }

    /// The lines of a call stack, innermost first; none if there is no such stack.
    pub fn frames(&self, stack: u32) -> Result<Vec<StackLine>> {
        self.frames_of(stack).map_err(|error| damaged(&error))
    }

    fn frames_of(&self, stack: u32) -> rusqlite::Result<Vec<StackLine>> {
        let db = self.lock();
        let mut find = db.prepare_cached("select frames from stacks where stack = ?")?;
        let ids: Option<String> = find.query_row([stack], |row| row.get(0)).optional()?;
        let mut find =
            db.prepare_cached("select name, filename, line from frames where frame = ?")?;
        let line =
            |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)? as u64));
        frame_ids(&ids.unwrap_or_default()).map(|id| find.query_row([id as i64], line)).collect()
    }

    /// Every stack, of which there must be this many.
    pub fn stack_texts(&self, count: usize) -> Result<StackTexts> {
        let read = || {
            let db = self.lock();
            let mut texts = StackTexts::default();
            read_frames(&db, &mut texts)?;
            read_stacks(&db, &mut texts)?;
            if texts.len() != count {
                return Err(inconsistent("it has another number of stacks"));
            }
            Ok(texts)
        };
        read().map_err(|error| damaged(&error))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The frames of a stack as the table has them: a JSON list of numbers.
fn frame_ids(list: &str) -> impl Iterator<Item = usize> + '_ {
    list.trim_matches(['[', ']']).split(',').filter_map(|id| id.parse().ok())
}

/// A call stack as text; the view `callstacks` says the same in SQL.
fn callstack(list: &str, frames: &[String]) -> String {
    let lines = frame_ids(list).filter_map(|id| frames.get(id)).map(String::as_str);
    lines.collect::<Vec<_>>().join("\n")
}

fn frame_texts(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut all = db.prepare("select text from frames order by frame")?;
    all.query_map([], |row| row.get(0))?.collect()
}

fn read_frames(db: &Connection, texts: &mut StackTexts) -> rusqlite::Result<()> {
    let mut all = db.prepare("select frame, name, filename, line from frames order by frame")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(0)? != texts.frames().len() as i64 {
            return Err(inconsistent("a frame is missing"));
        }
        let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        texts.add_frame(text(1)?, text(2)?, row.get::<_, i64>(3)? as u64);
    }
    Ok(())
}

fn read_stacks(db: &Connection, texts: &mut StackTexts) -> rusqlite::Result<()> {
    let mut all = db.prepare("select stack, frames from stacks order by stack")?;
    let mut rows = all.query([])?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(0)? != texts.len() as i64 {
            return Err(inconsistent("a stack is missing"));
        }
        ids.clear();
        for id in frame_ids(row.get_ref(1)?.as_str()?) {
            if id >= texts.frames().len() {
                return Err(inconsistent("a stack has a frame that is missing"));
            }
            ids.push(id as u32);
        }
        texts.add_stack(&ids);
    }
    Ok(())
}

/// Opens a file that nobody changes: without locks, and whatever lies beside it.
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
