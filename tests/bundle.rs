//! Bundles: what was written comes back, nothing is seen half-written, damage is reported in a sentence.

mod common;

use std::cell::Cell;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use snapviewer::allocator::domains::domains;
use snapviewer::allocator::pins::{apart, pins};
use snapviewer::digest::FileDigest;
use snapviewer::error::{Error, Result};
use snapviewer::lifetimes::{self, Lifetimes};
use snapviewer::progress::Progress;
use snapviewer::recording::Recording;
use snapviewer::snapshot::Snapshot;
use snapviewer::store::{Chosen, Query};
use snapviewer::{allocator, bundle};

fn write(from: &(Snapshot, Vec<Lifetimes>), output: &Path, force: bool) -> Result<()> {
    bundle::write(&from.0, &from.1, &common::origin(), output, force, &Progress::none())
}

/// A rich snapshot, written as bundles of these names in a directory.
fn written(names: &[&str]) -> ((Snapshot, Vec<Lifetimes>), tempfile::TempDir) {
    let (from, directory) = (common::read(&common::rich()), tempfile::tempdir().unwrap());
    for name in names {
        write(&from, &directory.path().join(name), false).unwrap();
    }
    (from, directory)
}

fn open(path: &Path) -> Result<bundle::Bundle> {
    bundle::open(path, &Progress::none())
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Events of a few addresses in any order, as a recording that begins in the middle has them.
fn traces() -> impl Strategy<Value = Value> {
    let action = prop_oneof![
        4 => Just("alloc"), 2 => Just("free_requested"), 4 => Just("free_completed"), 1 => Just("oom"),
        1 => Just("segment_map"), 1 => Just("snapshot"), 1 => Just("unheard_of"),
    ];
    let size = prop_oneof![Just(0_u64), 1..5_000_u64, Just(1 << 40)];
    let stream = prop_oneof![5 => Just(0_i64), 1 => -3..3_i64, 1 => Just(i64::MIN)];
    let time = prop_oneof![1 => Just(0_u64), 5 => any::<u64>()];
    let event = (action, 0..6_u64, size, stream, time, 0..4_u64).prop_map(
        |(action, place, size, stream, time, line)| {
            let addr = if place == 5 { u64::MAX } else { 0x7f00_0000_0000 + 512 * place };
            let category = lifetimes::CATEGORIES[line as usize];
            json!({"action": action, "addr": addr, "size": size, "stream": stream, "time_us": time,
            "frames": [common::frame("f", line)], "pool_id": [0, place % 3], "category": category})
        },
    );
    prop::collection::vec(prop::collection::vec(event, 0..60), 1..4)
        .prop_map(|traces| json!({"device_traces": traces}))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_written_comes_back(json in traces()) {
        let from = common::read(&json);
        let directory = tempfile::tempdir().unwrap();
        for name in ["out.zip", "out"] {
            let output = directory.path().join(name);

            write(&from, &output, false).unwrap();
            let bundle = open(&output).unwrap();

            prop_assert_eq!(&bundle.devices, &from.1);
            for (trace, times) in from.0.traces.iter().zip(&bundle.times) {
                let expected: Vec<u64> = trace.rows.clone().map(|row| from.0.events.time_us(row)).collect();
                let is_empty = expected.iter().all(|&time| time == 0);
                prop_assert_eq!(times, if is_empty { &[][..] } else { &expected[..] });
            }
            prop_assert_eq!(&bundle.warnings, &from.0.oddities.sentences());
            let rows = bundle.store().unwrap().query(&Query::new("select * from allocs"), &|| false).unwrap().rows;
            prop_assert_eq!(rows.len(), from.1.iter().map(|one| one.allocations.len()).sum::<usize>());
        }
    }
}

#[test]
fn a_rich_snapshot_comes_back_from_a_zip_and_what_is_unpacked_from_it() {
    let (from, directory) = written(&["out.ZIP"]);
    let zip = directory.path().join("out.ZIP");
    let unpacked = directory.path().join("unpacked");
    zip::ZipArchive::new(fs::File::open(&zip).unwrap()).unwrap().extract(&unpacked).unwrap();

    assert_eq!(names(directory.path()), ["out.ZIP", "unpacked"], "nothing else is left");
    assert_eq!(names(&unpacked), ["allocations.json", "elements.db"]);
    for path in [zip, unpacked] {
        let bundle = open(&path).unwrap();
        assert_eq!(bundle.devices, from.1);
        assert_eq!(bundle.origin, common::origin());
        assert_eq!(bundle.stacks as usize, from.0.stacks.len());
        assert_eq!(bundle.store().unwrap().frames(1).unwrap().len(), 2);
    }
}

#[test]
fn an_output_that_is_there_is_replaced_only_on_request() {
    let (first, second) = (common::read(&common::rich()), common::read(&common::long(10)));
    let directory = tempfile::tempdir().unwrap();
    for name in ["out.zip", "out"] {
        let output = directory.path().join(name);
        write(&first, &output, true).unwrap();

        let refused = write(&second, &output, false);
        assert!(matches!(refused, Err(Error::Exists { .. })), "{refused:?}");
        assert_eq!(open(&output).unwrap().devices, first.1);

        write(&second, &output, true).unwrap();
        assert_eq!(open(&output).unwrap().devices, second.1);
    }
    assert_eq!(names(directory.path()), ["out", "out.zip"]);
}

#[test]
fn force_never_deletes_what_is_no_bundle() {
    let from = common::read(&common::long(10));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("snap.pickle");
    fs::write(&file, "precious").unwrap();
    let full = directory.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("thesis.tex"), "precious").unwrap();
    let folder = directory.path().join("folder.zip");
    fs::create_dir(&folder).unwrap();
    let empty = directory.path().join("empty");
    fs::create_dir(&empty).unwrap();

    for output in [&file, &full, &folder] {
        let refused = write(&from, output, true).unwrap_err();
        assert!(refused.to_string().starts_with("the output is"), "{refused}");
    }
    write(&from, &empty, true).unwrap();

    assert_eq!(fs::read(&file).unwrap(), b"precious");
    assert_eq!(fs::read(full.join("thesis.tex")).unwrap(), b"precious");
    assert_eq!(open(&empty).unwrap().devices, from.1);
}

