//! Small snapshots, written as the JSON that PyTorch's would be.

#![allow(dead_code, missing_docs)] // Each test file uses some of it.

use serde_json::{Value, json};
use snapviewer::bundle;
use snapviewer::digest::{FileDigest, Origin};
use snapviewer::lifetimes::{self, Lifetimes};
use snapviewer::progress::Progress;
use snapviewer::snapshot::Snapshot;
use snapviewer::store::Store;
use tempfile::TempDir;

/// Reads a snapshot from JSON.
pub fn read(snapshot: &Value) -> (Snapshot, Vec<Lifetimes>) {
    lifetimes::read(snapshot.to_string().as_bytes(), &Progress::none()).unwrap()
}

/// What bundles of these are said to be made of.
pub fn origin() -> Origin {
    Origin { format: "json".to_owned(), file: FileDigest::of(b"{}") }
}

/// A snapshot, its store, and the directory that keeps it.
pub fn stored(snapshot: &Value) -> (Snapshot, Store, TempDir) {
    let (snapshot, lifetimes) = read(snapshot);
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("out");
    bundle::write(&snapshot, &lifetimes, &origin(), &output, false, &Progress::none()).unwrap();
    let store = bundle::open(&output, &Progress::none()).unwrap().store().unwrap();
    (snapshot, store, directory)
}

/// Ends an `allocations.json` with its digest, as the program does.
pub fn sealed(document: &Value) -> String {
    let mut content = document.clone();
    content.as_object_mut().unwrap().remove("digest");
    let content = content.to_string();
    let content = content.strip_suffix('}').unwrap();
    format!(r#"{content},"digest":"{}"}}"#, blake3::hash(content.as_bytes()).to_hex())
}

/// One event; `line` makes its stack.
pub fn event(action: &str, addr: u64, size: u64, line: u64) -> Value {
    json!({
        "action": action, "addr": addr, "size": size, "stream": 0, "time_us": 1_000 + line,
        "frames": [frame("inner", line), frame("outer", 1)],
    })
}

pub fn frame(name: &str, line: u64) -> Value {
    json!({"name": name, "filename": "model.py", "line": line})
}

/// Two devices with everything a snapshot can have: pools, OOM, settings, annotations, source code.
pub fn rich() -> Value {
    let mut of_compiled = event("alloc", 0x3000, 64, 5);
    of_compiled["compile_context"] = "0/1".into();
    of_compiled["user_metadata"] = "step 1".into();
    let oom = json!({"action": "oom", "device_free": 12_345, "size": 1_u64 << 40, "stream": 7,
        "time_us": 1_010, "frames": [frame("inner", 9)]});
    json!({
        "segments": [{
            "device": 0, "address": 0x1000, "total_size": 8192, "allocated_size": 100,
            "active_size": 512, "requested_size": 100, "stream": 0, "segment_type": "small",
            "segment_pool_id": [0, 1], "is_expandable": false, "frames": [],
            "blocks": [
                {"address": 0x1000, "size": 512, "requested_size": 100, "state": "active_allocated",
                 "frames": [frame("outer", 1)]},
                {"address": 0x1200, "size": 7680, "requested_size": 0, "state": "inactive", "frames": []},
            ],
        }],
        "device_traces": [
            [
                event("alloc", 0x1200, 10, 1),
                event("free_requested", 0x1200, 10, 2),
                event("free_completed", 0x1200, 10, 2),
                event("alloc", 0x1200, 20, 3),
                event("segment_alloc", 0x9000, 4096, 4),
                of_compiled,
                oom,
                event("free_completed", 0x5000, 30, 6),
                event("brand_new_action", u64::MAX, 1, 7),
            ],
            [event("alloc", u64::MAX - 511, 7, 1)],
        ],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": true},
        "external_annotations": [{"name": "step", "stage": "START", "device": 0, "time_us": 1_001}],
        "further": {"key": [1, 2]},
    })
}

/// Many events: allocations of some sizes and stacks, a few alive at a time.
pub fn long(events: u64) -> Value {
    let trace = (0..events).map(|number| {
        let turn = number / 2 % 5;
        let action = if number % 2 == 0 { "alloc" } else { "free_completed" };
        event(action, 0x7f00_0000_0000 + turn * 512, 100 + turn, turn)
    });
    json!({"device_traces": [trace.collect::<Vec<_>>()]})
}
