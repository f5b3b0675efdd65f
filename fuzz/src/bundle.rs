//! What must hold for a bundle of any bytes at all.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use snapviewer::bundle::{DOCUMENT, ELEMENTS};
use snapviewer::digest::FileDigest;
use snapviewer::error::Result;
use snapviewer::filter::Filter;
use snapviewer::lifetimes::Lifetimes;
use snapviewer::progress::Progress;
use snapviewer::recording::Recording;
use snapviewer::store::{Query, Table};
use snapviewer::timeline::{Order, Timeline};

use crate::archive;

/// How many of everything are looked at.
const LOOKED_AT: usize = 50;
/// Sums are compared with the simplest model for files up to this many steps of it.
const MODELLED: usize = 200_000;

const QUERIES: [&str; 5] = [
    "select count(*), sum(size), max(free_event), min(free_requested) from allocations",
    "select * from allocs order by size desc limit 20",
    "select action, count(*), max(address), max(time_us), max(stack) from events group by action",
    "select * from devices, settings, source_code, metadata limit 50",
    "select name, text, fx_op from frames join identities on frame = idx limit 50",
];

/// Reads bytes as a bundle's zip. It may be refused; what is accepted must add up.
///
/// # Panics
///
/// If it does not.
pub fn check_zip(bytes: &[u8]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("it.zip");
    fs::write(&path, bytes).expect("a file");
    let _ = ask(&path);
}

/// Reads an `allocations.json` and an `elements.db` as a directory and as a zip, with digests that
/// match. Both must give the same.
///
/// # Panics
///
/// If they do not, or if what is accepted does not add up.
pub fn check_parts(document: &[u8], elements: &[u8]) {
    let document = sealed(document, elements);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let files = directory.path().join("files");
    fs::create_dir(&files).expect("a directory");
    fs::write(files.join(DOCUMENT), &document).expect("a file");
    fs::write(files.join(ELEMENTS), elements).expect("a file");
    let zip = directory.path().join("it.zip");
    let members = [(DOCUMENT, document.as_slice()), (ELEMENTS, elements)];
    fs::write(&zip, archive::zip(&members)).expect("a file");
    let (of_files, of_zip) = (ask(&files), ask(&zip));
    match (of_files, of_zip) {
        (Ok(one), Ok(other)) => assert_eq!(one, other, "the directory, and the zip of it"),
        (Err(_), Err(_)) => {}
        (one, other) => panic!("only one of both is read: {one:?}, {other:?}"),
    }
}

/// A document, whose last brace is left out, that ends with the digests.
fn sealed(document: &[u8], elements: &[u8]) -> Vec<u8> {
    let FileDigest { bytes, blake3 } = FileDigest::of(elements);
    let mut sealed = document.to_vec();
    sealed.extend(format!(r#","elements":{{"bytes":{bytes},"blake3":"{blake3}"}}"#).bytes());
    let digest = FileDigest::of(&sealed).blake3;
    sealed.extend(format!(r#","digest":"{digest}"}}"#).bytes());
    sealed
}

/// What a bundle answers. Whether the database is damaged is known by what is asked of it.
type Answers = (Vec<Arc<Lifetimes>>, Vec<Option<String>>);

fn ask(path: &Path) -> Result<Answers> {
    let bundle = Recording::open(path, &Progress::none())?;
    for lives in &bundle.devices {
        assert_adds_up(lives);
    }
    let mut answers = Vec::new();
    let mut add = |answer: Result<String>| answers.push(answer.ok());
    add(bundle.stack_texts().map(|texts| format!("{:?}", texts.frames())));
    add(bundle.annotations().map(|all| format!("{all:?}")));
    add(bundle.metadata().map(|all| format!("{all:?}")));
    for stack in 0..bundle.stack_count().min(LOOKED_AT) as u32 {
        add(bundle.frames(stack).map(|frames| format!("{frames:?}")));
    }
    let filter = Filter::parse("a !forward size>=1 lifetime<9999 lifetime>=1us pool=0..3")?;
    for which in 0..bundle.devices.len().min(4) {
        let lives = &bundle.devices[which];
        add(bundle.event_texts(which, 0..LOOKED_AT).map(|texts| format!("{texts:?}")));
        add(bundle.events_of(which, "oom").map(|all| format!("{all:?}")));
        add(bundle.mask(which, &filter).map(|mask| format!("{mask:?}")));
        for one in 0..lives.allocations.len().min(LOOKED_AT) {
            add(bundle.rounded_size(which, one).map(|size| format!("{size:?}")));
        }
    }
    for sql in QUERIES {
        let table = bundle.query(&Query::new(sql), &|| false);
        add(table.map(|Table { columns, rows, .. }| format!("{columns:?} {rows:?}")));
    }
    Ok((bundle.devices, answers))
}

/// Compares sums with those of the simplest model.
fn assert_adds_up(lives: &Arc<Lifetimes>) {
    let (all, events) = (&lives.allocations, lives.totals.len());
    let Ok(timeline) = Timeline::new(Arc::clone(lives), Order::Allocation, None) else { return };
    if all.len().saturating_mul(events) > MODELLED {
        return;
    }
    let alive = |event: i64| -> u64 {
        let is_alive =
            |&which: &usize| all.alloc_event[which] <= event && event < all.free_event[which];
        (0..all.len()).filter(is_alive).map(|which| all.size[which]).sum()
    };
    assert_eq!(lives.initial_bytes, alive(-1), "the bytes at the beginning");
    for (event, &total) in (0..).zip(&lives.totals) {
        assert_eq!(total, alive(event), "the bytes after event {event}");
    }
    let most = lives.totals.iter().copied().max().unwrap_or(0).max(lives.initial_bytes);
    assert_eq!(lives.peak_bytes, most, "the peak");
    for event in (0..events).step_by(events / 8 + 1) {
        let stack = timeline.stack(timeline.moment(event));
        let sum: u64 = stack.iter().map(|&(which, _)| all.size[which as usize]).sum();
        assert_eq!(sum, lives.totals[event], "the stack after event {event}");
    }
}
