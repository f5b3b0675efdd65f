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

/// An event that tells its pool.
fn told(mut event: Value, pool: (i64, i64)) -> Value {
    event["pool_id"] = json!([pool.0, pool.1]);
    event
}

/// An event that tells its category.
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
fn an_event_that_tells_its_pool_is_believed_more_than_a_segment() {
    let events = vec![
        told(event("alloc", 0x1200, 10, 1), (0, 7)),
        event("alloc", 0x1400, 10, 2),
        told(event("free_requested", 0x1600, 10, 3), (0, 8)),
        told(event("free_completed", 0x1600, 10, 4), (0, 9)),
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
fn a_segment_that_came_after_an_allocations_end_does_not_tell_its_pool() {
    let events = vec![
        event("alloc", 0x1200, 10, 1),
        event("free_completed", 0x1200, 10, 2),
        event("segment_free", 0x1000, 4096, 3),
        event("segment_alloc", 0x1000, 4096, 4),
        event("alloc", 0x1200, 10, 5),
        event("free_completed", 0x1200, 10, 6),
        // Covers neither of them.
        event("segment_map", 0x2000, 4096, 7),
    ];

    let device = device(events, Some(vec![segment(0x1000, (0, 1)), segment(0x2000, (0, 2))]));

    let expected =
        [(0x1000, Some((0, 1))), (0x2000, Some((0, 2))), (0x1200, None), (0x1200, Some((0, 1)))];
    assert_eq!(pools(&device), expected);
}

#[test]
fn an_allocation_that_was_alive_when_its_segment_came_is_of_its_pool() {
    let events = vec![
        event("alloc", 0x1200, 10, 1),
        event("segment_map", 0x1000, 4096, 2),
        event("free_completed", 0x1200, 10, 3),
        event("free_completed", 0x1400, 10, 4),
    ];

    let device = device(events, Some(vec![segment(0x1000, (0, 1))]));

    assert!(pools(&device).iter().all(|&(_, pool)| pool == Some((0, 1))));
}

#[test]
fn an_address_in_no_segment_is_of_no_known_pool() {
    let events = vec![
        event("alloc", 0xfff, 1, 1),
        event("alloc", 0x2000, 1, 2),
        event("alloc", 0x1fff, 1, 3),
    ];

    let device = device(events, Some(vec![segment(0x1000, (0, 1))]));

    assert_eq!(device.allocations.pool, [1, 0, 0, 1]);
}

#[test]
fn where_all_segments_are_of_the_default_pool_everything_is() {
    let events = || vec![event("alloc", 0x9000, 10, 1), event("free_completed", 0x9200, 10, 2)];

    let all = device(events(), Some(vec![segment(0x1000, (0, 0))]));
    let mut telling = events();
    telling.push(told(event("snapshot", 0, 0, 3), (0, 0)));
    let with_one_told = device(telling, Some(vec![segment(0x1000, (0, 0))]));

    assert_eq!((all.pools, all.allocations.pool), (vec![(0, 0)], vec![1, 1, 1]));
    assert_eq!(with_one_told.allocations.pool, [1, 0, 0], "a file that tells pools is looked up");
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
    let events = vec![
        event("alloc", u64::MAX, 1, 1),
        event("free_completed", u64::MAX, 1, 2),
        event("alloc", u64::MAX - 1, 1, 3),
        event("segment_alloc", u64::MAX, u64::MAX >> 2, 4),
    ];

    let device = device(events, Some(vec![segment(last, (0, 1))]));

    assert_eq!(device.allocations.pool, [1, 0, 1]);
}

#[test]
fn pools_beyond_what_the_column_can_count_are_not_known() {
    let alloc = |n: u64| json!({"action": "alloc", "addr": n * 512, "size": 1});
    let events = (0..65_536).map(|n| told(alloc(n), (0, n as i64))).collect();

    let device = device(events, None);

    let pool = &device.allocations.pool;
    assert_eq!(device.pools.len(), 65_534);
    assert_eq!((pool[0], pool[65_533], pool[65_534], pool[65_535]), (1, 65_534, 0, 0));
}

#[test]
fn a_category_is_that_of_the_event_that_tells_of_the_allocation() {
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
