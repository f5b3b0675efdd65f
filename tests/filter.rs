//! Filters: what they let through, and that nothing which a person types does harm.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use regex::Regex;
use serde_json::{Value, json};
use snapviewer::filter::Filter;
use snapviewer::lifetimes::{Allocation, BEFORE, Lifetimes, NO_STACK};
use snapviewer::progress::Progress;
use snapviewer::recording::{self, Recording};
use snapviewer::snapshot::stack_text::StackTexts;

/// A snapshot, and the two bundles made of it.
fn recordings(snapshot: &Value, directory: &Path) -> [Recording; 3] {
    let input = directory.join("snap.json");
    std::fs::write(&input, snapshot.to_string()).unwrap();
    let open = |path: &Path| Recording::open(path, &Progress::none()).unwrap();
    let bundle = |name: &str| {
        let output = directory.join(name);
        recording::convert(&input, &output, None, true, &Progress::none()).unwrap();
        open(&output)
    };
    [open(&input), bundle("out.zip"), bundle("out")]
}

fn opened(snapshot: &Value) -> Recording {
    let [recording, ..] = recordings(snapshot, tempfile::tempdir().unwrap().path());
    recording
}

/// The allocations of the first device that a filter matches.
fn shown(recording: &Recording, filter: &str) -> Vec<usize> {
    let mask = recording.mask(0, &Filter::parse(filter).unwrap()).unwrap();
    mask.iter().enumerate().filter(|(_, shown)| **shown).map(|(index, _)| index).collect()
}

fn refusal(filter: &str) -> String {
    Filter::parse(filter).unwrap_err().to_string()
}

/// Five allocations: 0 was there before and stays, 1 was there before, the others have stacks.
fn five() -> Value {
    let event = |action: &str, addr: u64, size: u64, stream: i64, time_us: u64, frames: Value| {
        json!({"action": action, "addr": addr, "size": size, "stream": stream, "time_us": time_us,
            "frames": frames})
    };
    let frame = |name: &str, filename: &str, line: u64| json!({"name": name, "filename": filename, "line": line});
    let none = json!([]);
    let attention = json!([frame("forward", "Attention.py", 12), frame("<module>", "train.py", 3)]);
    let mlp = json!([frame("forward", "mlp.py", 7), frame("<module>", "train.py", 3)]);
    let native = json!([frame("at::empty(c10::ArrayRef<long> const &)", "??", 0)]);
    json!({
        "segments": [{
            "device": 0, "address": 0x1000, "total_size": 4096, "stream": 3, "segment_type": "small",
            "blocks": [
                {"address": 0x1000, "size": 512, "requested_size": 100, "state": "active_allocated"},
                {"address": 0x3000, "size": 512, "requested_size": 30, "state": "active_allocated"},
            ],
        }],
        "device_traces": [[
            event("alloc", 0x2000, 10, 0, 1_000_000, attention.clone()),
            event("alloc", 0x3000, 30, 7, 1_000_500, mlp),
            event("free_completed", 0x2000, 10, 0, 1_002_000, attention),
            event("free_completed", 0x5000, 2048, -1, 1_002_000, none),
            event("alloc", 0x4000, 1 << 20, 7, 2_000_000, native.clone()),
            event("free_completed", 0x4000, 1 << 20, 7, 3_000_000, native),
        ]],
    })
}

#[test]
fn an_empty_filter_lets_everything_through() {
    let recording = opened(&five());

    for text in ["", "  ", "\t\n"] {
        assert_eq!(shown(&recording, text), [0, 1, 2, 3, 4]);
    }
}

