//! Reading with shortcuts gives what reading without them gives, on every file there is.

use std::path::PathBuf;

use base64::Engine;
use proptest::prelude::*;
use snapviewer::lifetimes;
use snapviewer::progress::Progress;
use snapviewer::snapshot::{self, Snapshot};
use snapviewer::source::Source;

/// All that a snapshot says, in a form that can be compared.
fn describe(snapshot: &Snapshot) -> (Vec<String>, String) {
    let frame = |id: &u32| {
        let frame = snapshot.stacks.frame(*id);
        let text = |id| snapshot.strings.get(id);
        format!(
            "{} {} {} {:?}",
            text(frame.name),
            text(frame.filename),
            frame.line,
            frame.fx.map(text)
        )
    };
    let stack = |id| snapshot.stacks.get(id).iter().map(frame).collect::<Vec<_>>().join("\n");
    let events = (0..snapshot.events.len()).map(|row| {
        let event = snapshot.events.get(row);
        let extras = snapshot.events.extras(row);
        let texts = [
            extras.compile_context,
            extras.user_metadata,
            extras.internal_metadata,
            extras.category,
        ];
        format!(
            "{:?} {:?} {:?} {:?} {} {:?}",
            snapshot.actions.get(event.action.0 as usize),
            (event.address, event.size, event.stream, event.time_us),
            texts.map(|id| snapshot.strings.get(id)),
            extras.pool.checked_sub(1).map(|pool| snapshot.pools[pool as usize]),
            stack(event.stack),
            extras.forward_frames.checked_sub(1).map(|list| &snapshot.text_lists[list as usize]),
        )
    });
    let blocks: Vec<_> = snapshot
        .blocks
        .iter()
        .map(|block| (block.address, block.size, stack(block.stack)))
        .collect();
    let rest =
        format!("{:?} {blocks:?} {:?} {:?}", snapshot.traces, snapshot.settings, snapshot.oddities);
    (events.collect(), rest)
}

fn assert_same(bytes: &[u8], name: &str) {
    let quick = lifetimes::read(bytes, &Progress::none());
    let plain = snapshot::read_plainly(bytes, &Progress::none());
    match (quick, plain) {
        (Ok((quick, lives)), Ok(plain)) => {
            assert!(describe(&quick) == describe(&plain), "{name}: the snapshots differ");
            let slow = lifetimes::lifetimes(&plain).expect("lives are found");
            assert_eq!(lives.len(), slow.len(), "{name}");
            for (one, other) in lives.iter().zip(&slow) {
                assert!(
                    one.totals == other.totals && one.check == other.check,
                    "{name}: the lives differ"
                );
                assert_eq!(one.allocations.free_event, other.allocations.free_event, "{name}");
            }
        }
        (Err(quick), Err(plain)) => assert_eq!(quick.to_string(), plain.to_string(), "{name}"),
        (quick, plain) => panic!("{name}: {:?} but {:?}", quick.map(|_| ()), plain.map(|_| ())),
    }
}

fn real_files() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/snapshots");
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "pickle"));
    files.sort();
    files
}

#[test]
fn real_files_read_the_same_with_and_without_shortcuts() {
    for path in real_files() {
        let source = Source::open(&path, &Progress::none()).expect("a real file opens");

        assert_same(source.bytes(), &path.display().to_string());
    }
}

#[test]
fn a_real_file_cut_off_anywhere_is_refused_in_one_sentence() {
    for path in real_files().into_iter().filter(|path| path.ends_with("t26-tiny-97.pickle")) {
        let bytes = std::fs::read(&path).expect("it can be read");
        for length in 0..bytes.len() {
            let error = Source::from_vec(bytes[..length].to_vec())
                .and_then(|source| lifetimes::read(source.bytes(), &Progress::none()).map(|_| ()))
                .expect_err("half a file is no snapshot");
            assert!(error.to_string().contains("at byte"), "{error}");
        }
    }
}

/// An event as CPython writes it once keys and actions are in the memo.
#[derive(Debug, Clone)]
struct Written {
    is_alloc: bool,
    address: u64,
    size: u32,
    frames: Vec<u8>,
    has_own_frames: bool,
    context: &'static str,
    key_order: bool,
    odd: u8,
}

fn written() -> impl Strategy<Value = Written> {
    let context = prop_oneof![4 => Just("N/A"), 1 => Just("0/0"), 1 => Just("12/3")];
    (
        any::<bool>(),
        1..6_u64,
        any::<u32>(),
        prop::collection::vec(0..3_u8, 0..7),
        any::<bool>(),
        context,
        prop::bool::weighted(0.9),
        0..60_u8,
    )
        .prop_map(|(is_alloc, slot, size, frames, has_own_frames, context, key_order, odd)| {
            let shift = size % 28;
            Written {
                is_alloc,
                address: 0x7f00_0000_0000 + slot * 512,
                size: size >> shift,
                frames,
                has_own_frames,
                context,
                key_order,
                odd,
            }
        })
}

