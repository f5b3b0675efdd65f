//! The schema of `elements.db`.
//!
//! Plain tables and views, which the `sqlite3` program reads too. Two rules hold everywhere: numbers
//! above 2^63 (addresses, sizes) are stored as the negative number with the same 64 bits, and a stack
//! is an id into `stacks`, where 0 is the empty one.

use std::sync::OnceLock;

use rusqlite::{Connection, Result};

use crate::store::inconsistent;

/// The tables and views. The comments are shown to users: of a table, the first line is what a row
/// is; of a column, what its name does not say.
pub(super) const SCHEMA: &str = "
-- every allocation
-- In stacking order, numbered across all devices.
create table allocations(
    idx integer primary key, -- numbered across all devices
    device integer,
    size integer, -- requested bytes
    address integer, -- as hexadecimal: printf('%x', address)
    stream integer,
    stack integer, -- its call stack
    alloc_event integer, -- -1: before the first
    lifetime integer, -- in events
    free_pending integer, -- events from the request to the free; null without a request
    free_stack integer, -- the call stack of the free
    flags integer, -- 1 free lost, 2 in no segment, 4 not in the trace
    free_event integer generated always as (alloc_event + lifetime) virtual, -- the number of events: never
    free_requested integer generated always as (alloc_event + lifetime - free_pending) virtual);

-- live allocations at each device's peak
create view at_peak as
    select device, idx, size, stack, alloc_event, free_event
    from allocations join devices using (device)
    where alloc_event <= peak_event and free_event > peak_event;

-- allocations with their call stacks
create view allocs as
    select idx, size,
        alloc_event as start_time, -- event
        free_event as end_time, -- event
        callstack
    from allocations left join callstacks using (stack);

-- call stacks as text
create view callstacks as
    select stack, coalesce((
        select group_concat(text, char(10)) from (
            select frames.text from json_each(stacks.frames) as item
            join frames on frames.frame = item.value order by item.key)), '')
        as callstack -- one line per frame, innermost first
    from stacks;

-- one row per device; -1 is pinned host memory
-- Its allocations are those from first_idx on.
create table devices(
    device integer primary key,
    first_idx integer, -- idx of its first allocation
    events integer, allocations integer,
    initial_bytes integer, peak_bytes integer, peak_event integer, final_bytes integer,
    reserved_initial_bytes integer, reserved_peak_bytes integer,
    oom_events integer, reconciles integer, warnings text);

-- frames of call stacks
-- `text` is how all call stacks show a frame.
create table frames(
    frame integer primary key, name text, filename text, line integer,
    fx_op text, fx_name text, fx_target text, fx_trace text,
    text text generated always as (printf('%s (%s:%u)', name, filename, line)) virtual);

-- call stacks as lists of frames
-- `frames` is a JSON list, the innermost first.
create table stacks(stack integer primary key, frames text);

-- memory reserved from the device, at the end
create table segments(
    segment integer primary key, device integer, address integer, total_size integer,
    allocated_size integer, active_size integer, requested_size integer, stream integer,
    segment_type text, pool text, is_expandable integer, stack integer);

-- parts of segments, at the end
create table blocks(
    block integer primary key, segment integer, address integer, size integer,
    requested_size integer, state text, stack integer);

-- earlier uses of blocks (torch 2.0)
-- The newest first.
create table history(
    entry integer primary key, block integer, address integer, real_size integer, stack integer);

-- marks of the program or the profiler
create table annotations(
    name text,
    stage text, -- START or END
    device integer,
    time_us integer -- Unix time
);

-- names as in memory_viz
-- The address, and how many allocations had it before.
create view identities as
    select idx, printf('b%x_%d', address,
        row_number() over (partition by device, address order by free_event) - 1) as name
    from allocations;

-- settings of the allocator
create table settings(name text, value text);

-- source files in the snapshot
create table source_code(filename text, text text);

-- origin of the bundle
-- format_version, snapviewer_version, source_format, source_bytes, source_blake3, pools, warning (one
-- row each), and under entry:<name> the file's further entries as JSON.
create table metadata(key text, value text);

-- kinds of events
create table actions(action integer primary key, name text);

-- what few events have
create table extras(
    extras integer primary key, compile_context text, user_metadata text, internal_metadata text,
    category text, pool text, forward_frames text);

-- events, packed
-- Inside snapviewer, the table events shows them.
create table event_columns(
    device integer, first_event integer, events integer, action blob, address blob, size blob,
    stream blob, time_us blob, stack blob, extras blob);
";

/// The table that [`super::events`] shows of the packed events.
pub(super) const EVENTS: &str = "create table events(
    device integer, event integer, action text, address integer, size integer, stream integer,
    time_us integer, -- Unix time; null if not recorded
    stack integer, compile_context text, user_metadata text, internal_metadata text,
    category text, pool text, forward_frames text,
    device_free integer -- of an OOM, instead of an address: bytes free on the device
)";

/// All tables and views that queries see, as SQL with comments.
#[must_use]
pub fn described() -> String {
    let about = "-- every event; fast with conditions on device and event";
    format!("{SCHEMA}\n{about}\n{EVENTS};\n")
}

/// The same views with [`super::Store`]'s own function, which needs no JSON and no join for each row.
pub(super) const QUICK_VIEWS: &str = "
create temp view callstacks as
    select stack, callstack(frames) as callstack from main.stacks;

create temp view allocs as
    select a.idx, a.size, a.alloc_event as start_time, a.free_event as end_time,
        callstack(s.frames) as callstack
    from main.allocations a left join main.stacks s on s.stack = a.stack;
";

/// The statements of [`SCHEMA`], without comments, as files have them: another comment must not make
/// another format.
pub(super) fn statements() -> Vec<String> {
    let uncommented = SCHEMA.lines().map(|line| line.split("--").next().unwrap_or("").trim());
    let text = uncommented.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    text.split(';').map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}

/// A row of `sqlite_schema`: type, name, table, whether it has pages, and its statement.
type Entry = (String, String, String, bool, Option<String>);

fn entries(db: &Connection) -> Result<Vec<Entry>> {
    let mut all =
        db.prepare("select type, name, tbl_name, rootpage > 0, sql from sqlite_schema")?;
    let rows = all.query_map([], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
    })?;
    // One more than there should be shows as well as all of them.
    rows.take(statements().len() + 1).collect()
}

/// Refuses a file whose tables and views are not exactly ours, before anything is read from them: a
/// view, a trigger or a generated column of an untrusted file would run when we read.
pub(super) fn check(db: &Connection) -> Result<()> {
    static OURS: OnceLock<Vec<Entry>> = OnceLock::new();
    let ours = match OURS.get() {
        Some(ours) => ours,
        None => {
            let new = Connection::open_in_memory()?;
            new.execute_batch(&statements().join(";"))?;
            OURS.get_or_init(|| entries(&new).unwrap_or_default())
        }
    };
    if entries(db)? == *ours {
        Ok(())
    } else {
        Err(inconsistent("its tables are not snapviewer's"))
    }
}
