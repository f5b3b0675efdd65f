//! Lifetimes of random traces, compared with a slow model that follows docs/internals/lifetimes.md.

mod common;

use common::{event, frame};
use proptest::prelude::*;
use serde_json::{Value, json};
use snapviewer::lifetimes::{self, BEFORE, Check, Lifetimes, NO_STACK, flag};
use snapviewer::progress::Progress;

/// What happens, at which address, to how many bytes, and the line of the caller (0: no stack).
type Step = (&'static str, u64, u64, u64);

/// An active block of the final state: address, bytes, line.
type Block = (u64, u64, u64);

const SEGMENT: u64 = 10_000;

fn steps(actions: &'static [&'static str]) -> impl Strategy<Value = Vec<Step>> {
    let step = (proptest::sample::select(actions), 1..6_u64, 0..4_u64, 0..4_u64);
    proptest::collection::vec(step, 0..40)
}

fn snapshot(steps: &[Step], blocks: Option<&[Block]>) -> Value {
    let frames = |line: u64| if line == 0 { json!([]) } else { json!([frame("f", line)]) };
    let event = |&(action, addr, size, line): &Step| json!({"action": action, "addr": addr * 512, "size": size, "stream": 0, "frames": frames(line)});
    let trace: Vec<Value> = steps.iter().map(event).collect();
    let mut snapshot = json!({"device_traces": [trace]});
    if let Some(blocks) = blocks {
        let block = |&(address, size, line): &Block| {
            json!({"address": address * 512, "size": 512, "requested_size": size,
                "state": "active_allocated", "frames": frames(line)})
        };
        let mut all: Vec<Value> = blocks.iter().map(block).collect();
        all.push(
            json!({"address": 512 * 99, "size": 512, "requested_size": 77, "state": "inactive"}),
        );
        snapshot["segments"] = json!([
            {"device": 0, "address": 512, "total_size": SEGMENT, "stream": 0, "blocks": all},
            {"device": 1, "address": 512, "total_size": 5, "stream": 0,
             "blocks": [{"address": 512, "size": 5, "requested_size": 5, "state": "active_allocated"}]},
        ]);
    }
    snapshot
}

/// One allocation of the model; stacks are lines, 0 if there is none.
#[derive(Debug, Clone, PartialEq)]
struct Life {
    address: u64,
    size: u64,
    from: i64,
    to: i64,
    requested: i64,
    line: u64,
    free_line: Option<u64>,
    flags: u8,
}

fn model(steps: &[Step], blocks: Option<&[Block]>) -> (Vec<Life>, Check) {
    let open = i64::MAX;
    let ends = if steps.iter().any(|step| step.0 == "free_completed") {
        "free_completed"
    } else {
        "free_requested"
    };
    let mut lives: Vec<Life> = Vec::new();
    let mut check = Check { has_segments: blocks.is_some(), ..Check::default() };
    let mut have_own_stacks = false;
    for (now, &(action, address, size, line)) in (0..).zip(steps) {
        let new = Life {
            address,
            size,
            from: now,
            to: open,
            requested: BEFORE,
            line,
            free_line: None,
            flags: 0,
        };
        let found = lives.iter().position(|life| life.address == address && life.to == open);
        if action == "alloc" {
            if let Some(old) = found {
                (lives[old].to, check.implicit_frees) = (now, check.implicit_frees + 1);
                lives[old].flags |= flag::IMPLICIT_FREE;
            }
            lives.push(new);
        } else if action.starts_with("free") {
            let which = found.unwrap_or_else(|| {
                check.unknown_frees += 1;
                lives.push(Life { from: BEFORE, ..new });
                lives.len() - 1
            });
            let life = &mut lives[which];
            if life.requested == BEFORE {
                check.size_mismatches += u64::from(life.size != size);
                if line != 0 {
                    life.free_line = Some(line);
                    have_own_stacks |= life.from != BEFORE && life.line != 0 && life.line != line;
                }
                if action == "free_requested" {
                    life.requested = now;
                }
            }
            if action == ends {
                life.to = now;
            }
        }
    }
    let mut always = Vec::new();
    for &(address, size, line) in blocks.unwrap_or_default() {
        check.expected_final_bytes += size;
        match lives.iter_mut().find(|life| life.address == address && life.to == open) {
            Some(life) if life.from == BEFORE => life.line = line,
            Some(_) => {}
            None => always.push(Life {
                address,
                size,
                from: BEFORE,
                to: open,
                requested: BEFORE,
                line,
                free_line: None,
                flags: flag::ONLY_IN_SEGMENTS,
            }),
        }
    }
    for life in lives.iter_mut().filter(|life| life.to == open) {
        let is_block = blocks.is_none_or(|all| all.iter().any(|block| block.0 == life.address));
        if !is_block {
            (life.flags, check.missing_blocks) =
                (life.flags | flag::MISSING_BLOCK, check.missing_blocks + 1);
        }
    }
    let (older, made): (Vec<Life>, Vec<Life>) =
        lives.into_iter().partition(|life| life.from == BEFORE);
    always.extend(older.into_iter().rev().map(|life| {
        let is_unknown = have_own_stacks && life.to != open;
        Life { line: if is_unknown { 0 } else { life.line }, ..life }
    }));
    always.extend(made);
    for life in &mut always {
        life.to = life.to.min(steps.len() as i64);
        life.free_line = life.free_line.filter(|&line| line != life.line);
    }
    add_up(&mut check, &always, steps);
    (always, check)
}

