//! The category that the profiler gave an allocation; only snapshots made by the profiler have any.

use crate::lifetimes::Allocations;
use crate::snapshot::{Snapshot, Trace};

/// The profiler's categories, and two that only we infer. An allocation's is 1 + its place here, or 0 if it is not known.
pub const CATEGORIES: [&str; 10] = [
    "parameter",
    "optimizer_state",
    "input",
    "temporary",
    "activation",
    "gradient",
    "autograd_detail",
    "unknown",
    "workspace",
    "communication",
];

/// The category of each of the events' extras; empty if none has one.
pub(super) fn of_extras(snapshot: &Snapshot) -> Vec<u8> {
    let extras = snapshot.events.extras_table.items();
    if extras.iter().all(|extras| extras.category == 0) {
        return Vec::new();
    }
    let number = |text: &str| {
        let place = CATEGORIES.iter().position(|name| name.eq_ignore_ascii_case(text));
        place.map_or(0, |place| place as u8 + 1)
    };
    extras.iter().map(|extras| number(snapshot.strings.get(extras.category))).collect()
}

/// Finds the categories of all allocations, given those of the extras.
pub(super) fn find(
    of_extras: &[u8],
    snapshot: &Snapshot,
    trace: &Trace,
    allocations: &mut Allocations,
) {
    if of_extras.is_empty() {
        return;
    }
    for index in 0..allocations.len() {
        if let Some(event) = allocations.first_event(index) {
            let extras = snapshot.events.extras_id(trace.rows.start + event);
            allocations.category[index] = of_extras[extras as usize];
        }
    }
}
