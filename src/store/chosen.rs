//! Tables that a caller adds for one query: some allocations each, by their `idx`.
//!
//! Each is a view of the allocations that a list has, and is gone with the query. Long lists stay in
//! memory, where SQL asks for them by the function `is_chosen(list, idx)`, so that no table is written
//! however many there are. Views are made and dropped while no user's SQL runs; only then may the
//! connection write.
//!
//! # Cost
//!
//! A table of all of 1.65M allocations: 5 ms before the query begins, and 0.43 s to add their sizes
//! up, against 0.15 s without a table. A short list costs what it finds.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, Result};

use crate::error::{self, Error};
use crate::store::query::{restrict, unrestrict};
use crate::store::{damaged, query};

/// Some allocations under a name.
#[derive(Debug, Clone)]
pub struct Chosen {
    name: String,
    list: Arc<[i64]>,
}

impl Chosen {
    /// The allocations with these `idx`, in any order, which queries call `name`.
    pub fn new(name: &str, mut list: Vec<i64>) -> error::Result<Self> {
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name || name.to_ascii_lowercase().starts_with("sqlite_") {
            return Err(Error::argument(format!(
                "{name:?} cannot be a table: names are of letters, digits and _, and begin with \
                 neither a digit nor sqlite_"
            )));
        }
        if !list.is_sorted_by(|one, next| one < next) {
            list.sort_unstable();
            list.dedup();
        }
        Ok(Self { name: name.to_owned(), list: list.into() })
    }
}

/// The lists of the query that runs.
pub(super) type Lists = Arc<Mutex<Vec<Arc<[i64]>>>>;

/// A list of up to this many is written into its view: SQLite then looks only these up.
const SHORT: usize = 4096;

/// Lets SQL ask whether a list has an `idx`.
pub(super) fn register(db: &Connection, lists: Lists) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    db.create_scalar_function("is_chosen", 2, flags, move |context| {
        let (number, idx) = (context.get_raw(0).as_i64(), context.get_raw(1).as_i64());
        let lists = lists.lock().unwrap_or_else(PoisonError::into_inner);
        let list = number.ok().and_then(|number| lists.get(usize::try_from(number).ok()?));
        Ok(list.is_some_and(|list| idx.is_ok_and(|idx| list.binary_search(&idx).is_ok())))
    })
}

/// A connection that has these tables until it is dropped. It must be restricted before SQL that is
/// not ours runs.
pub(super) struct With<'a> {
    pub db: &'a mut Connection,
    lists: &'a Lists,
    made: Vec<&'a str>,
}

impl<'a> With<'a> {
    pub(super) fn new(
        db: &'a mut Connection,
        lists: &'a Lists,
        tables: &'a [Chosen],
    ) -> error::Result<Self> {
        let mut with = Self { db, lists, made: Vec::new() };
        if tables.is_empty() {
            return Ok(with);
        }
        *lists.lock().unwrap_or_else(PoisonError::into_inner) =
            tables.iter().map(|table| Arc::clone(&table.list)).collect();
        unrestrict(with.db).map_err(|error| damaged(&error))?;
        for (number, table) in tables.iter().enumerate() {
            with.make(number, table)?;
        }
        Ok(with)
    }

    fn make(&mut self, number: usize, Chosen { name, list }: &'a Chosen) -> error::Result<()> {
        // Not all tables are in the schema: `json_each` is not.
        let looked_up = self.db.prepare(&format!("select 1 from \"{name}\""));
        let is_free = looked_up
            .is_err_and(|error| error.to_string().starts_with(&format!("no such table: {name}")));
        if !is_free {
            return Err(Error::argument(format!(
                "there is a table {name} already; give yours another name"
            )));
        }
        let mut view = format!(
            "create temp view \"{name}\" as
             select a.*, (select callstack(s.frames) from main.stacks s where s.stack = a.stack)
                as callstack
             from main.allocations a where "
        );
        // Writing to memory does not fail.
        let _ = if list.len() <= SHORT {
            let list: Vec<String> = list.iter().map(i64::to_string).collect();
            write!(view, "a.idx in ({})", list.join(","))
        } else {
            write!(view, "is_chosen({number}, a.idx)")
        };
        self.db.execute_batch(&view).map_err(|error| query::sentence(&error))?;
        self.made.push(name);
        Ok(())
    }
}

impl Drop for With<'_> {
    fn drop(&mut self) {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if lists.is_empty() {
            return;
        }
        lists.clear();
        drop(lists);
        // A view that could not be dropped only takes its name.
        let _ = unrestrict(self.db);
        for name in &self.made {
            let _ = self.db.execute_batch(&format!("drop view temp.\"{name}\""));
        }
        let _ = restrict(self.db);
    }
}