/// The bytes that are alive at a moment.
fn bytes_at(lives: &[Life], moment: i64) -> u64 {
    let alive = lives.iter().filter(|life| life.from < moment && moment <= life.to);
    alive.map(|life| life.size).sum()
}

/// Fills in the bytes of a check.
fn add_up(check: &mut Check, lives: &[Life], steps: &[Step]) {
    let total = |moment| bytes_at(lives, moment);
    check.initial_bytes = total(0);
    check.final_bytes = total(steps.len() as i64);
    check.peak_bytes = (0..=steps.len() as i64).map(total).max().unwrap();
    let snapshots = (1..).zip(steps).filter(|(_, step)| step.0 == "snapshot");
    check.snapshots = snapshots.clone().count() as u64;
    check.snapshots_below =
        snapshots.filter(|&(moment, step)| step.2 < total(moment)).count() as u64;
    let end = if check.has_segments { SEGMENT as i64 } else { 0 };
    let changes = steps.iter().map(|step| match step.0 {
        "segment_alloc" | "segment_map" => step.2 as i64,
        "segment_free" | "segment_unmap" => -(step.2 as i64),
        _ => 0,
    });
    let initial = end - changes.clone().sum::<i64>();
    check.is_reserved_negative = initial < 0;
    let sums = changes.scan(initial.max(0), |sum, change| {
        *sum += change;
        Some(*sum)
    });
    check.reserved_peak_bytes = sums.chain([initial.max(0)]).max().unwrap() as u64;
}

fn compare(steps: &[Step], blocks: Option<&[Block]>) {
    let (snapshot, devices) = common::read(&snapshot(steps, blocks));
    let found: &Lifetimes = &devices[0];
    let (lives, check) = model(steps, blocks);

    // Stacks are compared by the lines of their one frame.
    let line = |stack: u32| match stack {
        NO_STACK => None,
        _ => Some(
            snapshot
                .stacks
                .get(stack)
                .first()
                .map_or(0, |&frame| snapshot.stacks.frame(frame).line),
        ),
    };
    let all = &found.allocations;
    let as_lives: Vec<Life> = (0..all.len())
        .map(|which| all.get(which))
        .map(|one| Life {
            address: one.address / 512,
            size: one.size,
            from: one.alloc_event,
            to: one.free_event,
            requested: one.free_requested,
            line: line(one.stack).unwrap(),
            free_line: line(one.free_stack),
            flags: one.flags,
        })
        .collect();
    assert_eq!(as_lives, lives);
    assert_eq!(found.check, check);
    let totals: Vec<u64> =
        (1..=steps.len() as i64).map(|moment| bytes_at(&lives, moment)).collect();
    assert_eq!(found.totals, totals);
    let peak = totals.iter().position(|&total| total == check.peak_bytes);
    assert_eq!(found.peak_event, peak.map_or(BEFORE, |event| event as i64));
    let ooms = (0..).zip(steps).filter(|(_, step)| step.0 == "oom").map(|(event, _)| event);
    assert_eq!(found.oom_events, ooms.collect::<Vec<u64>>());
}