/// A pickle of protocol 4 with these events, and the memo numbers a pickler would give.
fn pickled(events: &[Written]) -> Vec<u8> {
    fn text(out: &mut Vec<u8>, text: &str) {
        out.extend([0x8c, text.len() as u8]);
        out.extend(text.as_bytes());
        out.push(0x94);
    }
    let mut out = b"\x80\x04}\x94(".to_vec(); // memo 0
    let mut memo = 1_u32;
    text(&mut out, "names"); // 1, and a list of all strings and frames that events refer to
    out.extend(b"]\x94("); // 2
    memo += 2;
    let names = [
        "action",
        "addr",
        "size",
        "stream",
        "time_us",
        "compile_context",
        "frames",
        "alloc",
        "free_completed",
        "new",
    ];
    for name in names {
        text(&mut out, name); // 3 to 12
        memo += 1;
    }
    for line in 0..3_u8 {
        out.extend(b"}\x94("); // 13, 18, 23
        for word in ["name", "f", "filename", "x.py"] {
            text(&mut out, word);
        }
        out.extend(b"\x8c\x04lineK");
        out.extend([line, b'u']);
        memo += 5;
    }
    out.push(b'e');
    text(&mut out, "device_traces");
    out.extend(b"]\x94]\x94(");
    memo += 3;
    let mut last_stack = None;
    for event in events {
        out.extend(b"}\x94(");
        memo += 1;
        let mut fields: Vec<Vec<u8>> = vec![
            vec![b'h', 3, b'h', if event.is_alloc { 10 } else { 11 }],
            [&[b'h', 4, 0x8a, 6][..], &event.address.to_le_bytes()[..6]].concat(),
            [
                &[b'h', 5][..],
                &match event.size {
                    size @ 0..=0xff => vec![b'K', size as u8],
                    size @ 0x100..=0xffff => [&[b'M'][..], &(size as u16).to_le_bytes()].concat(),
                    size => [&[0x8a, 5][..], &u64::from(size).to_le_bytes()[..5]].concat(),
                },
            ]
            .concat(),
            vec![b'h', 6, b'K', event.odd % 2],
            [
                &[b'h', 7, 0x8a, 7][..],
                &(1_700_000_000_000_000_u64 + u64::from(event.odd)).to_le_bytes()[..7],
            ]
            .concat(),
        ];
        if event.odd == 59 {
            fields.push(vec![b'h', 12, b'N']);
        }
        if !event.key_order {
            fields.reverse();
        }
        out.extend(fields.concat());
        out.extend([b'h', 8]);
        text(&mut out, event.context);
        memo += 1;
        out.extend([b'h', 9]);
        match last_stack {
            Some(stack) if !event.has_own_frames => {
                out.push(b'j');
                out.extend(u32::to_le_bytes(stack));
            }
            _ => {
                last_stack = Some(memo);
                memo += 1;
                out.extend(b"]\x94");
                // Batches of two or of three; a last one of one item is written without a mark.
                for batch in event.frames.chunks(2 + usize::from(event.odd % 3)) {
                    let is_single = batch.len() == 1;
                    out.extend(if is_single { &b""[..] } else { b"(" });
                    for frame in batch {
                        out.extend([b'h', 13 + 5 * frame]);
                    }
                    if event.odd == 58 {
                        out.extend(b"\x95\0\0\0\0\0\0\0\0"); // a FRAME falls anywhere
                    }
                    out.push(if is_single { b'a' } else { b'e' });
                }
            }
        }
        out.push(b'u');
    }
    out.extend(b"eau.");
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn random_traces_read_the_same_with_and_without_shortcuts(events in prop::collection::vec(written(), 0..120)) {
        let bytes = pickled(&events);
        let count = snapshot::read_plainly(&bytes, &Progress::none()).expect("it is a snapshot").events.len();

        prop_assert_eq!(count, events.len());
        assert_same(&bytes, "random");
    }

    #[test]
    fn damaged_traces_read_the_same_with_and_without_shortcuts(
        events in prop::collection::vec(written(), 1..60),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let mut bytes = pickled(&events);
        for (place, byte) in damage {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }

        if bytes[0] == 0x80 {
            assert_same(&bytes, "damaged");
        }
    }
}

/// An event in no trace, which only one of the two ways counted. Found by fuzzing.
const IN_NO_TRACE: &str = "gAR9cQAoWAgAAABzZWdtZW50c3EBXXECKGVYDQAAAGRldmljZV90cmFjZXNxA11xBChdcQVdcQYofXEHKFgGAAAAYW\
    N0aW9ucQhYDAAAAHNlZ21lbnRfZnJlZXEJdX1xCihoCFgOAAAAZnJlZV9jb21wbGV0ZWRxC3V9cQwoaAhoC3V9cQ0o\
    aAhYCAAAAHNuYXBzaG90cQ51fXEPKGgIWA0AAABzZWdtZW50X2FsbG9jcRB1fXERKGgIaA51fXESKGgIaAt1fXETKG\
    gIaAt1ZV1xFCh9cRVYBAAAAGFkZHJxFooGAAgAAAB/c2gIaA5zWAQAAABzaXplcReKBiwAAAAAAHNYBgAAAHN0cmVh\
    bXEYigbmDQAAAABzWAcAAAB0aW1lX3VzcRmKBikAAAAAAHNYDwAAAGNvbXBpbGVfY29udGV4dHEaWAAAAABxG3NYBg\
    AAAGZyYW1lc3EcXXEdc31xHihoCJUAAAAAAAAAAJUAAAAAAAAAAGgWlQ4AAAAAAAAAaBdLu2gYSmwKwaxoGUsvaBpo\
    G2gcXXEfdX1xIGgWigYADgAAAH9zaAhYCAAAAGFubm90YXRlcSFzaBeKBgRuAAAAAHNoGIoGRwAAAAAAc2gZigYAAA\
    AAAABzaBqVAAAAAAAAAABzaByVAAAAAAAAAABzlQAAAAAAAAAAZWVYCwAAAGhvc3RfdHJhY2VzcSJdcSMoXXEkZXUu";

#[test]
fn an_event_in_no_trace_is_counted_by_neither() {
    let bytes = base64::engine::general_purpose::STANDARD.decode(IN_NO_TRACE).unwrap();

    assert_same(&bytes, "an event in no trace");
}
