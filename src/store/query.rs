//! Users' queries: read-only, one statement, limited in rows, bytes and time.
//!
//! The query runs on a thread of its own, and the calling thread interrupts it when time is up or
//! the caller cancels. SQLite checks for that at every row and every jump; a single function call takes
//! milliseconds at most, because values are short and the functions are chosen ([`super::functions`]).

use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};

use crate::error::{Error, Result};
use crate::store::Chosen;
use crate::store::functions::ALLOWED;
use crate::store::limits::Limits;

/// A user's query.
#[derive(Debug)]
pub struct Query<'a> {
    /// One statement that only reads.
    pub sql: &'a str,
    /// Further tables, each of some allocations: with all of their columns, and their `callstack`.
    pub tables: Vec<Chosen>,
    /// The most rows; further ones are cut off.
    pub rows: usize,
    /// The most time; after that it fails.
    pub time: Duration,
}

impl<'a> Query<'a> {
    /// A query with the usual limits and no further tables.
    #[must_use]
    pub fn new(sql: &'a str) -> Self {
        Self { sql, tables: Vec::new(), rows: 10_000, time: Duration::from_secs(30) }
    }
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, as long as `columns` each.
    pub rows: Vec<Vec<Cell>>,
    /// Whether there were more rows.
    pub is_truncated: bool,
}

/// One value of an answer. Addresses and sizes above 2^63 are the negative number of the same bits.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // SQLite's own names.
pub enum Cell {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// The longest string or blob, and the most memory of an answer.
pub(super) const MAX_VALUE: i32 = 1 << 20;
const MAX_BYTES: usize = 256 << 20;

/// How often the calling thread checks whether to stop.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// Makes a connection read-only, whatever SQL it runs.
pub(super) fn restrict(db: &mut Connection) -> rusqlite::Result<()> {
    // The authorizer would refuse the pragma, too.
    db.authorizer(None::<Authorizer>)?;
    db.execute_batch("pragma query_only = on")?;
    db.authorizer(Some(authorize as Authorizer))
}

/// Lets a connection make views again, until it is restricted. No user's SQL may run meanwhile.
pub(super) fn unrestrict(db: &mut Connection) -> rusqlite::Result<()> {
    db.authorizer(None::<Authorizer>)?;
    db.execute_batch("pragma query_only = off")
}

type Authorizer = fn(AuthContext<'_>) -> Authorization;

fn authorize(context: AuthContext<'_>) -> Authorization {
    const PRAGMAS: [&str; 6] = [
        "table_info",
        "table_xinfo",
        "table_list",
        "function_list",
        "pragma_list",
        "compile_options",
    ];
    let is_allowed = match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => {
            ALLOWED.iter().any(|name| name.eq_ignore_ascii_case(function_name))
        }
        AuthAction::Pragma { pragma_name, .. } => {
            PRAGMAS.iter().any(|name| name.eq_ignore_ascii_case(pragma_name))
        }
        _ => false,
    };
    if is_allowed { Authorization::Allow } else { Authorization::Deny }
}

/// Runs a query, in words that mean the same.
pub(super) fn run(
    db: &mut Connection,
    limits: &Limits,
    query: &Query<'_>,
    sql: &str,
    cancel: &dyn Fn() -> bool,
) -> Result<Table> {
    limits.lift(db, MAX_VALUE).map_err(|error| sentence(&error))?;
    let handle = db.get_interrupt_handle();
    let started = Instant::now();
    let mut stopped = None;
    let answer = std::thread::scope(|scope| {
        let (finished, is_finished) = mpsc::channel::<()>();
        let worker = std::thread::Builder::new().spawn_scoped(scope, move || {
            let answer = collect(db, sql, query.rows);
            drop(finished);
            answer
        });
        let worker =
            worker.map_err(|error| Error::Query { reason: format!("no thread: {error}") })?;
        // An interrupt that comes before the query has begun is lost: so repeat it.
        while is_finished.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            if stopped.is_none() && cancel() {
                stopped = Some(Error::Cancelled);
            } else if stopped.is_none() && started.elapsed() > query.time {
                let reason = format!("it took longer than {:?}; ask for less", query.time);
                stopped = Some(Error::Query { reason });
            }
            if stopped.is_some() {
                limits.stop.store(true, Ordering::Relaxed);
                handle.interrupt();
            }
        }
        // Where memory is short, the database's wrapper panics.
        worker.join().unwrap_or_else(|_| refuse(OUT_OF_MEMORY))
    });
    match (answer, stopped) {
        (Err(_), Some(reason)) => Err(reason),
        (answer, _) => answer,
    }
}

