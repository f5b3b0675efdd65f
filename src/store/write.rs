//! Writes `elements.db`.
//!
//! Nothing reads the file until it is complete, so there is no journal, and one sync at the end (by the
//! caller). Sixteen rows a statement: 3.0 against 2.2 million rows a second with one.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::mpsc;

use rusqlite::{Connection, ErrorCode, Statement, params};

use crate::allocator::Replay;
use crate::digest::Origin;
use crate::error::{Error, Result};
use crate::lifetimes::{Allocation, BEFORE, Lifetimes, NO_STACK};
use crate::progress::Progress;
use crate::snapshot::Snapshot;
use crate::store::columns::PackedChunk;
use crate::store::{FORMAT_VERSION, figures, schema};

/// What a database is made of.
pub(crate) struct Contents<'a> {
    pub snapshot: &'a Snapshot,
    pub lifetimes: &'a [Lifetimes],
    /// Of each device's allocator.
    pub replays: &'a [Replay],
    pub origin: &'a Origin,
}

/// Writes a new database. The packed events come from another thread.
pub(crate) fn write(
    path: &Path,
    contents: &Contents<'_>,
    chunks: &mpsc::Receiver<PackedChunk>,
    progress: &Progress<'_>,
) -> Result<()> {
    let &Contents { snapshot, lifetimes, replays, origin } = contents;
    let writer = Writer { snapshot, lifetimes, replays, origin, chunks };
    writer.write(path, progress).map_err(|failed| match failed {
        Failed::Sql(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
            Error::io(path, std::io::ErrorKind::StorageFull.into())
        }
        Failed::Sql(error) => Error::io(path, std::io::Error::other(error)),
        Failed::Other(error) => error,
    })
}

/// The database's error is about the file; others pass through.
enum Failed {
    Sql(rusqlite::Error),
    Other(Error),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

type Wrote<T = ()> = std::result::Result<T, Failed>;

struct Writer<'a> {
    snapshot: &'a Snapshot,
    lifetimes: &'a [Lifetimes],
    replays: &'a [Replay],
    origin: &'a Origin,
    chunks: &'a mpsc::Receiver<PackedChunk>,
}

