//! The replay of the caching allocator on real recordings, whole, cut and damaged.

mod common;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use snapviewer::allocator::curves::Curves;
use snapviewer::allocator::state::{BlockState, State, States};
use snapviewer::allocator::{self, Replay};
use snapviewer::lifetimes::Lifetimes;
use snapviewer::progress::Progress;
use snapviewer::recording;
use snapviewer::snapshot::Snapshot;

/// Files that contradict themselves.
const FLAGGED: [&str; 2] = ["SYNTHETIC-mosaic", "TRIMMED-mini"];

/// Peaks of reserved memory and of active blocks in hundredths of GiB, and the number of growths.
const PEAKS: [(&str, u64, u64, usize); 16] = [
    ("t211-4dev", 1294, 1291, 5),
    ("t211-expandable-steady", 3701, 3670, 0),
    ("t211-fullstep-68GB", 7279, 6372, 0),
    ("t211-html-embedded", 1296, 1293, 5),
    ("t211-mostly-frameless", 1321, 1297, 0),
    ("t211-py310", 395, 360, 0),
    ("t211-train-3.9MB", 1179, 1158, 1),
    ("t211-train-small", 87, 71, 9),
    ("t23-py38-before-train", 11, 9, 21),
    ("t26-1722-segments", 4399, 4157, 0),
    ("t26-20k-events", 179, 178, 0),
    ("t26-tiny-97", 352, 303, 9),
    ("t28-ring-full", 661, 642, 0),
    ("t28-train-4.0MB", 6904, 6392, 0),
    ("t29-inference", 240, 215, 30),
    ("t29-python-stacks", 177, 167, 61),
];

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The published recordings, where they are there.
fn snapshots() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/snapshots");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = files.map(|file| file.path()).collect();
    all.retain(|path| path.extension().is_some_and(|suffix| suffix == "pickle"));
    all.sort();
    all
}

fn read(path: &Path) -> (Snapshot, Vec<Lifetimes>) {
    let (snapshot, lifetimes, _) = recording::read(path, &Progress::none()).unwrap();
    (snapshot, lifetimes)
}

fn last_state(lifetimes: &Lifetimes, replay: &Replay) -> State {
    States::new(lifetimes).state(lifetimes, replay, lifetimes.totals.len() as i64 - 1)
}

/// The address, size, whether it is in use: of all blocks of the file.
fn blocks_of_file(snapshot: &Snapshot, device: i32) -> Vec<(u64, u64, bool)> {
    let segments = snapshot.segments.iter().filter(|one| one.device == device);
    let blocks = segments.flat_map(|one| &snapshot.blocks[one.blocks.clone()]);
    let mut all: Vec<_> =
        blocks.map(|one| (one.address, one.size, one.state.is_active())).collect();
    all.sort_unstable();
    all
}

#[test]
fn real_recordings_replay_exactly() {
    for path in snapshots() {
        let name = name(&path);
        let (snapshot, lifetimes) = read(&path);
        for (which, one) in lifetimes.iter().enumerate() {
            let replay = allocator::replay(&snapshot, which, one);

            if FLAGGED.contains(&name.as_str()) {
                assert!(!replay.is_exact(), "{name}");
                continue;
            }
            let found = &replay.contradictions;
            assert!(replay.is_exact(), "{name} {}: {found:?}", one.device);
            assert_eq!(replay.as_recorded, replay.placements, "{name}");
            assert_eq!(replay.first_contradiction, None, "{name}");
            let state = last_state(one, &replay);
            let in_use = |state| state != BlockState::Free;
            let ours: Vec<_> =
                state.blocks.iter().map(|one| (one.address, one.size, in_use(one.state))).collect();
            assert!(ours == blocks_of_file(&snapshot, one.device), "{name}: the last state");
            assert!(state.unplaced.is_empty(), "{name}");
            let segments = snapshot.segments.iter().filter(|segment| segment.device == one.device);
            let reserved: u64 = segments.map(|segment| segment.total_size).sum();
            let curves = Curves::of(one, &replay);
            assert_eq!(curves.reserved.at(one.totals.len() as i64 - 1), reserved, "{name}");
        }
    }
}

#[test]
fn real_recordings_have_the_known_peaks() {
    for path in snapshots() {
        let name = name(&path);
        let Some(&(_, reserved, active, growths)) = PEAKS.iter().find(|one| one.0 == name) else {
            continue;
        };
        let (snapshot, lifetimes) = read(&path);
        let of = |which: usize| allocator::replay(&snapshot, which, &lifetimes[which]);
        let which = (0..lifetimes.len()).max_by_key(|&at| lifetimes[at].totals.len()).unwrap();
        let replay = of(which);
        let curves = Curves::of(&lifetimes[which], &replay);

        let hundredths = |bytes: u64| (bytes * 100 + (1 << 29)) >> 30;
        assert_eq!(hundredths(curves.reserved.peak), reserved, "{name}: reserved");
        assert_eq!(hundredths(curves.active.peak), active, "{name}: active");
        assert_eq!(replay.growths.len(), growths, "{name}: growths");
    }
}

