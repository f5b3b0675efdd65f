//! `elements.db`: what it says, and what it refuses to do.

mod common;

use std::process::Command;
use std::time::Duration;

use common::stored;
use snapviewer::bundle;
use snapviewer::error::Error;
use snapviewer::snapshot::Action;
use snapviewer::store::{Cell, Query, Store, Table};

fn ask(store: &Store, sql: &str) -> Table {
    store.query(&Query::new(sql), &|| false).unwrap()
}

fn refusal(store: &Store, sql: &str) -> String {
    match store.query(&Query::new(sql), &|| false) {
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
    let reason = store.stack_texts(count + 1).unwrap_err().to_string();
    assert!(
        reason.starts_with("elements.db is damaged (it has another number of stacks)"),
        "{reason}"
    );
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
        let columns =
            "device, event, action, coalesce(address, device_free), size, stream, time_us, stack";

        let sql = format!("select {columns} from events");
        let table = store.query(&Query { rows: 100_000, ..Query::new(&sql) }, &|| false).unwrap();

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
    assert!(refusal(&store, "select zeroblob(1000000000)").contains("longer than 1 MiB"));
    assert!(!refusal(&store, "select 'a\0b'").is_empty());
    assert_eq!(ask(&store, "select 1 -- one\n;").rows, [[Cell::Int(1)]]);
    assert_eq!(ask(&store, "select name from pragma_table_info('allocs')").rows.len(), 5);
    assert_eq!(ask(&store, "pragma table_info(stacks)").rows.len(), 2);
}

#[test]
fn rows_and_bytes_and_time_are_limited() {
    const ENDLESS: &str = "with recursive n(i) as (select 1 union all select i + 1 from n)";
    let (_, store, _directory) = stored(&common::rich());
    let limited = |sql: &str| {
        let query = Query { rows: 3, time: Duration::from_millis(50), ..Query::new(sql) };
        store.query(&query, &|| false)
    };

    let cut = limited(&format!("{ENDLESS} select i from n")).unwrap();
    let whole = limited("select 1 union select 2 union select 3").unwrap();
    let slow = limited(&format!("{ENDLESS} select max(i) from n")).unwrap_err();
    let large = refusal(&store, &format!("{ENDLESS} select zeroblob(1000000) from n"));

    assert_eq!((cut.rows.len(), cut.is_truncated), (3, true));
    assert_eq!((whole.rows.len(), whole.is_truncated), (3, false));
    assert_eq!(slow.to_string(), "query: it took longer than 50ms; ask for less");
    assert!(large.contains("256 MiB"), "{large}");
    assert_eq!(ask(&store, "select 1").rows.len(), 1, "and it answers again");
}

/// Single calls, and texts of a query, that would take minutes or all memory.
const WORST: &[&str] = &[
    "select instr(zeroblob(1000000), zeroblob(500000) || x'01')",
    "select instr(printf('%.*c', 1000000, 'a'), printf('%.*c', 500000, 'a') || 'b')",
    "select printf('%.*c', 1000000, 'a') like '%' || printf('%.*c', 500000, '_') || 'b'",
    "select printf('%.*c', 1000000, 'a') like '%' || replace(printf('%.*c', 300000, 'a'), 'a', 'a%') || 'b'",
    "select printf('%.*c', 1000000, 'a') like printf('%.*c', 500000, '%') || 'b' escape '!'",
    "select printf('%.*c', 1000000, 'a') glob '*' || printf('%.*c', 500000, 'a') || 'b'",
    "select printf('%.*c', 1000000, 'a') glob '*[' || printf('%.*c', 500000, 'b') || ']'",
    "select length(replace(printf('%.*c', 1000000, 'a'), printf('%.*c', 500000, 'a') || 'b', 'c'))",
    "select length(replace(printf('%.*c', 1000, 'a'), 'a', printf('%.*c', 1000000, 'b')))",
    "select length(trim(printf('%.*c', 900000, 'a'), printf('%.*c', 900000, 'b') || 'a'))",
    "select length(hex(zeroblob(500000))), length(quote(zeroblob(500000)))",
    "select length(printf('%*d', 1000000, 1)), length(printf('%.900000f', 1e300))",
    "select json_valid(printf('%.*c', 1000000, '['))",
    "select json_extract('[' || replace(printf('%.*c', 400000, '1'), '1', '1,') || '1]', '$[#-1]',
        '$[#-2]', '$[#-3]', '$[#-4]', '$[#-5]', '$[#-6]', '$[#-7]', '$[#-8]', '$[#-9]', '$[#-10]')",
    "select length(json_array(zeroblob(9), printf('%.*c', 900000, '\"')))",
    "select json_pretty('[[1]]', printf('%.*c', 1000000, ' '))",
    "select json_patch('{}', '{}')",
    "with recursive n(i) as (select 1 union all select i + 1 from n)
        select length(json_group_array(printf('%.*c', 1000000, 'a'))) from n",
    "with recursive n(i) as (select 1 union all select i + 1 from n)
        select length(group_concat(printf('%.*c', 1000, 'a'))) from n",
    "with recursive n(i, t) as (select 1, 'a' union all select i + 1, t || t from n) select max(i) from n",
    "with recursive n(i) as (select 1 union all select i + 1 from n)
        select printf('%.*c', 1000000, 'a') || i from n order by 1",
    "select strftime(replace(printf('%.*c', 100000, 'a'), 'a', '%J'), 'now')",
    "select count(*) from allocations a, allocations b, allocations c, allocations d, allocations e,
        allocations f, allocations g, allocations h, allocations i, allocations j, allocations k, allocations l",
];