fn collect(db: &Connection, sql: &str, limit: usize) -> Result<Table> {
    let mut statement = db.prepare(sql).map_err(|error| sentence(&error))?;
    if statement.column_count() == 0 {
        return refuse("there is nothing to answer; write one SELECT");
    }
    if statement.parameter_count() > 0 {
        return refuse("it has parameters (such as ?1); write the values themselves");
    }
    let columns = statement.column_names().map(str::to_owned).collect::<Vec<_>>();
    let mut table = Table { columns, rows: Vec::new(), is_truncated: false };
    let mut bytes = 0;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(|error| sentence(&error))? {
        if table.rows.len() == limit {
            table.is_truncated = true;
            break;
        }
        let cells = (0..table.columns.len()).map(|column| row.get_ref(column).map(cell));
        let cells =
            cells.collect::<rusqlite::Result<Vec<_>>>().map_err(|error| sentence(&error))?;
        bytes += cells.iter().map(size).sum::<usize>();
        if bytes > MAX_BYTES {
            return refuse("its answer is larger than 256 MiB; ask for less");
        }
        table.rows.push(cells);
    }
    Ok(table)
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Int(value),
        ValueRef::Real(value) => Cell::Real(value),
        ValueRef::Text(value) => Cell::Text(String::from_utf8_lossy(value).into_owned()),
        ValueRef::Blob(value) => Cell::Blob(value.to_owned()),
    }
}

/// The bytes that a cell takes.
fn size(cell: &Cell) -> usize {
    size_of::<Cell>()
        + match cell {
            Cell::Text(text) => text.len(),
            Cell::Blob(bytes) => bytes.len(),
            _ => 0,
        }
}

/// How SQLite's message on a function begins that [`authorize`] refuses.
const REFUSED: &str = "not authorized to use function: ";
const TOO_LONG: &str = "a value is longer than 1 MiB, or the query than 128 KiB";
const OUT_OF_MEMORY: &str = "it needs more than 256 MiB of memory; ask for less";

fn refuse<T>(reason: &str) -> Result<T> {
    Err(Error::Query { reason: reason.to_owned() })
}

/// SQLite's error as a sentence.
pub(super) fn sentence(error: &rusqlite::Error) -> Error {
    let reason = match error {
        rusqlite::Error::MultipleStatement => {
            "it has more than one statement; write one".to_owned()
        }
        error => match error.sqlite_error_code() {
            Some(ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly) => {
                "only reading is allowed: write one SELECT".to_owned()
            }
            Some(ErrorCode::TooBig) => TOO_LONG.to_owned(),
            Some(ErrorCode::OutOfMemory) => OUT_OF_MEMORY.to_owned(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                format!("elements.db is damaged: {error}")
            }
            _ => match error.to_string() {
                text if text.starts_with(REFUSED) => {
                    let name = text[REFUSED.len()..].split_whitespace().next().unwrap_or_default();
                    format!("the function {name} is not available")
                }
                text if text.starts_with("no such table") => {
                    format!("{text}; see `snapviewer query --help` for the tables")
                }
                text => text,
            },
        },
    };
    Error::Query { reason }
}
