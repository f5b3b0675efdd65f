//! Tables that a caller adds for one query: what they show, and that they are gone after it.

mod common;

use std::time::Duration;

use common::stored;
use snapviewer::bundle;
use snapviewer::error::Error;
use snapviewer::store::{Cell, Chosen, Query, Store, Table};

const ENDLESS: &str = "with recursive n(i) as (select 1 union all select i + 1 from n)";

fn table(name: &str, list: impl IntoIterator<Item = i64>) -> Chosen {
    Chosen::new(name, list.into_iter().collect()).unwrap()
}

fn ask(store: &Store, tables: &[Chosen], sql: &str) -> Table {
    let query = Query { tables: tables.to_vec(), rows: 1_000_000, ..Query::new(sql) };
    store.query(&query, &|| false).unwrap()
}

fn refusal(store: &Store, tables: &[Chosen], sql: &str) -> String {
    let query = Query { tables: tables.to_vec(), ..Query::new(sql) };
    match store.query(&query, &|| false) {
        Err(Error::Query { reason } | Error::Argument { reason }) => reason,
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn a_table_has_the_chosen_allocations_and_their_callstacks() {
    let (_, store, _directory) = stored(&common::rich());
    let chosen = [table("picked", [4, 0, 2, 2, 99, -1, i64::MAX, i64::MIN])];
    let columns = "a.*, (select callstack from allocs b where b.idx = a.idx) as callstack";
    let plain = format!("select {columns} from allocations a where a.idx in (0, 2, 4) order by 1");

    let picked = ask(&store, &chosen, "select * from picked order by idx");

    assert_eq!(picked, ask(&store, &[], &plain));
    assert_eq!(picked.rows.len(), 3);
    assert!(picked.columns.iter().any(|name| name == "free_requested"), "{:?}", picked.columns);
}

#[test]
fn any_condition_on_a_table_gives_what_the_allocations_would() {
    // So many that they are asked for by a function; fewer are written into the view.
    let (_, store, _directory) = stored(&common::long(20_000));
    let even: Vec<i64> = (0..10_000).filter(|idx| idx % 2 == 0).collect();
    let chosen = [table("picked", even), table("few", [7, 8, 9]), table("none", [])];
    let plain = "(select * from allocations where idx % 2 = 0)";
    for rest in [
        "",
        "where idx = 8",
        "where idx = 7",
        "where idx = 8.0",
        "where idx = '8'",
        "where idx = 'x'",
        "where idx is null",
        "where idx > 1990",
        "where idx in (1, 2, 3, 4)",
        "where size = 101 and alloc_event < 100",
        "order by idx",
        "order by idx desc",
        "order by size, idx limit 5",
    ] {
        let sorted = if rest.contains("order") { "" } else { "order by idx" };
        let sql = |from: &str| format!("select idx, size, free_event from {from} {rest} {sorted}");

        assert_eq!(
            ask(&store, &chosen, &sql("picked")).rows,
            ask(&store, &[], &sql(plain)).rows,
            "{rest}"
        );
    }
    let joined = "select count(*), min(picked.idx) from picked join few using (idx)";
    assert_eq!(ask(&store, &chosen, joined).rows, [[Cell::Int(1), Cell::Int(8)]]);
    let left = "select count(*), count(p.idx) from few f left join picked p on p.idx = f.idx";
    assert_eq!(ask(&store, &chosen, left).rows, [[Cell::Int(3), Cell::Int(1)]]);
    let nothing = "select count(*) from none";
    assert_eq!(ask(&store, &chosen, nothing).rows, [[Cell::Int(0)]]);
    let grouped = "select callstack, count(*) from few group by 1 order by 2";
    assert_eq!(ask(&store, &chosen, grouped).rows.len(), 3);
}

#[test]
fn a_call_stack_that_nobody_asks_for_is_not_made() {
    let (_, store, _directory) = stored(&common::long(1_000));
    let chosen = [table("picked", 0..500), table("many", 0..5_000)];
    let steps = |sql: &str| format!("{:?}", ask(&store, &chosen, &format!("explain {sql}")).rows);

    for name in ["picked", "many"] {
        let without = steps(&format!("select sum(size) from {name}"));
        let with = steps(&format!("select callstack from {name}"));

        assert!(with.contains("callstack("), "{with}");
        assert!(!without.contains("callstack("), "{without}");
    }
}

#[test]
fn tables_are_gone_after_the_query_however_it_ends() {
    let (_, store, _directory) = stored(&common::rich());
    let chosen = [table("picked", [1, 2]), table("other", [3])];
    let names = "select name from sqlite_temp_schema order by name";
    let before = ask(&store, &[], names);
    let slow = format!("{ENDLESS} select max(i) from n, picked");

    let ran = ask(&store, &chosen, "select count(*) from picked, other").rows;
    let wrong = refusal(&store, &chosen, "select nonsense from picked");
    let slow = Query { tables: chosen.to_vec(), ..Query::new(&slow) };
    let cancelled = store.query(&slow, &|| true);
    let late = store.query(&Query { time: Duration::from_millis(50), ..slow }, &|| false);
    let hidden = refusal(&store, &[chosen[0].clone(), table("Allocs", [1])], "select 1");

    assert_eq!(ran, [[Cell::Int(2)]]);
    assert!(wrong.contains("no such column: nonsense"), "{wrong}");
    assert!(matches!(late, Err(Error::Query { .. })), "{late:?}");
    assert!(matches!(cancelled, Err(Error::Cancelled)), "{cancelled:?}");
    assert!(hidden.contains("there is a table Allocs already"), "{hidden}");
    assert_eq!(ask(&store, &[], names), before);
    assert!(refusal(&store, &[], "select * from picked").contains("no such table: picked"));
    assert_eq!(ask(&store, &[], "select is_chosen(0, 1)").rows, [[Cell::Int(0)]]);
}

#[test]
fn queries_with_tables_still_only_read() {
    let (_, store, directory) = stored(&common::rich());
    let file = directory.path().join("out").join(bundle::ELEMENTS);
    let before = std::fs::read(&file).unwrap();
    let chosen = [table("picked", [1, 2])];

    // While there are tables, after them, and after tables that were refused.
    for tables in [&chosen[..], &[], &[table("allocs", [1])], &[]] {
        for sql in [
            "delete from allocations",
            "delete from picked",
            "insert into picked(idx) values (1)",
            "drop view picked",
            "drop view temp.picked",
            "create temp table t(a)",
            "create temp table t as select * from picked",
            "create temp view v as select 1",
            "create virtual table temp.t using fts5(a)",
            "attach ':memory:' as other",
            "pragma query_only = off",
            "begin",
        ] {
            assert!(!refusal(&store, tables, sql).is_empty(), "{sql}");
        }
    }
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn a_name_that_is_taken_or_none_is_refused() {
    let (_, store, _directory) = stored(&common::rich());

    for name in ["allocations", "ALLOCS", "events", "callstacks", "json_each", "pragma_table_info"]
    {
        let reason = refusal(&store, &[table(name, [1])], "select 1");
        assert_eq!(reason, format!("there is a table {name} already; give yours another name"));
    }
    let twice = refusal(&store, &[table("one", [1]), table("One", [2])], "select 1");
    assert!(twice.contains("already"), "{twice}");
    for name in ["", "1st", "a b", "a\"b", "a-b", "é", "a.b", "sqlite_x", "SQLITE_y", "a;", "a\0"]
    {
        let refused = Chosen::new(name, vec![1]);
        assert!(matches!(refused, Err(Error::Argument { .. })), "{name:?}");
    }
    let odd = [table("_", [1]), table("select", [1, 2]), table(&"x".repeat(300), [3])];
    assert_eq!(ask(&store, &odd, r#"select count(*) from "select", _"#).rows, [[Cell::Int(2)]]);
}

#[test]
fn a_query_that_waits_for_another_can_be_cancelled() {
    let (_, store, _directory) = stored(&common::rich());
    let endless = format!("{ENDLESS} select max(i) from n");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let relaxed = std::sync::atomic::Ordering::Relaxed;

    std::thread::scope(|scope| {
        let (begun, has_begun) = std::sync::mpsc::channel();
        let (store, endless, is_over) = (&store, &endless, &is_over);
        let first = scope.spawn(move || {
            let stop = || {
                let _ = begun.send(());
                is_over.load(relaxed)
            };
            store.query(&Query::new(endless), &stop)
        });
        has_begun.recv().unwrap();

        let waiting = store.query(&Query::new("select 1"), &|| true);

        assert!(matches!(waiting, Err(Error::Cancelled)), "{waiting:?}");
        is_over.store(true, relaxed);
        assert!(matches!(first.join().unwrap(), Err(Error::Cancelled)));
    });
}
