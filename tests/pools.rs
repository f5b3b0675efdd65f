//! Which memory pool each allocation is of, and what it is for.

mod common;

use common::event;
use serde_json::{Value, json};
use snapviewer::lifetimes::{CATEGORIES, Lifetimes};

/// The one device of a snapshot with these events and segments.
fn device(events: Vec<Value>, segments: Option<Vec<Value>>) -> Lifetimes {
    let mut snapshot = json!({"device_traces": [Value::Array(events)]});
    if let Some(segments) = segments {
        snapshot["segments"] = segments.into();
    }
    let (_, mut devices) = common::read(&snapshot);
    devices.remove(0)
}

/// A segment of 4096 bytes of this pool; its first 512 are in use.
fn segment(address: u64, pool: (i64, i64)) -> Value {
    json!({
        "device": 0, "address": address, "total_size": 4096, "segment_pool_id": [pool.0, pool.1],
        "blocks": [{"address": address, "size": 512, "requested_size": 100, "state": "active_allocated"}],
    })
}

/// Events: what, where and how large.
fn trace(events: &[(&str, u64, u64)]) -> Vec<Value> {
    (1..)
        .zip(events)
        .map(|(line, &(action, address, size))| event(action, address, size, line))
        .collect()
}

/// An event that names its pool.
fn in_pool(mut event: Value, pool: (i64, i64)) -> Value {
    event["pool_id"] = json!([pool.0, pool.1]);
    event
}

/// An event that names its category.
fn of_category(mut event: Value, category: &str) -> Value {
    event["category"] = category.into();
    event
}

/// The address and the pool of each allocation, in stacking order.
fn pools(device: &Lifetimes) -> Vec<(u64, Option<(i64, i64)>)> {
    let pool = |number: u16| Some(device.pools[usize::from(number.checked_sub(1)?)]);
    let all = &device.allocations;
    all.address.iter().zip(&all.pool).map(|(&address, &number)| (address, pool(number))).collect()
}

#[test]
fn the_pool_of_an_event_takes_precedence_over_that_of_a_segment() {
    let events = vec![
        in_pool(event("alloc", 0x1200, 10, 1), (0, 7)),
        event("alloc", 0x1400, 10, 2),
        in_pool(event("free_requested", 0x1600, 10, 3), (0, 8)),
        in_pool(event("free_completed", 0x1600, 10, 4), (0, 9)),
    ];

    let device = device(events, Some(vec![segment(0x1000, (0, 1))]));

    assert_eq!(device.pools, [(0, 1), (0, 7), (0, 8), (0, 9)]);
    let expected = [(0x1000, (0, 1)), (0x1600, (0, 8)), (0x1200, (0, 7)), (0x1400, (0, 1))];
    assert_eq!(pools(&device), expected.map(|(address, pool)| (address, Some(pool))));
}

#[test]
fn the_default_pool_comes_first_and_the_others_ascend() {
    let of = [(1, 0), (-1, 5), (0, 0), (0, 2), (1, 0)];
    let segments = (1..).zip(of).map(|(n, pool)| segment(0x1000 * n, pool)).collect();

    let device = device(vec![], Some(segments));

    assert_eq!(device.pools, [(0, 0), (-1, 5), (0, 2), (1, 0)]);
    assert_eq!(device.allocations.pool, [4, 2, 1, 3, 4]);
}

#[test]
fn a_segment_that_came_after_an_allocations_end_does_not_determine_its_pool() {
    let life = [("alloc", 0x1200, 10), ("free_completed", 0x1200, 10)];
    let anew = [("segment_free", 0x1000, 4096), ("segment_alloc", 0x1000, 4096)];
    let elsewhere = [("segment_map", 0x2000, 4096)];
    let events = trace(&[&life[..], &anew, &life, &elsewhere].concat());

    let device = device(events, Some(vec![segment(0x1000, (0, 1)), segment(0x2000, (0, 2))]));

    let expected =
        [(0x1000, Some((0, 1))), (0x2000, Some((0, 2))), (0x1200, None), (0x1200, Some((0, 1)))];
    assert_eq!(pools(&device), expected);
}

#[test]
fn an_allocation_that_was_alive_when_its_segment_came_is_of_its_pool() {
    let before = [("alloc", 0x1200, 10), ("segment_map", 0x1000, 4096)];
    let after = [("free_completed", 0x1200, 10), ("free_completed", 0x1400, 10)];
    let events = trace(&[before, after].concat());

    let device = device(events, Some(vec![segment(0x1000, (0, 1))]));

    assert!(pools(&device).iter().all(|&(_, pool)| pool == Some((0, 1))));
}

