//! What `elements.db` looks like.
//!
//! Plain tables and views, which the `sqlite3` program reads too. Two rules hold everywhere: numbers
//! above 2^63 (addresses, sizes) are stored as the negative number with the same 64 bits, and a stack
//! is an id into `stacks`, where 0 is the empty one.

/// The tables and views.
pub(super) const SCHEMA: &str = "
-- What the bundle was made from and by: format_version, snapviewer_version, source_format,
-- pools, warning (one row each), and under entry:<name> the file's further entries as JSON.
create table metadata(key text, value text);

-- One row a device; -1 is pinned host memory. Its allocations are those from first_idx on.
create table devices(
    device integer primary key, first_idx integer, events integer, allocations integer,
    initial_bytes integer, peak_bytes integer, peak_event integer, final_bytes integer,
    reserved_initial_bytes integer, reserved_peak_bytes integer,
    oom_events integer, reconciles integer, warnings text);

-- One line of a call stack. `text` is how all call stacks show it.
create table frames(
    frame integer primary key, name text, filename text, line integer,
    fx_op text, fx_name text, fx_target text, fx_trace text,
    text text generated always as (printf('%s (%s:%u)', name, filename, line)) virtual);

-- `frames` is a JSON list of frames, the innermost first.
create table stacks(stack integer primary key, frames text);

-- Every allocation, in stacking order, numbered through over all devices. An alloc_event of -1 is
-- before the first event, a free_event equal to the number of events is never. free_pending is how
-- many events the free took from its request on (null: no request). flags: 1 its free was lost,
-- 2 it is in no segment, 4 only the segments tell of it.
create table allocations(
    idx integer primary key, device integer, size integer, address integer, stream integer,
    stack integer, alloc_event integer, lifetime integer, free_pending integer,
    free_stack integer, flags integer,
    free_event integer generated always as (alloc_event + lifetime) virtual,
    free_requested integer generated always as (alloc_event + lifetime - free_pending) virtual);

-- The memory at the end of the recording.
create table segments(
    segment integer primary key, device integer, address integer, total_size integer,
    allocated_size integer, active_size integer, requested_size integer, stream integer,
    segment_type text, pool text, is_expandable integer, stack integer);
create table blocks(
    block integer primary key, segment integer, address integer, size integer,
    requested_size integer, state text, stack integer);
-- The past of blocks in files of torch 2.0, the newest first.
create table history(
    entry integer primary key, block integer, address integer, real_size integer, stack integer);

create table annotations(name text, stage text, device integer, time_us integer);
create table settings(name text, value text);
create table source_code(filename text, text text);

-- The events, packed: snapviewer shows them as the table
-- events(device, event, action, address, size, stream, time_us, stack, compile_context,
-- user_metadata, internal_metadata, category, pool, forward_frames, device_free).
create table actions(action integer primary key, name text);
create table extras(
    extras integer primary key, compile_context text, user_metadata text, internal_metadata text,
    category text, pool text, forward_frames text);
create table event_columns(
    device integer, first_event integer, events integer, action blob, address blob, size blob,
    stream blob, time_us blob, stack blob, extras blob);

create view callstacks as
    select stack, coalesce((
        select group_concat(text, char(10)) from (
            select frames.text from json_each(stacks.frames) as item
            join frames on frames.frame = item.value order by item.key)), '') as callstack
    from stacks;

create view allocs as
    select idx, size, alloc_event as start_time, free_event as end_time, callstack
    from allocations left join callstacks using (stack);

-- What is alive at each device's peak.
create view at_peak as
    select device, idx, size, stack, alloc_event, free_event
    from allocations join devices using (device)
    where alloc_event <= peak_event and free_event > peak_event;

-- The name that memory_viz gives an allocation: its address, and how many were there before.
create view identities as
    select idx, printf('b%x_%d', address,
        row_number() over (partition by device, address order by free_event) - 1) as name
    from allocations;
";

/// The same views with [`super::Store`]'s own function, which needs no JSON and no join for each row.
pub(super) const QUICK_VIEWS: &str = "
create temp view callstacks as
    select stack, callstack(frames) as callstack from main.stacks;

create temp view allocs as
    select a.idx, a.size, a.alloc_event as start_time, a.free_event as end_time,
        callstack(s.frames) as callstack
    from main.allocations a left join main.stacks s on s.stack = a.stack;
";

/// The tables that reading relies on.
pub(super) const NEEDED: &[&str] = &[
    "frames",
    "stacks",
    "allocations",
    "event_columns",
    "actions",
    "extras",
    "segments",
    "blocks",
    "annotations",
    "metadata",
];
