//! What would have been reserved under other settings, with less memory, or with other requests, and
//! how far the answer can be trusted.
//!
//! A trace that begins with (nearly) nothing determines the answer, up to the addresses that the driver
//! would have chosen. One that begins with memory in use does not: old segments may have been kept, or
//! been made under the new settings, too. Both are run, and the answer is an interval. Where nothing
//! grows in the trace, the peak was set before it: then only a restart can be simulated, and its error
//! with the recorded settings is the error of the answer.

use super::addresses::Order;
use super::simulate::{Case, Outcome, Start, simulate};
use super::{ReleaseCause, Replay, Rules};
use crate::lifetimes::{BEFORE, Lifetimes};

/// A trace that begins with at most this part of its peak is taken as one from an empty allocator.
const EMPTY_PARTS: u64 = 20;

/// Orders of addresses that are tried beside the recording's.
const SEEDS: [u64; 2] = [1, 2];

/// What is different from the recording.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The settings.
    pub rules: Rules,
    /// What the device can give; None as in the recording.
    pub capacity: Option<u64>,
    /// The part of it that the program limits itself to.
    pub allowed: Option<u64>,
    /// The requested bytes of each allocation; 0 leaves it out.
    pub sizes: &'a [u64],
    /// The event that frees each allocation.
    pub free_events: &'a [i64],
}

/// How the first state of a trace limits what can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It begins with an (almost) empty allocator.
    Whole,
    /// It begins with memory in use, and grows.
    Grows,
    /// It never gets memory from the device.
    Steady,
}

impl Kind {
    /// All of them, with their names.
    pub const NAMES: [(&'static str, Self); 3] =
        [("whole", Self::Whole), ("grows", Self::Grows), ("steady", Self::Steady)];
}

/// How far an answer can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// It follows from the rules.
    Exact,
    /// It is between two numbers.
    Interval,
    /// It is not known.
    Refused,
}

impl Trust {
    /// All of them, with their names.
    pub const NAMES: [(&'static str, Self); 3] =
        [("exact", Self::Exact), ("interval", Self::Interval), ("refused", Self::Refused)];
}

/// The answer to a question.
#[derive(Debug, Clone)]
pub struct Answer {
    /// How far it can be trusted.
    pub trust: Trust,
    /// Why not further; empty if it is exact.
    pub why: String,
    /// The run that is most like the recording; None if it was refused.
    pub outcome: Option<Outcome>,
    /// The peak of reserved memory, as far as it is known.
    pub peak_bytes: u64,
    /// The least and the most that it may be.
    pub low_bytes: u64,
    /// See `low_bytes`.
    pub high_bytes: u64,
    /// What the device can give in that run; [`u64::MAX`] if that is no limit.
    pub capacity: u64,
}

impl Answer {
    fn refused(why: impl Into<String>) -> Self {
        let trust = Trust::Refused;
        let capacity = u64::MAX;
        let (peak_bytes, low_bytes, high_bytes) = (0, 0, 0);
        let why = why.into();
        Self { trust, why, outcome: None, peak_bytes, low_bytes, high_bytes, capacity }
    }
}

/// A recording, ready for questions.
#[derive(Debug)]
pub struct WhatIf<'a> {
    lifetimes: &'a Lifetimes,
    replay: &'a Replay,
    /// The most that was reserved.
    peak: u64,
    /// What the first state allows to know.
    pub kind: Kind,
    /// What the device could give, at least and at most, as far as the recording shows.
    pub capacities: (u64, u64),
    order: Order,
}

impl<'a> WhatIf<'a> {
    /// Looks at a recording.
    #[must_use]
    pub fn new(lifetimes: &'a Lifetimes, replay: &'a Replay) -> Self {
        let older = || replay.extents.iter().filter(|one| one.born == BEFORE);
        // What goes back before the first request does not matter.
        let first = replay.growths.first().map_or(i64::MAX, |one| one.event as i64);
        let first = lifetimes
            .allocations
            .alloc_event
            .iter()
            .find(|&&event| event != BEFORE)
            .map_or(first, |&event| event.min(first));
        let start: u64 = older().filter(|one| one.died > first).map(|one| one.size).sum();
        let (peak, capacities) = reserved(lifetimes, replay);
        let kind = if start.saturating_mul(EMPTY_PARTS) <= peak {
            Kind::Whole
        } else if replay.growths.is_empty() {
            Kind::Steady
        } else {
            Kind::Grows
        };
        Self { lifetimes, replay, peak, kind, capacities, order: Order::of(&replay.extents) }
    }