impl Writer<'_> {
    fn write(&self, path: &Path, progress: &Progress<'_>) -> Wrote {
        let db = Connection::open(path)?;
        db.execute_batch(
            "pragma page_size = 4096; pragma journal_mode = off; pragma synchronous = off;
             pragma locking_mode = exclusive; pragma cache_size = -65536; begin;",
        )?;
        db.execute_batch(&schema::statements().join(";"))?;
        self.metadata(&db)?;
        figures::write(&db, self.lifetimes)?;
        self.stacks(&db, &progress.part(0.0, 0.1))?;
        self.segments(&db)?;
        self.others(&db)?;
        self.allocations(&db, &progress.part(0.1, 0.8))?;
        self.events(&db, &progress.part(0.8, 1.0))?;
        db.execute_batch("commit")?;
        db.close().map_err(|(_, error)| error)?;
        Ok(())
    }

    fn text(&self, id: u32) -> Option<&str> {
        (id != 0).then(|| self.snapshot.strings.get(id))
    }

    fn metadata(&self, db: &Connection) -> Wrote {
        let mut add = db.prepare("insert into metadata values (?, ?)")?;
        add.execute(params!["format_version", FORMAT_VERSION.to_string()])?;
        add.execute(params!["snapviewer_version", env!("CARGO_PKG_VERSION")])?;
        add.execute(params!["source_format", self.origin.format])?;
        add.execute(params!["source_bytes", self.origin.file.bytes.to_string()])?;
        add.execute(params!["source_blake3", self.origin.file.blake3])?;
        let pools =
            self.snapshot.pools.iter().map(|&pool| pool_text(pool)).collect::<Vec<_>>().join(",");
        add.execute(params!["pools", format!("[{pools}]")])?;
        for warning in self.snapshot.oddities.sentences() {
            add.execute(params!["warning", warning])?;
        }
        for (name, value) in &self.snapshot.metadata {
            add.execute(params![format!("entry:{name}"), value.to_string()])?;
        }
        Ok(())
    }

    fn stacks(&self, db: &Connection, progress: &Progress<'_>) -> Wrote {
        let stacks = &self.snapshot.stacks;
        let mut add = db.prepare("insert into frames values (?,?,?,?,?,?,?,?)")?;
        for (id, frame) in stacks.frames().iter().enumerate() {
            let text = |id| self.snapshot.strings.get(id);
            let fx = frame.fx.map(|id| self.text(id));
            let (name, filename, line) =
                (text(frame.name), text(frame.filename), frame.line as i64);
            add.execute(params![id as i64, name, filename, line, fx[0], fx[1], fx[2], fx[3]])?;
        }
        let mut add = db.prepare("insert into stacks values (?, ?)")?;
        let mut frames = String::new();
        for id in 0..stacks.len() as u32 {
            frames.clear();
            for frame in stacks.get(id) {
                let before = if frames.is_empty() { '[' } else { ',' };
                // Writing to memory does not fail.
                let _ = write!(frames, "{before}{frame}");
            }
            frames.push_str(if frames.is_empty() { "[]" } else { "]" });
            add.execute(params![id, frames])?;
            if id % 1024 == 0 {
                progress.at(u64::from(id), stacks.len() as u64)?;
            }
        }
        Ok(())
    }

    fn segments(&self, db: &Connection) -> Wrote {
        let mut add = db.prepare("insert into segments values (?,?,?,?,?,?,?,?,?,?,?,?)")?;
        let mut add_block = db.prepare("insert into blocks values (?,?,?,?,?,?,?)")?;
        let mut add_history = db.prepare("insert into history values (?,?,?,?,?)")?;
        for (number, segment) in (0_i64..).zip(&self.snapshot.segments) {
            add.execute(params![
                number,
                segment.device,
                segment.address as i64,
                segment.total_size as i64,
                segment.allocated_size as i64,
                segment.active_size as i64,
                segment.requested_size as i64,
                segment.stream,
                self.text(segment.segment_type),
                pool_text(segment.pool),
                segment.is_expandable,
                segment.stack,
            ])?;
            for id in segment.blocks.clone() {
                let block = &self.snapshot.blocks[id];
                let numbers = [id as u64, block.address, block.size, block.requested_size];
                let [id, address, size, requested] = numbers.map(|number| number as i64);
                let (state, stack) = (block.state.name(), block.stack);
                add_block.execute(params![id, number, address, size, requested, state, stack])?;
                for entry in block.history.clone() {
                    let past = &self.snapshot.history[entry];
                    let numbers = [entry as u64, past.address, past.real_size];
                    let [entry, address, size] = numbers.map(|number| number as i64);
                    add_history.execute(params![entry, id, address, size, past.stack])?;
                }
            }
        }
        Ok(())
    }

    /// The small tables.
    fn others(&self, db: &Connection) -> Wrote {
        let snapshot = self.snapshot;
        let mut add = db.prepare("insert into annotations values (?,?,?,?)")?;
        for one in &snapshot.annotations {
            let (name, stage) = (self.text(one.name), self.text(one.stage));
            add.execute(params![name, stage, one.device, one.time_us as i64])?;
        }
        let mut add = db.prepare("insert into settings values (?,?)")?;
        for (name, value) in &snapshot.settings {
            add.execute(params![name, value.to_string()])?;
        }
        let mut add = db.prepare("insert into source_code values (?,?)")?;
        for &(path, text) in &snapshot.source_code {
            add.execute(params![snapshot.strings.get(path), snapshot.strings.get(text)])?;
        }
        let mut add = db.prepare("insert into actions values (?,?)")?;
        for (number, name) in snapshot.actions.iter().enumerate() {
            add.execute(params![number as i64, name])?;
        }
        let mut add = db.prepare("insert into extras values (?,?,?,?,?,?,?)")?;
        for (number, one) in snapshot.events.extras_table.items().iter().enumerate() {
            let pool = one.pool.checked_sub(1).and_then(|id| snapshot.pools.get(id as usize));
            let forward = one.forward_frames.checked_sub(1);
            let forward =
                forward.and_then(|id| snapshot.text_lists.get(id as usize)).map(|lines| {
                    lines
                        .iter()
                        .map(|&line| snapshot.strings.get(line))
                        .collect::<Vec<_>>()
                        .join("\n")
                });
            add.execute(params![
                number as i64,
                self.text(one.compile_context),
                self.text(one.user_metadata),
                self.text(one.internal_metadata),
                self.text(one.category),
                pool.map(|&pool| pool_text(pool)),
                forward,
            ])?;
        }
        Ok(())
    }

    fn allocations(&self, db: &Connection, progress: &Progress<'_>) -> Wrote {
        const ROWS: usize = 16;
        let insert = "insert into allocations(device, size, address, stream, stack, alloc_event,
            lifetime, free_pending, free_stack, flags, slack) values";
        let row = format!("({})", ["?"; COLUMNS].join(","));
        let prepare =
            |rows| db.prepare(&format!("{insert} {}", vec![row.as_str(); rows].join(",")));
        let (mut one, mut many) = (prepare(1)?, prepare(ROWS)?);
        let total: usize = self.lifetimes.iter().map(|one| one.allocations.len()).sum();
        // SQLite numbers the rows itself, which is quicker, but would begin with 1.
        db.execute_batch("insert into allocations(idx) values (-1)")?;
        let mut done = 0;
        for (lifetimes, replay) in self.lifetimes.iter().zip(self.replays) {
            let all = &lifetimes.allocations;
            let mut from = 0;
            while from < all.len() {
                let count = if all.len() - from < ROWS { 1 } else { ROWS };
                let statement = if count == 1 { &mut one } else { &mut many };
                for place in 0..count {
                    let block = replay.block_size[from + place];
                    bind(statement, place, lifetimes.device, &all.get(from + place), block)?;
                }
                statement.raw_execute()?;
                from += count;
                done += count;
                if done % 4096 < ROWS {
                    progress.at(done as u64, total as u64)?;
                }
            }
        }
        db.execute_batch("delete from allocations where idx = -1")?;
        Ok(())
    }

    fn events(&self, db: &Connection, progress: &Progress<'_>) -> Wrote {
        let mut add =
            db.prepare("insert into event_columns values (?,?,?,?,?,?,?,?,?,?,?,?,?,?)")?;
        let total: usize = self.lifetimes.iter().map(|one| one.totals.len()).sum();
        let mut done = 0;
        for chunk in self.chunks {
            let [action, address, size, stream, time_us, stack, extras, curves @ ..] =
                &chunk.columns;
            let [requested, allocated, active, reserved] = curves;
            add.execute(params![
                chunk.device,
                chunk.first_event as i64,
                chunk.events as i64,
                action,
                address,
                size,
                stream,
                time_us,
                stack,
                extras,
                requested,
                allocated,
                active,
                reserved,
            ])?;
            done += chunk.events;
            progress.at(done as u64, total as u64)?;
        }
        Ok(())
    }
}

/// What is bound of an allocation.
const COLUMNS: usize = 11;

/// Binds one allocation as the row at this place of the statement.
fn bind(
    to: &mut Statement<'_>,
    place: usize,
    device: i32,
    one: &Allocation,
    block_size: u64,
) -> rusqlite::Result<()> {
    let values: [Option<i64>; COLUMNS] = [
        Some(device.into()),
        Some(one.size as i64),
        Some(one.address as i64),
        Some(one.stream),
        Some(one.stack.into()),
        Some(one.alloc_event),
        // Shorter than the event itself, of which most rows have three bytes.
        Some(one.free_event - one.alloc_event),
        (one.free_requested != BEFORE).then(|| one.free_event - one.free_requested),
        (one.free_stack != NO_STACK).then_some(one.free_stack.into()),
        Some(one.flags.into()),
        Some(block_size.wrapping_sub(one.size) as i64),
    ];
    let first = place * COLUMNS + 1;
    for (offset, value) in values.into_iter().enumerate() {
        to.raw_bind_parameter(first + offset, value)?;
    }
    Ok(())
}

/// A memory pool as JSON, as `segment_pool_id` has it.
fn pool_text((high, low): (i64, i64)) -> String {
    format!("[{high},{low}]")
}