#[cfg(unix)]
#[test]
fn a_link_stays_and_what_it_points_to_is_replaced() {
    let from = common::read(&common::long(10));
    let directory = tempfile::tempdir().unwrap();
    let (target, link) = (directory.path().join("target"), directory.path().join("link"));
    write(&from, &target, false).unwrap();
    std::os::unix::fs::symlink("target", &link).unwrap();

    write(&from, &link, true).unwrap();

    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(open(&target).unwrap().devices, from.1);
}

#[test]
fn whenever_it_is_cancelled_nothing_is_left() {
    let from = common::read(&common::long(20_000));
    let directory = tempfile::tempdir().unwrap();
    for name in ["out.zip", "out"] {
        let output = directory.path().join(name);
        for calls in 0.. {
            let left = Cell::new(calls);
            let report = |_, _| left.replace(left.get().max(1) - 1) > 0;
            let written = bundle::write(
                &from.0,
                &from.1,
                &common::origin(),
                &output,
                false,
                &Progress::new(&report),
            );
            if written.is_ok() {
                assert!(calls > 4, "there were {calls} moments to cancel");
                break;
            }
            assert!(matches!(written, Err(Error::Cancelled)), "{written:?}");
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), usize::from(name == "out"));
        }
    }
}

#[cfg(unix)]
#[test]
fn litter_of_a_killed_process_is_removed_and_that_of_a_living_one_is_not() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let gone = child.id();
    child.wait().unwrap();
    let from = common::read(&common::long(10));
    let directory = tempfile::tempdir().unwrap();
    let litter = |name: &str| {
        let path = directory.path().join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("elements.db"), "half").unwrap();
    };
    litter(&format!(".out.zip.{gone}.0123456789abcdef.part"));
    let living = format!(".out.zip.{}.0123456789abcdef.part", std::process::id());
    litter(&living);
    let other = format!(".other.zip.{gone}.0123456789abcdef.part");
    litter(&other);
    litter(".out.zip.backup.part");

    write(&from, &directory.path().join("out.zip"), false).unwrap();

    let mut expected = vec![other, living, ".out.zip.backup.part".to_owned(), "out.zip".to_owned()];
    expected.sort();
    assert_eq!(names(directory.path()), expected);
}