    /// Runs a case.
    fn run(&self, question: &Question<'_>, capacity: u64, start: Start, order: Order) -> Outcome {
        self.run_with(question, capacity, start, order, false)
    }

    fn run_with(
        &self,
        question: &Question<'_>,
        capacity: u64,
        start: Start,
        order: Order,
        keeps_cache: bool,
    ) -> Outcome {
        let case = Case {
            keeps_cache,
            rules: question.rules.clone(),
            capacity,
            allowed: question.allowed,
            sizes: question.sizes,
            free_events: question.free_events,
            start,
            order,
        };
        simulate(self.lifetimes, self.replay, &case)
    }

    /// Whether a question changes nothing.
    fn is_recorded(&self, question: &Question<'_>) -> bool {
        let all = &self.lifetimes.allocations;
        question.rules == self.replay.rules
            && question.capacity.is_none()
            && question.sizes == all.size
            && question.free_events == all.free_event
    }

    /// Answers a question.
    #[must_use]
    pub fn ask(&self, question: &Question<'_>) -> Answer {
        if let Some(why) = self.obstacle() {
            return Answer::refused(why);
        }
        if question.rules.align > 0 && question.rules.is_expandable {
            return Answer::refused("expandable segments of NPUs are not simulated");
        }
        let (least, most) = match question.capacity {
            Some(capacity) => (capacity, capacity),
            None => self.capacities,
        };
        let as_recorded = self.is_recorded(question);
        let mut runs = Vec::new();
        let mut add = |capacity: u64, start: Start, order: Order| {
            runs.push((capacity, self.run(question, capacity, start, order)));
        };
        let main =
            if self.kind == Kind::Steady && !as_recorded { Start::Rebuilt } else { Start::Kept };
        add(most, main, self.order);
        if least != most {
            add(least, main, self.order);
        }
        let mut why = String::new();
        if !as_recorded {
            match self.kind {
                Kind::Whole => {
                    for order in SEEDS.map(Order::Random).into_iter().chain([other(self.order)]) {
                        add(most, main, order);
                    }
                    why.push_str("it depends on the addresses that the driver chooses");
                }
                Kind::Grows => {
                    add(most, Start::Rebuilt, self.order);
                    why.push_str(
                        "the recording begins with memory in use, which may have been reserved \
                         otherwise under these settings",
                    );
                }
                Kind::Steady => return self.compared(question, runs, most),
            }
        }
        // A call that released nothing left no event; under other settings it might release something.
        let empties = self.replay.releases.iter().any(|one| one.cause == ReleaseCause::EmptyCache);
        let is_loose = empties && !as_recorded;
        if is_loose {
            runs.push((most, self.run_with(question, most, main, self.order, true)));
            "calls of empty_cache that released nothing are not in the file".clone_into(&mut why);
        }
        if runs.iter().any(|(_, run)| run.is_cut) {
            return Answer::refused("the simulation releases memory too often to be followed");
        }
        let peaks = runs.iter().map(|(_, run)| run.reserved.bytes);
        let (mut low_bytes, high_bytes) =
            (peaks.clone().min().unwrap_or(0), peaks.max().unwrap_or(0));
        let (capacity, outcome) = runs.swap_remove(0);
        if is_loose {
            low_bytes = low_bytes.min(outcome.requested.bytes);
        }
        let is_exact =
            low_bytes == high_bytes && runs.iter().all(|(_, run)| ends(run) == ends(&outcome));
        let trust = if is_exact { Trust::Exact } else { Trust::Interval };
        if is_exact {
            why.clear();
        } else if as_recorded {
            "the recording shows only between which bounds the device's memory is"
                .clone_into(&mut why);
        }
        let peak_bytes = outcome.reserved.bytes;
        Answer { trust, why, outcome: Some(outcome), peak_bytes, low_bytes, high_bytes, capacity }
    }

    /// Why nothing can be simulated.
    fn obstacle(&self) -> Option<String> {
        let replay = self.replay;
        if self.lifetimes.totals.is_empty() {
            return Some("the file has no trace, only the state of memory".to_owned());
        }
        if !self.lifetimes.allocations.alloc_event.iter().any(|&event| event != BEFORE) {
            return Some("nothing is allocated in the trace".to_owned());
        }
        if replay.extents.is_empty() {
            return Some("the file has no segments".to_owned());
        }
        if !replay.is_exact() {
            let count = replay.contradictions.total();
            let first = replay.first_contradiction.unwrap_or(0);
            return Some(format!(
                "the file contradicts the allocator's rules {count} times, first at event {first}"
            ));
        }
        None
    }