#[test]
fn an_address_in_no_segment_is_of_no_known_pool() {
    let events = trace(&[("alloc", 0xfff, 1), ("alloc", 0x2000, 1), ("alloc", 0x1fff, 1)]);

    let device = device(events, Some(vec![segment(0x1000, (0, 1))]));

    assert_eq!(device.allocations.pool, [1, 0, 0, 1]);
}

#[test]
fn where_all_segments_are_of_the_default_pool_everything_is() {
    let events = || trace(&[("alloc", 0x9000, 10), ("free_completed", 0x9200, 10)]);

    let all = device(events(), Some(vec![segment(0x1000, (0, 0))]));
    let mut naming = events();
    naming.push(in_pool(event("snapshot", 0, 0, 3), (0, 0)));
    let with_one_named = device(naming, Some(vec![segment(0x1000, (0, 0))]));

    assert_eq!((all.pools, all.allocations.pool), (vec![(0, 0)], vec![1, 1, 1]));
    assert_eq!(with_one_named.allocations.pool, [1, 0, 0], "a file that names pools is looked up");
}

#[test]
fn without_segments_and_pool_ids_no_pool_is_known() {
    for segments in [None, Some(vec![])] {
        let device = device(vec![event("alloc", 0x1000, 10, 1)], segments);

        assert_eq!((device.pools, device.allocations.pool), (vec![], vec![0]));
    }
}

#[test]
fn pools_are_of_a_device() {
    let mut other = segment(0x1000, (0, 1));
    other["device"] = 1.into();
    let trace = vec![event("alloc", 0x1200, 10, 1)];
    let snapshot =
        json!({"device_traces": [trace, trace], "segments": [segment(0x1000, (0, 0)), other]});

    let (_, devices) = common::read(&snapshot);

    assert_eq!(
        (&devices[0].pools[..], &devices[0].allocations.pool[..]),
        (&[(0, 0)][..], &[1, 1][..])
    );
    assert_eq!(
        (&devices[1].pools[..], &devices[1].allocations.pool[..]),
        (&[(0, 1)][..], &[1, 1][..])
    );
}

#[test]
fn a_segment_may_end_where_addresses_do() {
    let last = u64::MAX - 4095;
    let life = [("alloc", u64::MAX, 1), ("free_completed", u64::MAX, 1)];
    let later = [("alloc", u64::MAX - 1, 1), ("segment_alloc", u64::MAX, u64::MAX >> 2)];
    let events = trace(&[life, later].concat());

    let device = device(events, Some(vec![segment(last, (0, 1))]));

    assert_eq!(device.allocations.pool, [1, 0, 1]);
}

#[test]
fn pools_beyond_what_the_column_can_count_are_not_known() {
    let alloc = |n: u64| json!({"action": "alloc", "addr": n * 512, "size": 1});
    let events = (0..65_536).map(|n| in_pool(alloc(n), (0, n as i64))).collect();

    let device = device(events, None);

    let pool = &device.allocations.pool;
    assert_eq!(device.pools.len(), 65_534);
    assert_eq!((pool[0], pool[65_533], pool[65_534], pool[65_535]), (1, 65_534, 0, 0));
}

#[test]
fn a_category_is_that_of_the_first_event_of_the_allocation() {
    let events = vec![
        of_category(event("alloc", 0x1000, 1, 1), "parameter"),
        of_category(event("free_completed", 0x1000, 1, 2), "input"),
        of_category(event("alloc", 0x1200, 1, 3), "Autograd_DETAIL"),
        of_category(event("alloc", 0x1400, 1, 4), "unknown"),
        of_category(event("alloc", 0x1600, 1, 5), "something else"),
        of_category(event("alloc", 0x1800, 1, 6), ""),
        event("alloc", 0x1a00, 1, 7),
        of_category(event("free_completed", 0x1c00, 1, 8), "gradient"),
    ];

    let device = device(events, None);

    let names = device.allocations.category.iter();
    let names: Vec<_> =
        names.map(|&one| usize::from(one).checked_sub(1).map(|at| CATEGORIES[at])).collect();
    let known = [Some("gradient"), Some("parameter"), Some("autograd_detail"), Some("unknown")];
    assert_eq!(names, [&known[..], &[None; 3]].concat());
}

#[test]
fn categories_are_found_where_every_event_has_one() {
    let device = device(vec![of_category(event("alloc", 0x1000, 1, 1), "input")], None);

    let category = usize::from(device.allocations.category[0]);

    assert_eq!(CATEGORIES[category - 1], "input");
}
