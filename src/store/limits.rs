//! What SQLite may use on an untrusted file: memory, steps, and bytes of the program's own reads.
//!
//! The pages of a database can name each other in any way: a small file can have rows without end, or
//! a thousand long texts on the same pages. An honest file has each byte once, so our reads stop when
//! they have seen more than the file could hold. Users' queries have limits of their own ([`super::query`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Row};

use crate::store::inconsistent;

/// The most memory of SQLite in this process, besides databases that are in memory whole.
const HEAP_BYTES: i64 = 256 << 20;

/// The longest value of our own reads: packed columns have half a MiB, but a name has any length.
const MAX_VALUE: i32 = 16 << 20;

/// What any file may have: the call stack of a small file may name a long frame many times.
const ALWAYS_BYTES: u64 = 64 << 20;
const ALWAYS_STEPS: i64 = 1 << 24;

/// The least that a row counts for.
const ROW_BYTES: u64 = 8;

/// How often SQLite asks whether to go on, in steps of its machine.
const PERIOD: i32 = 1000;

/// The limits of a connection.
pub(super) struct Limits {
    /// How many steps are left.
    steps: Arc<AtomicI64>,
    /// Set to stop what runs, functions included.
    pub stop: Arc<AtomicBool>,
    file_bytes: u64,
    _in_memory: InMemory,
}

impl Limits {
    /// Sets the permanent limits of a connection to a file of this length, before the first read.
    pub(super) fn set(
        db: &mut Connection,
        file_bytes: u64,
        in_memory: InMemory,
    ) -> rusqlite::Result<Self> {
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        for (limit, most) in [
            (Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE),
            (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 17),
            (Limit::SQLITE_LIMIT_SCHEMA, 256),
            (Limit::SQLITE_LIMIT_ATTACHED, 0),
            (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
            // What a call of a JSON function costs is the length of the value times these.
            (Limit::SQLITE_LIMIT_FUNCTION_ARG, 32),
        ] {
            db.set_limit(limit, most)?;
        }
        let (steps, stop) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicBool::new(false)));
        let (left, is_stopped) = (Arc::clone(&steps), Arc::clone(&stop));
        db.progress_handler(
            PERIOD,
            Some(move || {
                let before = left.fetch_sub(PERIOD.into(), Ordering::Relaxed);
                before < 0 || is_stopped.load(Ordering::Relaxed)
            }),
        )?;
        let limits = Self { steps, stop, file_bytes, _in_memory: in_memory };
        limits.restart();
        db.execute_batch("pragma cell_size_check = on")?;
        Ok(limits)
    }

    /// Gives the next of our own reads its steps.
    fn restart(&self) {
        let of_file = i64::try_from(self.file_bytes.saturating_mul(16)).unwrap_or(i64::MAX);
        self.steps.store(of_file.saturating_add(ALWAYS_STEPS), Ordering::Relaxed);
        self.stop.store(false, Ordering::Relaxed);
    }

    /// Lets a user's query run, with values up to this length, until `stop` is set.
    pub(super) fn lift(&self, db: &Connection, max_value: i32) -> rusqlite::Result<()> {
        self.steps.store(i64::MAX, Ordering::Relaxed);
        self.stop.store(false, Ordering::Relaxed);
        db.set_limit(Limit::SQLITE_LIMIT_LENGTH, max_value).map(|_| ())
    }

    /// Reads for the program itself.
    pub(super) fn reader<'a>(&self, db: &'a Connection) -> rusqlite::Result<Reader<'a>> {
        self.restart();
        db.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
        let left = self.file_bytes.saturating_mul(2).saturating_add(ALWAYS_BYTES);
        Ok(Reader { db, left: left.into() })
    }
}

/// One of the program's own reads.
pub(super) struct Reader<'a> {
    db: &'a Connection,
    /// The bytes that its rows may still have.
    left: std::cell::Cell<u64>,
}

impl Reader<'_> {
    /// Calls `one` for each row of a statement.
    pub(super) fn each(
        &self,
        sql: &str,
        params: impl Params,
        mut one: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let mut statement = self.db.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params)?;
        while let Some(row) = rows.next()? {
            let mut bytes = ROW_BYTES;
            for column in 0..columns {
                if let ValueRef::Text(value) | ValueRef::Blob(value) = row.get_ref(column)? {
                    bytes += value.len() as u64;
                }
            }
            let left = self.left.get().checked_sub(bytes);
            self.left.set(left.ok_or_else(|| inconsistent("its rows are more than its bytes"))?);
            one(row)?;
        }
        Ok(())
    }

    /// What `one` makes of each row of a statement.
    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        mut one: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut all = Vec::new();
        self.each(sql, params, |row| {
            all.push(one(row)?);
            Ok(())
        })?;
        Ok(all)
    }
}

/// Databases that are in memory: their bytes are added to what SQLite may use.
pub(super) struct InMemory(i64);

/// The sum of all [`InMemory`].
static IN_MEMORY: AtomicI64 = AtomicI64::new(0);

impl InMemory {
    /// A database of this length; 0 for one that stays in its file.
    pub(super) fn new(bytes: usize) -> Self {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX / 4);
        limit_heap(IN_MEMORY.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes));
        Self(bytes)
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        limit_heap(IN_MEMORY.fetch_sub(self.0, Ordering::Relaxed) - self.0);
    }
}

/// Lets SQLite fail, rather than take more memory.
#[allow(unsafe_code)]
fn limit_heap(in_memory: i64) {
    // SAFETY: takes a number, and locks what it changes.
    unsafe { rusqlite::ffi::sqlite3_hard_heap_limit64(HEAP_BYTES.saturating_add(in_memory)) };
}
