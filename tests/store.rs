//! `elements.db`: what it says, and what it refuses to do.

mod common;

use std::process::Command;
use std::time::Duration;

use snapviewer::bundle;
use snapviewer::error::Error;
use snapviewer::progress::Progress;
use snapviewer::snapshot::{Action, Snapshot};
use snapviewer::store::{Cell, Limits, Store, Table};

/// A snapshot, its store, and the directory that keeps it.
fn stored(snapshot: &serde_json::Value) -> (Snapshot, Store, tempfile::TempDir) {
    let (snapshot, lifetimes) = common::read(snapshot);
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("out");
    bundle::write(&snapshot, &lifetimes, "json", &output, false, &Progress::none()).unwrap();
    let store = bundle::open(&output, &Progress::none()).unwrap().store().unwrap();
    (snapshot, store, directory)
}

fn ask(store: &Store, sql: &str) -> Table {
    store.query(sql, &Limits::default(), &|| false).unwrap()
}

fn refusal(store: &Store, sql: &str) -> String {
    match store.query(sql, &Limits::default(), &|| false) {
        Err(Error::Query { reason }) => reason,
        other => panic!("{sql}: {other:?}"),
    }
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

#[test]
fn the_view_that_people_know_answers() {
    let (_, store, _directory) = stored(&common::rich());

    let table = ask(&store, "select * from allocs order by idx");

    assert_eq!(table.columns, ["idx", "size", "start_time", "end_time", "callstack"]);
    let rows: Vec<&[Cell]> = table.rows.iter().map(Vec::as_slice).collect();
    let outer = "outer (model.py:1)";
    // The block that was there all the time, the one that was freed only, then as allocated.
    assert_eq!(
        rows[0],
        [0, 100, -1, 9].map(Cell::Int).into_iter().chain([text(outer)]).collect::<Vec<_>>()
    );
    assert_eq!(rows[1][..4], [1, 30, -1, 7].map(Cell::Int));
    assert_eq!(rows[2][..4], [2, 10, 0, 2].map(Cell::Int));
    assert_eq!(rows[2][4], text(&format!("inner (model.py:1)\n{outer}")));
    assert_eq!(rows[5][..4], [5, 7, 0, 1].map(Cell::Int), "numbers go on over devices");
}

#[test]
fn every_stack_comes_at_once_if_there_are_as_many_as_expected() {
    let (snapshot, store, _directory) = stored(&common::rich());
    let count = snapshot.stacks.len();

    let texts = store.stack_texts(count).unwrap();

    for (id, stack) in (0..).zip(texts.stacks()) {
        let shown = |(name, filename, line)| format!("{name} ({filename}:{line})");
        let expected: Vec<String> = store.frames(id).unwrap().into_iter().map(shown).collect();
        let frames: Vec<&str> =
            stack.iter().map(|&frame| texts.frames()[frame as usize].as_str()).collect();
        assert_eq!(frames, expected);
    }
    let told = store.stack_texts(count + 1).unwrap_err().to_string();
    assert!(told.starts_with("elements.db is damaged (it has another number of stacks)"), "{told}");
}

#[test]
fn the_sqlite3_program_sees_the_same() {
    let (_, store, directory) = stored(&common::rich());
    let sql = "select idx, size, start_time, end_time, callstack from allocs order by idx";
    let Ok(ran) = Command::new("sqlite3")
        .args(["-separator", "|", "-newline", "\n"])
        .arg(directory.path().join("out").join(bundle::ELEMENTS))
        .arg(sql)
        .output()
    else {
        return; // It is not installed here.
    };

    let shown = |cell: &Cell| match cell {
        Cell::Int(number) => number.to_string(),
        Cell::Text(text) => text.clone(),
        other => format!("{other:?}"),
    };
    let line = |row: &Vec<Cell>| row.iter().map(shown).collect::<Vec<_>>().join("|") + "\n";
    let expected: String = ask(&store, sql).rows.iter().map(line).collect();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), expected);
}