#[test]
fn an_expression_must_match_some_frame() {
    let recording = opened(&five());

    assert_eq!(shown(&recording, "mlp"), [3]);
    assert_eq!(shown(&recording, "forward"), [2, 3]);
    assert_eq!(shown(&recording, "mlp|ArrayRef"), [3, 4]);
    assert_eq!(shown(&recording, "<module>"), [2, 3], "it is no comparison");
    assert_eq!(shown(&recording, r#""^forward \(mlp\.py:7\)$""#), [3], "all of a frame's text");
    assert_eq!(shown(&recording, "mlp attention"), [] as [usize; 0], "both must hold");
    assert_eq!(shown(&recording, "train attention"), [2], "each in a frame of its own");
    assert_eq!(shown(&recording, r"\bconst\b"), [4]);
}

#[test]
fn an_exclamation_mark_turns_a_term_round() {
    let recording = opened(&five());

    assert_eq!(shown(&recording, "!mlp"), [0, 1, 2, 4], "also those without a stack");
    assert_eq!(shown(&recording, "!mlp train"), [2]);
    assert_eq!(shown(&recording, r#"!"const &""#), [0, 1, 2, 3]);
    assert_eq!(shown(&recording, "!size>=100"), shown(&recording, "size<100"));
    assert_eq!(shown(&recording, r#"!"""#), [0, 1], "no frame at all");
}

#[test]
fn case_counts_where_the_expression_has_an_upper_case_letter() {
    let recording = opened(&five());

    assert_eq!(shown(&recording, "attention"), [2]);
    assert_eq!(shown(&recording, "Attention"), [2]);
    assert_eq!(shown(&recording, "ATTENTION"), [] as [usize; 0]);
    assert_eq!(shown(&recording, r"arrayref\Slong\S"), [4], "an escape is no letter");
    assert_eq!(shown(&recording, r"\\S|C10"), [] as [usize; 0], "after a backslash itself it is");
}

#[test]
fn numbers_are_compared() {
    let recording = opened(&five());

    assert_eq!(shown(&recording, "size>=1MiB"), [4]);
    assert_eq!(shown(&recording, "size=30..2k"), [0, 3]);
    assert_eq!(shown(&recording, "size!=30..2k"), [1, 2, 4]);
    assert_eq!(shown(&recording, "stream=7 size<1KB"), [3]);
    assert_eq!(shown(&recording, "stream<0"), [1]);
    assert_eq!(shown(&recording, "event>=1"), [3, 4]);
    assert_eq!(shown(&recording, "event<0"), [0, 1]);
    assert_eq!(shown(&recording, "stack=0"), [0, 1]);
    assert_eq!(shown(&recording, "stack=none"), [0, 1]);
    assert_eq!(shown(&recording, "stack!=None"), [2, 3, 4]);
    assert_eq!(shown(&recording, "train size!=10"), [3]);
}

#[test]
fn alive_is_from_the_allocation_to_before_the_free() {
    let recording = opened(&five());

    assert_eq!(shown(&recording, "alive=-1"), [0, 1]);
    assert_eq!(shown(&recording, "alive=0"), [0, 1, 2]);
    assert_eq!(shown(&recording, "alive=1"), [0, 1, 2, 3]);
    assert_eq!(shown(&recording, "alive=2"), [0, 1, 3]);
    assert_eq!(shown(&recording, "alive=3"), [0, 3]);
    assert_eq!(shown(&recording, "alive!=3"), [1, 2, 4]);
    assert_eq!(shown(&recording, "alive=2..5"), [0, 1, 3, 4], "at some event of these");
    assert_eq!(shown(&recording, "alive>=5"), [0, 3]);
    assert_eq!(shown(&recording, "alive=1000000"), [0, 3], "those that are never freed");
}

#[test]
fn a_lifetime_is_in_events_or_in_time() {
    let recording = opened(&five());

    // 0 has 7 events, 1 has 4, 2 has 2, 3 has 5, and 4 has 1.
    assert_eq!(shown(&recording, "lifetime<=2"), [2, 4]);
    assert_eq!(shown(&recording, "lifetime=4..6"), [1, 3]);
    assert_eq!(shown(&recording, "lifetime=7"), [0]);
    // From the first event at the earliest, to the last at the latest.
    assert_eq!(shown(&recording, "lifetime=2s"), [0]);
    assert_eq!(shown(&recording, "lifetime=2000us"), [1, 2]);
    assert_eq!(shown(&recording, "lifetime=1999500µs"), [3]);
    assert_eq!(shown(&recording, "lifetime=1s"), [4]);
    assert_eq!(shown(&recording, "lifetime<1min lifetime>1.5ms"), [0, 1, 2, 3, 4]);
}

#[test]
fn times_that_are_not_recorded_are_refused_only_where_they_are_needed() {
    let trace = json!([{"action": "alloc", "addr": 1, "size": 1, "stream": 0, "frames": []}]);
    let recording = opened(&json!({"device_traces": [trace]}));
    let filter = Filter::parse("lifetime<1s").unwrap();

    let reason = recording.mask(0, &filter).unwrap_err().to_string();

    assert_eq!(
        reason,
        "filter: the file has no times, so lifetime cannot be compared with one; use a number of \
         events, as in lifetime<100"
    );
    assert!(filter.needs_times());
    assert_eq!(shown(&recording, "lifetime<100"), [0]);
}

#[test]
fn a_clock_that_runs_backwards_or_stops_gives_no_negative_times() {
    let mut snapshot = five();
    // The same without a first time, and with a last one that is too early.
    snapshot["device_traces"][0][0]["time_us"] = json!(0);
    snapshot["device_traces"][0][5]["time_us"] = json!(5);
    let recording = opened(&snapshot);

    assert_eq!(shown(&recording, "lifetime=0s"), [4]);
    assert_eq!(shown(&recording, "lifetime=1500us"), [1, 2]);
    assert_eq!(shown(&recording, "lifetime=999500us"), [0, 3]);
}

#[test]
fn what_cannot_be_understood_is_refused() {
    assert_eq!(
        refusal("conv (mlp"),
        "filter: the expression `(mlp` is not understood: unclosed group; to search for a character \
         such as ( [ * + ? itself, put a backslash before it"
    );
    for bad in ["[", "*", "a)", r"\", "(?P<", "a{2,1}", r"(a)\1", "(?=a)", "(?-u)\\xff"] {
        assert!(refusal(bad).starts_with("filter: the expression `"), "{bad}: {}", refusal(bad));
        assert_eq!(refusal(bad).lines().count(), 1, "{bad}");
    }
    assert!(refusal("siez>5").starts_with("filter: there is no key siez; there are size, "));
    assert!(refusal("size > 5").starts_with("filter: write comparisons without spaces"));
    assert!(refusal("\"").starts_with("filter: a quote is not closed"));
}

#[test]
fn hostile_patterns_are_refused_or_quick() {
    let mut stacks = StackTexts::default();
    stacks.add_frame(&"a".repeat(1 << 20), "\0", u64::MAX);
    stacks.add_stack(&[]);
    stacks.add_stack(&[0]);
    let mut lifetimes = Lifetimes::default();
    lifetimes.allocations.push(&Allocation {
        address: 0,
        size: 1,
        stream: 0,
        alloc_event: BEFORE,
        free_event: 0,
        free_requested: BEFORE,
        stack: 1,
        free_stack: NO_STACK,
        flags: 0,
        pool: 0,
        category: 0,
    });
    let begun = Instant::now();

    for good in
        ["(a*)*b", "(a|a)*b", "(a|aa)+b", "(.*)*(.*)*(.*)*b", "(a?){64}a{64}b", r"(\w*\s)*b", "\0b"]
    {
        let mask = Filter::parse(good).unwrap().mask(&lifetimes, &stacks, &[]).unwrap();
        assert_eq!(mask, [false], "{good}");
    }
    assert_eq!(Filter::parse("\0").unwrap().mask(&lifetimes, &stacks, &[]).unwrap(), [true]);
    let nested = format!("{}{}", "(".repeat(2000), ")".repeat(2000));
    for bad in [r"a{1000}{1000}{1000}", r"\w{1000}", r"((\w{9}){9}){9}", &nested] {
        assert!(Filter::parse(bad).is_err(), "{bad}");
    }
    for unit in ["a", "(", "[", "a ", "!", "\"", "\0", "é", "size>5 "] {
        assert!(Filter::parse(&unit.repeat(10_000_000 / unit.len())).is_err(), "{unit}");
    }
    let largest = vec![r"\w{15}"; 64].join(" ");
    assert_eq!(Filter::parse(&largest).unwrap().mask(&lifetimes, &stacks, &[]).unwrap(), [true]);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(60), "{took:?}");
}

/// Stacks that differ in all that a frame has, also in what is odd.
fn stack() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec!["attn", "Attention", "mlp\0x", "é É", "<module>", ""]);
    let filename = prop::sample::select(vec!["model.py", "a b.cpp", "??", "C:\\x\".py"]);
    let line = prop_oneof![0..3_u64, Just(u64::MAX)];
    let frame = (name, filename, line).prop_map(
        |(name, filename, line)| json!({"name": name, "filename": filename, "line": line}),
    );
    prop::collection::vec(frame, 0..4).prop_map(Value::from)
}

fn snapshots() -> impl Strategy<Value = Value> {
    let action = prop::sample::select(vec!["alloc", "alloc", "free_requested", "free_completed"]);
    let time = prop_oneof![1 => Just(0_u64), 5 => 1..50_u64];
    let event = (action, 0..6_u64, 0..9_u64, -2..3_i64, time, stack());
    let trace = prop::collection::vec(event, 0..40).prop_map(|events| {
        let event = |(action, addr, size, stream, time_us, frames): (&str, _, _, _, _, Value)| {
            json!({"action": action, "addr": addr, "size": size, "stream": stream, "time_us": time_us,
                "frames": frames})
        };
        Value::from(events.into_iter().map(event).collect::<Vec<_>>())
    });
    prop::collection::vec(trace, 1..3).prop_map(|traces| json!({"device_traces": traces}))
}

/// What a term asks for.
#[derive(Debug, Clone)]
enum Asks {
    /// Some frame matches: as it is typed, and as it is meant.
    Frame(&'static str, Regex),
    /// `key op value`, or a range if there is a second value.
    Number(&'static str, &'static str, i64, Option<i64>),
    /// There is no frame at all.
    NoFrames,
}

fn terms() -> impl Strategy<Value = Vec<(bool, Asks)>> {
    let frame = prop::sample::select(vec![
        ("at", true),
        ("At", false),
        ("aT", false),
        ("mlp|attn", true),
        ("^<", true),
        (r":[01]\)$", true),
        ("a b", true),
        ("é", true),
        ("É", false),
        ("é É", false),
        (r"\S{9}", true),
        ("", true),
        ("\0", true),
        (r"\\x\u0022", true),
        ("\"", true),
        (r"^\W", true),
        ("dim=1", true),
        ("18446744073709551615", true),
    ]);
    let frame = frame.prop_map(|(pattern, ignores_case)| {
        let flags = if ignores_case { "(?i)" } else { "" };
        Asks::Frame(pattern, Regex::new(&format!("{flags}{pattern}")).unwrap())
    });
    let key =
        prop::sample::select(vec!["size", "lifetime", "us", "stream", "event", "alive", "stack"]);
    let operator = prop::sample::select(vec![">", ">=", "<", "<=", "=", "!="]);
    let number = (key, operator, -2..45_i64, prop::option::of(1..20_i64)).prop_map(
        |(key, operator, value, more)| {
            // Sizes and times are never negative.
            let value = if matches!(key, "size" | "us") { value.max(0) } else { value };
            let end =
                more.filter(|_| operator.ends_with('=') && operator.len() == 1 || operator == "!=");
            Asks::Number(key, operator, value, end.map(|more| value + more))
        },
    );
    prop::collection::vec(
        (any::<bool>(), prop_oneof![4 => frame, 4 => number, 1 => Just(Asks::NoFrames)]),
        0..4,
    )
}

fn typed(terms: &[(bool, Asks)]) -> String {
    let one = |(wanted, asks): &(bool, Asks)| {
        let not = if *wanted { "" } else { "!" };
        match asks {
            Asks::Frame(pattern, _) => format!("{not}\"{}\"", pattern.replace('"', "\\\"")),
            Asks::Number(key, operator, value, end) => {
                let (key, unit) = if *key == "us" { ("lifetime", "us") } else { (*key, "") };
                let end = end.map(|end| format!("..{end}{unit}")).unwrap_or_default();
                format!("{not}{key}{operator}{value}{unit}{end}")
            }
            Asks::NoFrames => format!("{not}stack=none"),
        }
    };
    terms.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Whether an allocation is what a term asks for, found the slow way.
fn holds(recording: &Recording, which: usize, one: &Allocation, asks: &Asks) -> bool {
    let events = recording.devices[which].totals.len() as i64;
    let (key, operator, value, end) = match asks {
        Asks::Frame(_, expression) => {
            let frames = recording.frames(one.stack).unwrap().unwrap();
            return frames
                .iter()
                .map(|frame| format!("{} ({}:{})", frame.name, frame.filename, frame.line))
                .any(|text| expression.is_match(&text));
        }
        Asks::Number(key, operator, value, end) => (*key, *operator, *value, *end),
        Asks::NoFrames => return recording.frames(one.stack).unwrap().unwrap().is_empty(),
    };
    let compares = |number: i64| match (operator, end) {
        (">", _) => number > value,
        (">=", _) => number >= value,
        ("<", _) => number < value,
        ("<=", _) => number <= value,
        (_, None) => number == value,
        (_, Some(end)) => value <= number && number < end,
    };
    let is_alive = |moment: i64| {
        one.alloc_event <= moment && (moment < one.free_event || one.free_event == events)
    };
    let is_so = match key {
        "size" => compares(one.size as i64),
        "lifetime" => compares(one.free_event - one.alloc_event),
        "us" => {
            let times = recording.times(which);
            let first = times.iter().find(|time| **time != 0).unwrap();
            let at = |event: i64| {
                let until = event.clamp(0, events - 1) as usize;
                *times[..=until].iter().chain([first]).max().unwrap() as i64
            };
            compares(at(one.free_event) - at(one.alloc_event))
        }
        "stream" => compares(one.stream),
        "event" => compares(one.alloc_event),
        "alive" => (-5..200).any(|moment| is_alive(moment) && compares(moment)),
        _ => compares(one.stack.into()),
    };
    is_so == (operator != "!=")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_mask_is_what_asking_every_frame_of_every_allocation_gives(
        json in snapshots(), terms in prop::collection::vec(terms(), 1..8)
    ) {
        let recording = opened(&json);
        for terms in terms {
            let text = typed(&terms);
            let filter = Filter::parse(&text).unwrap();
            for (which, lifetimes) in recording.devices.iter().enumerate() {
                let mask = recording.mask(which, &filter);

                let is_timeless = recording.times(which).is_empty();
                if is_timeless && filter.needs_times() {
                    prop_assert!(mask.is_err());
                    continue;
                }
                let all = &lifetimes.allocations;
                let is_shown = |index| {
                    let one = all.get(index);
                    terms.iter().all(|(wanted, asks)| holds(&recording, which, &one, asks) == *wanted)
                };
                let expected: Vec<bool> = (0..all.len()).map(is_shown).collect();
                prop_assert_eq!(mask.unwrap(), expected, "{}", text);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_bundle_gives_the_masks_and_hashes_of_its_snapshot(
        json in snapshots(), terms in prop::collection::vec(terms(), 1..8)
    ) {
        let directory = tempfile::tempdir().unwrap();
        let [snapshot, bundles @ ..] = recordings(&json, directory.path());
        let texts = snapshot.stack_texts().unwrap();
        prop_assert_eq!(texts.len(), snapshot.stack_count());
        for bundle in bundles {
            prop_assert_eq!(bundle.stack_texts().unwrap(), texts, "frames, stacks and hashes");
            for terms in &terms {
                let filter = Filter::parse(&typed(terms)).unwrap();
                for which in 0..snapshot.devices.len() {
                    let answer = |recording: &Recording| {
                        recording.mask(which, &filter).map_err(|error| error.to_string())
                    };
                    prop_assert_eq!(answer(&bundle), answer(&snapshot));
                }
            }
        }
    }

    #[test]
    fn whatever_is_typed_is_understood_or_refused(text in prop_oneof![
        any::<String>(),
        "[a-z \"!<>=.|()*\\\\0-9]{0,40}",
        "(size|lifetime|alive|stream|event|stack)(>|>=|<|<=|=|!=)[0-9.kmsibu-]{0,12}",
    ]) {
        if let Err(error) = Filter::parse(&text) {
            prop_assert!(error.to_string().starts_with("filter: "), "{}", error);
        }
    }
}

#[test]
fn the_same_stack_has_the_same_hash_in_every_file() {
    let one = opened(&common::rich());
    let other = opened(&common::long(10));
    let hashes = |recording: &Recording| recording.stack_texts().unwrap().hashes().to_vec();

    // `inner (model.py:1)` in `outer (model.py:1)` is the second stack here, the third there.
    let (of_one, of_other) = (hashes(&one), hashes(&other));
    let find = |recording: &Recording| {
        (0..recording.stack_count() as u32).find(|&stack| {
            let frames = recording.frames(stack).unwrap().unwrap();
            frames.len() == 2 && frames[0].line == 1
        })
    };
    let (here, there) = (find(&one).unwrap(), find(&other).unwrap());
    assert_ne!(here, there, "ids do not count");
    assert_eq!(of_one[here as usize], of_other[there as usize]);
    assert_eq!((of_one[0], of_other[0]), (0, 0));
}