#[test]
fn an_output_with_a_long_or_strange_name_is_fine() {
    let from = common::read(&common::long(10));
    let directory = tempfile::tempdir().unwrap();
    for name in [&*"é".repeat(120), "a b?c#d%41&e=f", "-", "..x"] {
        let output = directory.path().join(name);

        write(&from, &output, false).unwrap();

        assert_eq!(open(&output).unwrap().store().unwrap().frames(1).unwrap().len(), 2, "{name}");
    }
    let nowhere = directory.path().join("no").join("where.zip");
    assert!(matches!(write(&from, &nowhere, false), Err(Error::Io { .. })));
}

/// A directory with this `allocations.json`, and an `elements.db` of as many bytes as it names.
fn with_document(text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(bundle::DOCUMENT), text).unwrap();
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let elements = fs::File::create(directory.path().join(bundle::ELEMENTS)).unwrap();
    elements.set_len(document["elements"]["bytes"].as_u64().unwrap_or(0)).unwrap();
    directory
}

/// The same, with the right digest of what it contains.
fn with_sealed(document: &Value) -> tempfile::TempDir {
    with_document(&common::sealed(document))
}

#[test]
fn a_bundle_of_each_older_version_is_refused_with_what_to_do() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/bundles");
    for version in 2..snapviewer::store::FORMAT_VERSION {
        let sample = samples.join(format!("version-{version}.zip"));

        let refused = open(&sample).unwrap_err().to_string();

        let expected = format!(
            "made by a snapviewer that is too old (format {version}, this one reads 4); open the \
             original snapshot, or convert it again: {}",
            sample.display()
        );
        assert_eq!(refused, expected);
    }
}

#[test]
fn a_database_of_another_bundle_or_an_edited_one_is_refused() {
    let (from, directory) = written(&["out", "out.zip"]);
    let other = directory.path().join("other");
    let mut changed = common::rich();
    changed["device_traces"][0][0]["frames"][0]["name"] = "outer".into();
    write(&common::read(&changed), &other, false).unwrap();
    let of = |name: &str| directory.path().join(name).join(bundle::ELEMENTS);
    let good = fs::read(of("out")).unwrap();
    let others = fs::read(of("other")).unwrap();
    // The name of a function, as a text in the file.
    let at = good.windows(5).position(|part| part == b"inner").unwrap();
    let mut edited = good.clone();
    edited[at..at + 5].copy_from_slice(b"evil!");

    for bytes in [others, edited] {
        let same_length = bytes.len() == good.len();
        fs::write(of("out"), bytes).unwrap();
        let refused = match open(&directory.path().join("out")) {
            Err(error) => error,
            Ok(bundle) if same_length => bundle.store().unwrap_err(),
            Ok(_) => panic!("the length differs"),
        };
        assert!(
            refused.to_string().starts_with("elements.db is of another bundle, or"),
            "{refused}"
        );
    }
    fs::write(of("out"), good).unwrap();
    for name in ["out", "out.zip"] {
        let bundle = open(&directory.path().join(name)).unwrap();
        assert!(bundle.store().unwrap().stack_texts(from.0.stacks.len()).is_ok(), "{name}");
    }
}

#[test]
fn counts_that_the_files_cannot_hold_are_refused_before_anything_is_unpacked() {
    use base64::Engine;
    let (_, directory) = written(&["out"]);
    let document = directory.path().join("out").join(bundle::DOCUMENT);
    let good: Value = serde_json::from_slice(&fs::read(document).unwrap()).unwrap();
    // A zlib stream of zeros: a thousand numbers a byte.
    let zeros = |count: usize| {
        let packer = flate2::write::ZlibEncoder::new(vec![0, 0, 1], flate2::Compression::best());
        let mut packer = packer;
        std::io::Write::write_all(&mut packer, &vec![0; count]).unwrap();
        base64::engine::general_purpose::STANDARD.encode(packer.finish().unwrap())
    };
    let count = 50_000_000;

    for (key, columns) in [("allocations", &["address"][..]), ("events", &["time_us"])] {
        let mut changed = good.clone();
        changed["devices"][0][key] = count.into();
        for column in columns {
            changed["devices"][0]["columns"][column] = zeros(count).into();
        }
        let refused = open(with_sealed(&changed).path()).unwrap_err().to_string();
        assert!(refused.contains("it cannot have that many allocations or events"), "{refused}");
    }
}

