//! What must hold for what a person types: a query, or a filter.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use snapviewer::bundle;
use snapviewer::filter::Filter;
use snapviewer::lifetimes::Lifetimes;
use snapviewer::progress::Progress;
use snapviewer::snapshot::stack_text::StackTexts;
use snapviewer::store::{Cell, Query, Store};

use crate::common;

/// The limit of each query, and what it may take: a busy machine adds to it.
const TIME: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(3);
const ROWS: usize = 500;

/// A database with something in every table.
static STORE: LazyLock<Store> = LazyLock::new(|| {
    let (snapshot, lives) = common::read(&common::rich());
    let directory = tempfile::tempdir().expect("a temporary directory");
    // A zip is read into memory, so that the directory can go.
    let path = directory.path().join("it.zip");
    let written =
        bundle::write(&snapshot, &lives, &common::origin(), &path, false, &Progress::none());
    written.and_then(|()| bundle::open(&path, &Progress::none())?.store()).expect("a good bundle")
});

/// Runs a text as a query. It ends in time, and changes nothing.
///
/// # Panics
///
/// If not.
pub fn check_sql(sql: &str) {
    let started = Instant::now();
    let query = Query { rows: ROWS, time: TIME, ..Query::new(sql) };
    if let Ok(table) = STORE.query(&query, &|| false) {
        assert!(table.rows.len() <= ROWS, "more rows than asked for");
        for row in &table.rows {
            assert_eq!(row.len(), table.columns.len(), "a row of another length");
        }
    }
    let took = started.elapsed();
    assert!(took < PATIENCE, "took {took:?}");
    let count = STORE.query(&Query::new("select count(*) from allocs"), &|| false);
    assert_eq!(count.expect("a good query").rows, [[Cell::Int(6)]], "allocations");
}

/// The allocations that filters are applied to, the stacks, and times.
static SUBJECT: LazyLock<(Vec<Lifetimes>, StackTexts, Vec<u64>)> = LazyLock::new(|| {
    let (snapshot, lives) = common::read(&common::rich());
    let times = snapshot.traces[0].rows.clone().map(|row| snapshot.events.time_us(row));
    (lives, StackTexts::of(&snapshot), times.collect())
});

/// Applies a text as a filter. Written twice it matches the same; with a further term, what both match.
///
/// # Panics
///
/// If not, or if it takes long.
pub fn check_filter(text: &str) {
    let (lives, stacks, times) = &*SUBJECT;
    let started = Instant::now();
    let mask = |text: &str| Filter::parse(text)?.mask(&lives[0], stacks, times);
    if let Ok(found) = mask(text) {
        assert_eq!(found.len(), lives[0].allocations.len(), "one for each allocation");
        // Longer ones may be too long.
        if let Ok(twice) = mask(&format!("{text} {text}")) {
            assert_eq!(twice, found, "written twice");
        }
        let further = mask("size>=20").expect("a good filter");
        if let Ok(both) = mask(&format!("size>=20 {text}")) {
            let expected: Vec<bool> =
                found.iter().zip(further).map(|(&one, other)| one && other).collect();
            assert_eq!(both, expected, "with a further term");
        }
    }
    let took = started.elapsed();
    assert!(took < PATIENCE, "took {took:?}");
}