#[test]
fn every_table_can_be_asked() {
    let (_, store, _directory) = stored(&common::rich());
    let one = |sql: &str| ask(&store, sql).rows.remove(0).remove(0);

    assert_eq!(one("select segment_type || pool from segments"), text("small[0,1]"));
    assert_eq!(one("select group_concat(state) from blocks"), text("active_allocated,inactive"));
    assert_eq!(one("select name || stage || time_us from annotations"), text("stepSTART1001"));
    assert_eq!(one("select value from settings where name = 'expandable_segments'"), text("true"));
    assert_eq!(
        one("select value from metadata where key = 'entry:further'"),
        text(r#"{"key":[1,2]}"#)
    );
    assert_eq!(one("select value from metadata where key = 'source_format'"), text("json"));
    assert_eq!(one("select count(*) from metadata where key = 'warning'"), Cell::Int(2));
    assert_eq!(one("select free_requested from allocations where idx = 2"), Cell::Int(1));
    assert_eq!(one("select group_concat(oom_events) from devices"), text("1,0"));
    assert_eq!(one("select name from identities where idx = 3"), text("b1200_1"));
    assert_eq!(
        one("select address from allocations where device = 1"),
        Cell::Int(-512),
        "the same 64 bits"
    );
    assert_eq!(
        one("select printf('%x', address) from allocations where device = 1"),
        text("fffffffffffffe00")
    );
}

#[test]
fn the_events_table_has_every_event() {
    // More than one chunk, so that the seams show.
    for snapshot in [common::rich(), common::long(70_000)] {
        let (snapshot, store, _directory) = stored(&snapshot);
        let limits = Limits { rows: 100_000, ..Limits::default() };
        let columns =
            "device, event, action, coalesce(address, device_free), size, stream, time_us, stack";

        let table =
            store.query(&format!("select {columns} from events"), &limits, &|| false).unwrap();

        let mut rows = table.rows.into_iter();
        for trace in &snapshot.traces {
            for (number, row) in trace.rows.clone().enumerate() {
                let event = snapshot.events.get(row);
                let name = snapshot.actions[event.action.0 as usize].clone();
                let expected = vec![
                    Cell::Int(trace.device.into()),
                    Cell::Int(number as i64),
                    Cell::Text(name),
                    Cell::Int(event.address as i64),
                    Cell::Int(event.size as i64),
                    Cell::Int(event.stream),
                    Cell::Int(event.time_us as i64),
                    Cell::Int(event.stack.into()),
                ];
                assert_eq!(rows.next(), Some(expected));
            }
        }
        assert_eq!(rows.next(), None);
    }
}

#[test]
fn what_few_events_have_is_there_too() {
    let (_, store, _directory) = stored(&common::rich());

    let compiled =
        ask(&store, "select event, user_metadata from events where compile_context = '0/1'");
    let oom = ask(&store, "select address, device_free from events where action = 'oom'");

    assert_eq!(compiled.rows, [[Cell::Int(5), text("step 1")]]);
    assert_eq!(oom.rows, [[Cell::Null, Cell::Int(12_345)]]);
    assert_eq!(Action::NAMES[Action::OOM.0 as usize], "oom");
}

#[test]
fn conditions_on_events_choose_what_a_full_scan_would() {
    let (_, store, _directory) = stored(&common::long(70_000));
    let count = |table: &str, condition: &str| {
        ask(&store, &format!("select count(*) from {table} where {condition}")).rows
    };
    // The limit keeps SQLite from handing the condition to the table.
    let plain = "(select * from events limit 1000000)";
    for condition in [
        "event = 65536",
        "event = 1.5",
        "event = '7'",
        "event = 'x'",
        "event = null",
        "event > 65535",
        "event >= 69999.5",
        "event < -3",
        "event <= 0",
        "event < 9e99",
        "event between 65530 and 65540",
        "event > 10 and event > 20 and event <= 30 and event < 1000",
        "event in (1, 2, 65537)",
        "device = 0",
        "device = 0.0 and event < 5",
        "device = 1",
        "device = '0' and event = 3",
        "event between 9223372036854775806 and 9223372036854775807",
    ] {
        assert_eq!(count("events", condition), count(plain, condition), "{condition}");
    }
    let last = ask(
        &store,
        "select event from events where device = 0 order by event limit 1 offset 65600",
    );
    assert_eq!(last.rows, [[Cell::Int(65_600)]]);
    let first = ask(&store, "select event from events order by event desc limit 1");
    assert_eq!(first.rows, [[Cell::Int(69_999)]]);
}

#[test]
fn allocations_join_their_events() {
    let (_, store, _directory) = stored(&common::long(1_000));

    let table = ask(
        &store,
        "select count(*), sum(e.size = a.size), sum(e.action = 'alloc') from allocations a
         join events e on e.device = a.device and e.event = a.alloc_event",
    );

    assert_eq!(table.rows, [[Cell::Int(500), Cell::Int(500), Cell::Int(500)]]);
}

#[test]
fn only_reading_is_allowed() {
    let (_, store, directory) = stored(&common::rich());
    let file = directory.path().join("out").join(bundle::ELEMENTS);
    let before = std::fs::read(&file).unwrap();

    for sql in [
        "delete from allocations",
        "insert into settings values ('a', 'b')",
        "update frames set name = ''",
        "drop table frames",
        "create table t(a)",
        "create temp table t(a)",
        "create temp view v as select 1",
        "attach ':memory:' as other",
        "attach '/etc/passwd' as other",
        "detach main",
        "vacuum into '/tmp/copy'",
        "pragma query_only = off",
        "pragma journal_mode = wal",
        "pragma writable_schema = on",
        "pragma hard_heap_limit = 1",
        "begin",
        "savepoint a",
        "reindex",
        "analyze",
        "alter table frames rename to g",
        "create virtual table t using fts5(a)",
        "insert into events values (1)",
        "select load_extension('x.so')",
    ] {
        let reason = refusal(&store, sql);

        assert!(!reason.is_empty() && !reason.contains('\n'), "{sql}: {reason}");
    }
    assert_eq!(refusal(&store, "delete from frames"), "only reading is allowed: write one SELECT");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    assert_eq!(
        std::fs::read_dir(directory.path().join("out")).unwrap().count(),
        2,
        "no file beside"
    );
}

#[test]
fn what_is_no_single_query_is_refused_in_a_sentence() {
    let (_, store, _directory) = stored(&common::rich());

    assert!(refusal(&store, "").contains("write one SELECT"));
    assert!(refusal(&store, "-- nothing").contains("write one SELECT"));
    assert!(refusal(&store, "select 1; select 2").contains("more than one statement"));
    assert!(refusal(&store, "select ?1").contains("parameters"));
    let unknown = refusal(&store, "select nonsense from allocs");
    assert!(unknown.contains("no such column: nonsense"), "{unknown}");
    assert!(refusal(&store, "select zeroblob(1000000000)").contains("too long"));
    assert!(!refusal(&store, "select 'a\0b'").is_empty());
    assert_eq!(ask(&store, "select 1 -- one\n;").rows, [[Cell::Int(1)]]);
    assert_eq!(ask(&store, "select name from pragma_table_info('allocs')").rows.len(), 5);
    assert_eq!(ask(&store, "pragma table_info(stacks)").rows.len(), 2);
}

#[test]
fn rows_and_bytes_and_time_are_limited() {
    const ENDLESS: &str = "with recursive n(i) as (select 1 union all select i + 1 from n)";
    let (_, store, _directory) = stored(&common::rich());
    let limits = Limits { rows: 3, time: Duration::from_millis(50) };
    let never = || false;

    let cut = store.query(&format!("{ENDLESS} select i from n"), &limits, &never).unwrap();
    let whole = store.query("select 1 union select 2 union select 3", &limits, &never).unwrap();
    let slow =
        store.query(&format!("{ENDLESS} select max(i) from n"), &limits, &never).unwrap_err();
    let large = refusal(&store, &format!("{ENDLESS} select zeroblob(16000000) from n"));

    assert_eq!((cut.rows.len(), cut.is_truncated), (3, true));
    assert_eq!((whole.rows.len(), whole.is_truncated), (3, false));
    assert_eq!(slow.to_string(), "query: it took longer than 50ms; ask for less");
    assert!(large.contains("256 MiB"), "{large}");
    assert_eq!(ask(&store, "select 1").rows.len(), 1, "and it answers again");
}

#[test]
fn a_query_can_be_cancelled() {
    let (_, store, _directory) = stored(&common::rich());
    let sql =
        "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n";

    let answer = store.query(sql, &Limits::default(), &|| true);

    assert!(matches!(answer, Err(Error::Cancelled)), "{answer:?}");
}

#[test]
fn frames_are_those_of_the_snapshot() {
    let (snapshot, store, _directory) = stored(&common::rich());

    for id in 0..snapshot.stacks.len() as u32 {
        let frames = snapshot.stacks.get(id).iter().map(|&frame| snapshot.stacks.frame(frame));
        let string = |id| snapshot.strings.get(id).to_owned();
        let expected: Vec<_> =
            frames.map(|frame| (string(frame.name), string(frame.filename), frame.line)).collect();

        assert_eq!(store.frames(id).unwrap(), expected);
    }
    assert_eq!(store.frames(u32::MAX).unwrap(), []);
}