#[test]
fn many_events_without_allocations_and_times_come_back() {
    let event = json!({"action": "segment_map", "addr": 0, "size": 0, "stream": 0, "frames": []});
    let from = common::read(&json!({"device_traces": [vec![event; 1_100_000]]}));
    let directory = tempfile::tempdir().unwrap();

    write(&from, &directory.path().join("out"), false).unwrap();

    assert_eq!(open(&directory.path().join("out")).unwrap().devices, from.1);
}

#[test]
fn what_is_no_bundle_of_this_version_is_refused_with_a_sentence() {
    let refusal = |text: &str| open(with_document(text).path()).unwrap_err().to_string();

    let older = refusal(r#" [{"timesteps": [0, 1], "offsets": [0], "size": 5}]"#);
    assert!(
        older.starts_with(
            "made by the older Snapviewer, whose files this one does not read; open the original \
             snapshot, or convert it again with `convert_snap.py -i snap.pickle -o snap.zip`"
        ),
        "{older}"
    );
    let newer = refusal(r#"{"format": "snapviewer", "version": 5, "devices": 7}"#);
    assert!(
        newer.starts_with(
            "made by a newer snapviewer (format 5, this one reads 4); update snapviewer, or open \
             the original snapshot"
        ),
        "{newer}"
    );
    let first = refusal(r#"{"format": "snapviewer", "version": 1, "devices": 7}"#);
    assert!(first.starts_with("made by a snapviewer that is too old (format 1, this"), "{first}");
    let damaged = refusal(r#"{"format": "snapviewer", "version": 4, "devices": 7}"#);
    assert!(damaged.starts_with("allocations.json is damaged"), "{damaged}");
    for text in ["", "{}", "null", r#"{"format": "other", "version": 1}"#, "{\"format\": \"snapv"] {
        let none = refusal(text);
        assert!(none.starts_with("not a snapviewer bundle"), "{text}: {none}");
    }
    let directory = tempfile::tempdir().unwrap();
    let none = open(directory.path()).unwrap_err().to_string();
    assert!(none.starts_with("not a snapviewer bundle"), "{none}");
    fs::write(directory.path().join("x.zip"), "PK\x03\x04 something else").unwrap();
    let none = open(&directory.path().join("x.zip")).unwrap_err().to_string();
    assert!(none.starts_with("the zip is damaged or cut off"), "{none}");
    assert!(matches!(open(&directory.path().join("nothing")), Err(Error::Io { .. })));
}

#[test]
fn figures_that_disagree_are_refused() {
    let (_, directory) = written(&["out"]);
    let document = directory.path().join("out").join(bundle::DOCUMENT);
    let good: Value = serde_json::from_slice(&fs::read(document).unwrap()).unwrap();
    let is_refused = |change: &dyn Fn(&mut Value)| {
        let mut changed = good.clone();
        change(&mut changed);
        let opened = open(with_sealed(&changed).path());
        let error = opened.expect_err("it was changed").to_string();
        error.starts_with("allocations.json is damaged")
    };
    let device = |value: &mut Value, key: &str, to: Value| value["devices"][0][key] = to;

    assert!(open(with_sealed(&good).path()).is_ok());
    let unsealed = open(with_document(&good.to_string()).path()).unwrap_err().to_string();
    assert!(unsealed.contains("it was changed or cut off since it was written"), "{unsealed}");
    for (key, to) in good["devices"][0]["check"].as_object().unwrap() {
        // What only the segments and the events show cannot be computed from the allocations.
        let is_computed = ![
            "has_segments",
            "expected_final_bytes",
            "size_mismatches",
            "snapshots",
            "snapshots_below",
            "is_reserved_negative",
        ]
        .contains(&&**key);
        if is_computed {
            let to = json!(to.as_u64().unwrap() + 1);
            assert!(is_refused(&|value| value["devices"][0]["check"][key] = to.clone()), "{key}");
        }
    }
    for key in ["events", "allocations", "initial_bytes", "peak_bytes", "peak_event", "final_bytes"]
    {
        for to in
            [json!(0), json!(1), json!(u64::MAX >> 1), json!(1_u64 << 40), json!(-1), json!("x")]
        {
            if good["devices"][0][key] != to {
                assert!(is_refused(&|value| device(value, key, to.clone())), "{key} = {to}");
            }
        }
    }
    assert!(is_refused(&|value| value["stacks"] = json!(1)), "a stack is beyond the last");
    assert!(is_refused(&|value| value["stacks"] = json!(0)));
    for events in [json!([9]), json!([6, 6]), json!([6, 5])] {
        assert!(is_refused(&|value| device(value, "oom_events", events.clone())), "{events}");
    }
    for pools in [json!([]), json!([[0, 1], [0, 0]]), json!([[0, 1], [0, 1]]), json!([[0]])] {
        assert!(is_refused(&|value| device(value, "pools", pools.clone())), "{pools}");
    }
    let categories = good["devices"][0]["columns"]["address"].clone();
    assert!(
        is_refused(&|value| value["devices"][0]["columns"]["category"] = categories.clone()),
        "a category is out of range"
    );
    assert!(is_refused(&|value| device(value, "device", json!(1))), "a device is there twice");
    let columns: Vec<String> =
        good["devices"][0]["columns"].as_object().unwrap().keys().cloned().collect();
    for (one, other) in columns.iter().flat_map(|one| columns.iter().map(move |other| (one, other)))
    {
        // Swapping columns either shows, or gives a bundle that is as good as any.
        let mut changed = good.clone();
        changed["devices"][0]["columns"][one] = good["devices"][0]["columns"][other].clone();
        let _ = open(with_sealed(&changed).path());
    }
}

/// Opens whatever this is and asks everything of it; only errors may come out.
fn use_all(path: &Path) {
    let Ok(bundle) = open(path) else { return };
    let Ok(store) = bundle.store() else { return };
    for sql in [
        "select * from allocs",
        "select * from events",
        "select * from segments",
        "select * from frames",
    ] {
        let _ = store.query(&Query::new(sql), &|| false);
    }
    for stack in 0..10 {
        let _ = store.frames(stack);
    }
    let _ = store.stack_texts(bundle.stacks as usize);
    let Ok(recording) = Recording::open(path, &Progress::none()) else { return };
    let _ = recording.annotations();
    let chosen = Chosen::new("some", (-2..9).collect()).unwrap();
    let sql = "select * from some order by idx";
    let _ = recording.query(&Query { tables: vec![chosen], ..Query::new(sql) }, &|| false);
    for which in 0..recording.devices.len() {
        let _ = recording.event_texts(which, 0..100);
        let _ = recording.events_of(which, "oom");
        for allocation in 0..recording.devices[which].allocations.len() {
            let _ = recording.rounded_size(which, allocation);
        }
        ask_replay(&recording, which);
    }
}

/// Asks for everything that follows from the replay of an allocator.
fn ask_replay(recording: &Recording, which: usize) {
    let replayed = recording.replayed(which);
    let (replay, lifetimes) = (&replayed.replay, &recording.devices[which]);
    let _ = (replay.is_exact(), recording.pending(which, &replayed));
    let _ = recording.curves(which, &replayed).reserved.iter().count();
    for event in [-1, 0, 1, lifetimes.totals.len() as i64 - 1] {
        let state = recording.state(which, &replayed, event);
        let _ = domains(&state, &replay.rules);
        let _ = pins(&state, &lifetimes.allocations.stack, &replay.rules);
        for growth in &replay.growths {
            let _ = apart(&state, growth.domain, growth.rounded_bytes);
        }
    }
}

/// The places of all numbers, as JSON pointers.
fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(at.to_owned()),
        Value::Array(all) => {
            for (place, one) in all.iter().enumerate() {
                numbers(one, &format!("{at}/{place}"), found);
            }
        }
        Value::Object(all) => {
            for (key, one) in all {
                numbers(one, &format!("{at}/{key}"), found);
            }
        }
        _ => {}
    }
}

/// A device that grows, gives memory back and runs out of it.
fn grown() -> Value {
    let (base, size) = (0x7f00_0000_0000_u64, 20_u64 << 20);
    let event = common::event;
    let oom = json!({"action": "oom", "device_free": 5, "size": 1 << 30, "stream": 0, "time_us": 9,
        "frames": []});
    let trace = json!([
        event("segment_alloc", base, size, 1),
        event("alloc", base, 3 << 20, 1),
        event("segment_alloc", base + size, size, 1),
        event("alloc", base + size, 9 << 20, 1),
        event("free_requested", base + size, 9 << 20, 1),
        event("free_completed", base + size, 9 << 20, 1),
        event("segment_free", base + size, size, 1),
        oom,
    ]);
    let block = |address: u64, size: u64, state: &str| {
        json!({"address": address, "size": size, "requested_size": size, "state": state,
            "frames": []})
    };
    let blocks =
        [block(base, 3 << 20, "active_allocated"), block(base + (3 << 20), 17 << 20, "inactive")];
    let segment = json!({"device": 0, "address": base, "total_size": size, "stream": 0,
        "segment_type": "large", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [],
        "blocks": blocks});
    json!({"device_traces": [trace], "segments": [segment]})
}

#[test]
fn the_replay_of_an_allocator_comes_back() {
    for snapshot in [common::rich(), grown()] {
        let from = common::read(&snapshot);
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("out");
        write(&from, &output, false).unwrap();

        let found = open(&output).unwrap().replays;

        let replay = |(which, one)| allocator::replay(&from.0, which, one);
        let expected: Vec<_> = from.1.iter().enumerate().map(replay).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_replay_that_cannot_be_is_refused_or_harmless() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("out");
    write(&common::read(&grown()), &output, false).unwrap();
    let good: Value =
        serde_json::from_slice(&fs::read(output.join(bundle::DOCUMENT)).unwrap()).unwrap();
    let mut places = Vec::new();
    numbers(&good["devices"][0]["replay"], "", &mut places);
    let mut refused = 0;

    for place in &places {
        for to in [json!(u64::MAX), json!(1_u64 << 40), json!(-2), json!(0), json!(1.5)] {
            let mut changed = good.clone();
            *changed["devices"][0]["replay"].pointer_mut(place).unwrap() = to;
            let path = with_sealed(&changed);
            fs::copy(output.join(bundle::ELEMENTS), path.path().join(bundle::ELEMENTS)).unwrap();
            refused += usize::from(open(path.path()).is_err());
            use_all(path.path());
        }
    }

    assert!(places.len() > 40, "{places:?}");
    assert!(refused > 2 * places.len(), "{refused} of {}", 5 * places.len());
}

/// Puts the digests of a directory's files right, if there is anything to put right, as who edits a
/// bundle on purpose would.
fn reseal(directory: &Path) {
    let file = directory.join(bundle::DOCUMENT);
    let elements = FileDigest::of(&fs::read(directory.join(bundle::ELEMENTS)).unwrap());
    let document = serde_json::from_slice::<Value>(&fs::read(&file).unwrap());
    if let Ok(mut document) = document
        && document.is_object()
    {
        document["elements"] = serde_json::to_value(elements).unwrap();
        fs::write(file, common::sealed(&document)).unwrap();
    }
}

#[test]
fn damaged_bundles_never_panic() {
    let (from, directory) = written(&["out.zip", "out"]);
    let (zip, output) = (directory.path().join("out.zip"), directory.path().join("out"));
    let mut seed = 1_u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };

    for (file, bundle, turns) in [
        (zip.clone(), &zip, 300),
        (output.join(bundle::DOCUMENT), &output, 400),
        (output.join(bundle::ELEMENTS), &output, 400),
    ] {
        let good = fs::read(&file).unwrap();
        for turn in 0..turns {
            let mut bad = good.clone();
            if turn % 4 == 0 {
                bad.truncate(random(good.len()));
            } else {
                for _ in 0..=random(8) {
                    // Mostly where the structure is: at the beginning and the end.
                    let near = random(400).min(good.len() - 1);
                    let at = [random(good.len()), near, good.len() - 1 - near][random(3)];
                    bad[at] = random(256) as u8;
                }
            }
            fs::write(&file, bad).unwrap();
            if bundle == &output {
                reseal(&output);
            }
            use_all(bundle);
        }
        fs::write(&file, good).unwrap();
    }
    assert_eq!(open(&output).unwrap().devices, from.1);
}
