//! Users' queries: read-only, one statement, limited in rows, bytes and time.
//!
//! The query runs on a thread of its own, and the calling thread interrupts it when time is up or
//! the caller cancels. SQLite looks for that at every row and every jump; what a single function call can
//! do in between is bounded by the length of its strings.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};

use crate::error::{Error, Result};

/// How much a query may give and take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Rows; what is beyond them is cut off.
    pub rows: usize,
    /// How long it may run; beyond that it fails.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rows: 10_000, time: Duration::from_secs(30) }
    }
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, as long as `columns` each.
    pub rows: Vec<Vec<Cell>>,
    /// Whether there were more rows than asked for.
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

/// The largest string or blob, and the most of all that an answer may take.
const MAX_LENGTH: i32 = 16 << 20;
const MAX_BYTES: usize = 256 << 20;

/// How often the calling thread looks whether to go on.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// Limits what a connection may take, for good.
pub(super) fn limit(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch("pragma trusted_schema = off; pragma cell_size_check = on;")?;
    db.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_LENGTH)?;
    db.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20)?;
    db.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    db.set_limit(Limit::SQLITE_LIMIT_WORKER_THREADS, 0)?;
    Ok(())
}

/// Makes a connection one that only reads, whatever it is asked.
pub(super) fn restrict(db: &mut Connection) -> rusqlite::Result<()> {
    // It would not let the pragma through either.
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
            !function_name.eq_ignore_ascii_case("load_extension")
        }
        AuthAction::Pragma { pragma_name, .. } => {
            PRAGMAS.iter().any(|name| name.eq_ignore_ascii_case(pragma_name))
        }
        _ => false,
    };
    if is_allowed { Authorization::Allow } else { Authorization::Deny }
}

/// Runs a query.
pub(super) fn run(
    db: &mut Connection,
    sql: &str,
    limits: &Limits,
    cancel: &dyn Fn() -> bool,
) -> Result<Table> {
    let handle = db.get_interrupt_handle();
    let started = Instant::now();
    let mut stopped = None;
    let answer = std::thread::scope(|scope| {
        let (finished, is_finished) = mpsc::channel::<()>();
        let worker = std::thread::Builder::new().spawn_scoped(scope, move || {
            let answer = collect(db, sql, limits.rows);
            drop(finished);
            answer
        });
        let worker =
            worker.map_err(|error| Error::Query { reason: format!("no thread: {error}") })?;
        // An interrupt that comes before the query has begun is lost: so say it again.
        while is_finished.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            if stopped.is_none() && cancel() {
                stopped = Some(Error::Cancelled);
            } else if stopped.is_none() && started.elapsed() > limits.time {
                let reason = format!("it took longer than {:?}; ask for less", limits.time);
                stopped = Some(Error::Query { reason });
            }
            if stopped.is_some() {
                handle.interrupt();
            }
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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
            Some(ErrorCode::TooBig) => "a value or the query itself is too long".to_owned(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                format!("elements.db is damaged: {error}")
            }
            _ => match error.to_string() {
                text if text.starts_with("no such table") => {
                    format!("{text}; `select name from sqlite_schema` lists what there is")
                }
                text => text,
            },
        },
    };
    Error::Query { reason }
}