fn blocks() -> impl Strategy<Value = Option<Vec<Block>>> {
    let block = (1..8_u64, 0..4_u64, 1..4_u64);
    let unique = |mut blocks: Vec<Block>| {
        blocks.sort_unstable();
        blocks.dedup_by_key(|block| block.0);
        blocks
    };
    proptest::option::of(proptest::collection::vec(block, 0..5).prop_map(unique))
}

proptest! {
    #[test]
    fn lifetimes_follow_the_rules(
        steps in steps(&["alloc", "alloc", "free_requested", "free_completed", "free_completed",
            "segment_alloc", "segment_map", "segment_free", "segment_unmap", "oom", "snapshot"]),
        blocks in blocks(),
    ) {
        compare(&steps, blocks.as_deref());
    }

    #[test]
    fn without_completions_a_request_ends_an_allocation(
        steps in steps(&["alloc", "free_requested"]), blocks in blocks(),
    ) {
        compare(&steps, blocks.as_deref());
    }
}

#[test]
fn the_check_is_described_in_sentences() {
    let fine = Check {
        has_segments: true,
        expected_final_bytes: 5,
        final_bytes: 5,
        peak_bytes: 9,
        reserved_peak_bytes: 9,
        ..Check::default()
    };
    assert!(fine.reconciles() && fine.sentences().is_empty());
    assert!(!Check { has_segments: false, ..fine.clone() }.reconciles());

    let more = Check { final_bytes: 8, missing_blocks: 1, snapshots_below: 3, ..fine.clone() };
    assert!(!more.reconciles());
    assert_eq!(
        more.sentences(),
        [
            "at the end the trace has 3 bytes more alive than the segments",
            "1 allocation is alive at the end of the trace but in no segment",
            "3 `snapshot` events report fewer bytes than are alive",
        ]
    );
    let less = Check {
        final_bytes: 1,
        peak_bytes: 10,
        implicit_frees: 2,
        is_reserved_negative: true,
        ..fine
    };
    assert_eq!(
        less.sentences(),
        [
            "at the end the segments have 4 bytes more alive than the trace",
            "at the peak 10 bytes are alive, but only 9 bytes were ever reserved from the device: \
             the file lacks segments",
            "2 allocations end without a free: another one took their address",
            "segments were released that the file does not account for",
        ]
    );
    let nothing = Check { size_mismatches: 1, ..Check::default() };
    assert_eq!(
        nothing.sentences(),
        [
            "the file has no segments: the final state cannot be checked",
            "1 free has another size than the allocation it ends",
        ]
    );
}

#[test]
fn sizes_that_add_up_to_more_than_63_bits_are_refused() {
    let read = |sizes: [u64; 2]| {
        let trace = [event("alloc", 512, sizes[0], 1), event("alloc", 1024, sizes[1], 1)];
        let snapshot = json!({"device_traces": [trace]}).to_string();
        lifetimes::read(snapshot.as_bytes(), &Progress::none())
    };
    let most = i64::MAX as u64;

    let refused = read([most, 2]).err().map(|error| error.to_string());

    assert!(read([most - 1, 1]).is_ok());
    assert!(refused.is_some_and(|sentence| sentence.contains("more than 63 bits can hold")));
}

#[test]
fn each_device_has_the_lifetimes_of_its_own_trace() {
    let one = [event("alloc", 512, 8, 1), event("free_completed", 512, 8, 1)];
    let two = [event("alloc", 512, 16, 1), event("alloc", 1024, 32, 1)];

    let (_, lives) = common::read(&json!({"device_traces": [one, two]}));

    let peaks: Vec<u64> = lives.iter().map(|lives| lives.peak_bytes).collect();
    let ends: Vec<u64> = lives.iter().map(Lifetimes::final_bytes).collect();
    assert_eq!((peaks, ends), (vec![8, 48], vec![0, 48]));
}