/// Everything that a person could ask for, in which nothing may overflow or take long.
fn ask_everything(snapshot: &Value) -> Vec<Replay> {
    let (snapshot, lifetimes) = common::read(snapshot);
    let replay = |(which, one): (usize, &Lifetimes)| {
        let replay = allocator::replay(&snapshot, which, one);
        let states = States::new(one);
        for event in [-1, 0, 1, one.totals.len() as i64 - 1] {
            let state = states.state(one, &replay, event);
            let used = allocator::domains::domains(&state, &replay.rules);
            assert_eq!(used.is_empty(), state.segments.is_empty());
        }
        assert_eq!(Curves::of(one, &replay).reserved.iter().count(), one.totals.len());
        replay
    };
    lifetimes.iter().enumerate().map(replay).collect()
}

fn segment(address: u64, size: u64, blocks: &[(u64, u64, &str)]) -> Value {
    let block = |&(address, size, state): &(u64, u64, &str)| {
        json!({"address": address, "size": size, "requested_size": size, "state": state,
            "frames": []})
    };
    json!({"device": 0, "address": address, "total_size": size, "stream": 0,
        "segment_type": "large", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [],
        "blocks": blocks.iter().map(block).collect::<Vec<_>>()})
}

#[test]
fn segments_that_cannot_be_are_flagged() {
    let active = "active_allocated";
    // A reader refuses sizes that do not fit, and sums of them.
    let huge = 1_u64 << 62;
    let odd = [
        json!([segment(0x1000, 1 << 21, &[]), segment(0x2000, 1 << 21, &[])]),
        json!([segment(u64::MAX - 100, 1 << 21, &[(u64::MAX - 100, 1 << 21, active)])]),
        json!([segment(0x1000, huge, &[(0x1000, huge, active)])]),
        json!([segment(0, huge, &[(0, huge / 2, active), (512, huge / 2, active)])]),
        json!([segment(0x1000, 512, &[(0x1000, 1 << 40, active)])]),
        json!([segment(0x1000, 0, &[(0x1000, 512, active)])]),
    ];
    for segments in odd {
        let size = huge / 2 - 3;
        let trace = [
            common::event("alloc", 0x1000, size, 1),
            common::event("free_requested", 0x1000, size, 1),
            common::event("free_completed", 0x1000, size, 1),
            common::event("alloc", u64::MAX - 511, 512, 1),
            common::event("segment_alloc", u64::MAX - 511, 1 << 21, 1),
            common::event("segment_map", u64::MAX - 511, huge, 1),
            common::event("segment_unmap", 0x1000, huge, 1),
            common::event("segment_unmap", u64::MAX - 511, 1 << 21, 1),
            common::event("segment_free", 0, huge, 1),
            json!({"action": "oom", "device_free": u64::MAX, "size": huge, "stream": 0,
                "time_us": 1, "frames": []}),
        ];

        let found = ask_everything(&json!({"segments": segments, "device_traces": [trace]}));

        assert!(!found[0].is_exact(), "{segments}");
    }
}

#[test]
fn many_odd_segment_events_take_no_time() {
    let (base, page) = (0x7f00_0000_0000_u64, 2_u64 << 20);
    let count = 100_000_u64;
    let at = |number: u64| base + number * 2 * page;
    let expandable = json!({"expandable_segments": true});
    let unmaps = (0..count).map(|number| common::event("segment_unmap", at(number), page, 1));
    let maps = (0..count).map(|number| common::event("segment_map", at(number), page, 1));
    let wide = (0..count).map(|number| common::event("segment_unmap", base, page * number, 1));
    let pairs = (0..count / 2).flat_map(|number| {
        let map = common::event("segment_map", at(number), page, 1);
        [map, common::event("alloc", at(number), page / 2, 1)]
    });
    let traces: [Vec<Value>; 4] =
        [unmaps.collect(), maps.collect(), wide.collect(), pairs.collect()];
    for trace in traces {
        let file = json!({"device_traces": [trace], "allocator_settings": expandable});

        let found = ask_everything(&file);

        assert_eq!(found.len(), 1);
    }
}

#[test]
fn an_oom_without_anything_else_is_demand() {
    let oom = json!({"action": "oom", "device_free": 1 << 20, "size": 1 << 30, "stream": 0,
        "time_us": 1, "frames": []});

    let found = ask_everything(&json!({"segments": [], "device_traces": [[oom]]}));

    assert_eq!(found[0].ooms[0].verdict, allocator::Verdict::Demand);
    assert_eq!(found[0].ooms[0].short_by_bytes, (1 << 30) - (1 << 20));
}
