//! The events of a snapshot, packed a chunk at a time.

use std::sync::mpsc;

use crate::allocator::curves::{Curve, Curves};
use crate::lifetimes::Lifetimes;
use crate::snapshot::{Event, Snapshot};
use crate::store::pack::{Form, pack, zigzag};

/// Events a chunk: larger ones are 10 % smaller at best, and slower to look one event up in.
pub(crate) const CHUNK: usize = 1 << 16;

/// The columns of a chunk, in the order of the table `event_columns`. `allocated` is what it has beyond
/// `requested`, and `active` beyond that.
pub(super) const NAMES: [&str; 11] = [
    "action",
    "address",
    "size",
    "stream",
    "time_us",
    "stack",
    "extras",
    "requested",
    "allocated",
    "active",
    "reserved",
];

/// Some events of one device.
#[derive(Debug)]
pub(crate) struct PackedChunk {
    pub device: i32,
    pub first_event: usize,
    pub events: usize,
    /// As in [`NAMES`].
    pub columns: [Vec<u8>; NAMES.len()],
}

/// Packs all events, until the receiver is gone.
pub(crate) fn pack_events(
    snapshot: &Snapshot,
    lifetimes: &[Lifetimes],
    curves: &[Curves],
    to: &mpsc::Sender<PackedChunk>,
) {
    for (trace, (one, curves)) in snapshot.traces.iter().zip(lifetimes.iter().zip(curves)) {
        for first_event in (0..trace.rows.len()).step_by(CHUNK) {
            let from = trace.rows.start + first_event;
            let rows = from..(from + CHUNK).min(trace.rows.end);
            let events: Vec<Event> = snapshot.events.iter(rows).collect();
            let places = first_event..first_event + events.len();
            let requested = &one.totals[places.clone()];
            let after = |curve: &Curve| -> Vec<u64> {
                places.clone().map(|event| curve.at(event as i64)).collect()
            };
            let (allocated, active) = (after(&curves.allocated), after(&curves.active));
            // What each adds to the one before changes seldom, and takes little room.
            let beyond = |more: &[u64], less: &[u64]| -> Vec<u8> {
                let pairs = more.iter().zip(less);
                pack(pairs.map(|(&more, &less)| more.wrapping_sub(less)), Form::Delta)
            };
            let chunk = PackedChunk {
                device: one.device,
                first_event,
                events: events.len(),
                columns: [
                    column(&events, Form::Delta, |event| u64::from(event.action.0)),
                    column(&events, Form::Plain, |event| event.address),
                    column(&events, Form::Plain, |event| event.size),
                    column(&events, Form::Plain, |event| zigzag(event.stream as u64)),
                    column(&events, Form::Delta, |event| event.time_us),
                    column(&events, Form::Plain, |event| u64::from(event.stack)),
                    column(&events, Form::Plain, |event| u64::from(event.extras)),
                    pack(requested.iter().copied(), Form::Delta),
                    beyond(&allocated, requested),
                    beyond(&active, &allocated),
                    pack(after(&curves.reserved).into_iter(), Form::Delta),
                ],
            };
            if to.send(chunk).is_err() {
                return;
            }
        }
    }
}

fn column(events: &[Event], form: Form, value: impl Fn(&Event) -> u64 + Copy) -> Vec<u8> {
    pack(events.iter().map(value), form)
}