    /// The answer where the peak is older than the trace: the difference to a restart with the recorded
    /// settings, whose error is known.
    fn compared(
        &self,
        question: &Question<'_>,
        mut runs: Vec<(u64, Outcome)>,
        capacity: u64,
    ) -> Answer {
        let all = &self.lifetimes.allocations;
        let recorded = Question {
            rules: self.replay.rules.clone(),
            capacity: None,
            allowed: None,
            sizes: &all.size,
            free_events: &all.free_event,
        };
        let backtest = self.run(&recorded, u64::MAX, Start::Rebuilt, self.order).reserved.bytes;
        let error = backtest.abs_diff(self.peak);
        let (_, outcome) = runs.swap_remove(0);
        if outcome.is_cut {
            return Answer::refused("the simulation releases memory too often to be followed");
        }
        let change = i128::from(outcome.reserved.bytes) - i128::from(backtest);
        let is_unclear = change.unsigned_abs() <= u128::from(error) && question.capacity.is_none();
        let estimate = i128::from(self.peak) + change;
        let bounded = |bytes: i128| u64::try_from(bytes.max(0)).unwrap_or(u64::MAX);
        let floor = i128::from(outcome.active.bytes);
        let low_bytes = bounded((estimate - i128::from(error)).max(floor)).min(capacity);
        let high_bytes = bounded(estimate + i128::from(error)).max(low_bytes);
        let mut why = format!(
            "the peak is older than the recording; a restart with the recorded settings is {error} \
             bytes off"
        );
        if is_unclear {
            why.push_str(", which is more than the difference");
        }
        let peak_bytes = bounded(estimate).clamp(low_bytes, high_bytes);
        let trust = Trust::Interval;
        Answer { trust, why, outcome: Some(outcome), peak_bytes, low_bytes, high_bytes, capacity }
    }
}

fn other(order: Order) -> Order {
    if order == Order::Ascending { Order::Descending } else { Order::Ascending }
}

/// What should be the same in all runs of an exact answer.
fn ends(run: &Outcome) -> (usize, Option<i64>) {
    (run.retries.len(), run.failures.first().map(|one| one.event))
}

/// The peak of reserved memory, and the least and the most that the device may have been able to give.
fn reserved(lifetimes: &Lifetimes, replay: &Replay) -> (u64, (u64, u64)) {
    let mut changes: Vec<(i64, i128)> = Vec::with_capacity(2 * replay.extents.len());
    for one in &replay.extents {
        changes.push((one.born, i128::from(one.size)));
        changes.push((one.died, -i128::from(one.size)));
    }
    changes.sort_unstable();
    let end = lifetimes.totals.len() as i64;
    let (mut now, mut peak) = (0_i128, 0);
    let mut before: Vec<(i64, i128)> = vec![(BEFORE, 0)];
    for (event, change) in changes.into_iter().filter(|&(event, _)| event < end) {
        now += change;
        peak = peak.max(now);
        before.push((event, now));
    }
    let at = |event: i64| {
        let place = before.partition_point(|&(other, _)| other < event);
        place.checked_sub(1).map_or(0, |place| before[place].1)
    };
    let bounded = |bytes: i128| u64::try_from(bytes).unwrap_or(u64::MAX);
    let peak = bounded(peak);
    if let Some(oom) = replay.ooms.iter().find(|one| one.needed_bytes > 0) {
        let capacity = oom.capacity_bytes().max(peak);
        return (peak, (capacity, capacity));
    }
    let retried = replay.releases.iter().filter(|one| one.cause == ReleaseCause::Retry);
    let refused = retried.filter_map(|one| {
        let next = replay.growths.partition_point(|growth| growth.event <= one.event);
        let growth = replay.growths.get(next)?;
        let reserved = bounded(at(one.event as i64));
        Some(reserved.saturating_add(growth.grown_bytes).saturating_sub(1))
    });
    match refused.min() {
        Some(most) => (peak, (peak, most.max(peak))),
        None => (peak, (u64::MAX, u64::MAX)),
    }
}