#[test]
fn the_worst_calls_end_when_they_are_asked_to() {
    let (_, store, _directory) = stored(&common::rich());
    let tables = (1..60).map(|number| {
        let before = number - 1;
        format!(", t{number} as (select a.x from t{before} a, t{before} b)")
    });
    let tables = tables.collect::<String>();
    let nested = format!("with t0 as (select 1 as x){tables} select count(*) from t59");
    let few = format!(
        "with t0 as (select 1 as x){} select count(*) from t20",
        tables.split_inclusive(')').take(20).collect::<String>()
    );
    let joined = format!(
        "select 1 from {} where {}",
        (0..60).map(|number| format!("allocations t{number}")).collect::<Vec<_>>().join(", "),
        (0..59)
            .map(|number| format!("(t{number}.idx = t{}.idx or t{number}.size = 1)", number + 1))
            .collect::<Vec<_>>()
            .join(" and ")
    );
    for sql in WORST.iter().copied().chain([&*nested, &*few, &*joined]) {
        let query = Query { time: Duration::from_millis(100), ..Query::new(sql) };

        // The answer, or a refusal. This test is over soon only if each ends soon.
        match store.query(&query, &|| false) {
            Ok(_) | Err(Error::Query { .. }) => {}
            Err(other) => panic!("{sql}: {other}"),
        }
    }
    assert_eq!(ask(&store, "select 1").rows.len(), 1, "and it answers again");
    assert_eq!(
        refusal(&store, "select json_patch('{}', '{}')"),
        "the function json_patch is not available"
    );
}

#[test]
fn functions_of_our_own_answer_as_those_of_sqlite() {
    let (_, store, _directory) = stored(&common::rich());
    let plain = rusqlite::Connection::open_in_memory().unwrap();
    let texts = [
        "null",
        "''",
        "'a'",
        "'aaa'",
        "'aXbxc'",
        "'äöü'",
        "'100%'",
        "'a_b'",
        "'[a]'",
        "x'00ff61'",
        "x'61'",
        "12",
        "-1.5",
        "1e20",
        "0.1",
        "1e-7",
        "123456789.0",
        "'%'",
        "'_'",
        "'%b%'",
        "'A%'",
        "'_%_'",
        "'%ü'",
        "'a!%'",
        "'*'",
        "'a*c'",
        "'?[b-x]*'",
        "'[^a]*'",
        "'[]a]*'",
        "'[a'",
        "'*[ö-ü]'",
        "'**?'",
        "' a '",
    ];
    let shown = |value: rusqlite::types::ValueRef<'_>| match value {
        rusqlite::types::ValueRef::Null => Cell::Null,
        rusqlite::types::ValueRef::Integer(value) => Cell::Int(value),
        rusqlite::types::ValueRef::Real(value) => Cell::Real(value),
        rusqlite::types::ValueRef::Text(value) => text(&String::from_utf8_lossy(value)),
        rusqlite::types::ValueRef::Blob(value) => Cell::Blob(value.to_owned()),
    };
    for one in texts {
        for other in texts {
            let sql = format!(
                "select instr({one}, {other}), {one} like {other}, {one} like {other} escape '!',
                    {one} glob {other}, replace({one}, {other}, 'zz'), trim({one}, {other}),
                    ltrim({one}, {other}), rtrim({one}, {other}), trim({one})"
            );
            let found = ask(&store, &sql).rows.remove(0);
            let expected: Vec<Cell> = plain
                .query_row(&sql, [], |row| (0..9).map(|at| row.get_ref(at).map(shown)).collect())
                .unwrap();
            // SQLite ends a text at its first NUL here, and we do not.
            if !one.contains("00") && !other.contains("00") {
                assert_eq!(found, expected, "{sql}");
            }
        }
    }
}

#[test]
fn a_query_can_be_cancelled() {
    let (_, store, _directory) = stored(&common::rich());
    let sql =
        "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n";

    let answer = store.query(&Query::new(sql), &|| true);

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
