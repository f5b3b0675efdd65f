//! What grows from step to step and is not given back.
//!
//! For each group of allocations (by line) the *floor* of a step is the least that it holds at any
//! moment of the step: what comes and goes within a step never counts. A group leaks if its floor goes on
//! growing until the last step, at about the same rate. Weights, optimizer states and workspaces grow
//! once; caches that fill stop growing; both are no leaks.
//!
//! # Cost
//!
//! 15 ns an allocation and free.

use super::facts::Facts;
use super::keys::Keys;
use super::steps::{Step, Steps};
use crate::lifetimes::BEFORE;

/// A group that grows.
#[derive(Debug, Clone, PartialEq)]
pub struct Leak {
    /// The group, by line.
    pub id: u32,
    /// How many bytes it grows by in a step.
    pub bytes_per_step: f64,
    /// The first step that adds to it, as a place among the steps.
    pub first_step: usize,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
    /// Bytes that it has added by the end.
    pub grown_bytes: u64,
    /// The allocations that it has added and that are alive at the end.
    pub allocations: Vec<u32>,
    /// Frames that the stacks of these have in common, innermost first.
    pub shared_frames: Vec<u32>,
}

/// What grows, and how it was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Leaks {
    /// The fastest first.
    pub leaks: Vec<Leak>,
    /// Over how many steps.
    pub steps: usize,
    /// Whether steps were guessed.
    pub is_guess: bool,
    /// What the file lacks, as a sentence.
    pub missing: Option<&'static str>,
}

/// Fewer steps do not show whether something goes on growing.
const LEAST_STEPS: usize = 4;

/// The most that are listed.
const MOST_LEAKS: usize = 100;

/// Stretches that a trace without steps is cut into.
const STRETCHES: i64 = 16;

/// Finds what grows. `lines` groups allocations by line.
#[must_use]
pub fn leaks(facts: &Facts<'_>, steps: &Steps, lines: &Keys) -> Leaks {
    let end = facts.lives.totals.len() as i64;
    let is_whole = |step: &&Step| step.is_whole;
    let mut spans: Vec<(i64, i64)> =
        steps.steps.iter().filter(is_whole).map(|step| (step.start, step.end)).collect();
    let whole = spans.len();
    let is_guess = spans.is_empty();
    if is_guess {
        let made: u64 = facts.lives.allocations.size.iter().sum();
        let grown = facts.lives.final_bytes().saturating_sub(facts.lives.initial_bytes);
        // A trace that only goes up shows a model that is built, or one forward pass.
        if end < STRETCHES * 8 || grown > made / 4 {
            let missing = Some(
                "no steps were found, and the trace is too short, or grows too steadily, to guess them",
            );
            return Leaks { missing, ..Leaks::default() };
        }
        spans =
            (0..STRETCHES).map(|at| (end * at / STRETCHES, end * (at + 1) / STRETCHES)).collect();
    }
    if spans.len() < LEAST_STEPS {
        let missing = Some("fewer than 4 whole steps are recorded");
        return Leaks { steps: spans.len(), missing, ..Leaks::default() };
    }
    // What is alive all through the rest after the last whole step has outlived that.
    let rest = steps.steps.last().filter(|step| !is_guess && !step.is_whole);
    spans.extend(rest.map(|step| (step.start, step.end)));
    let floors = floors(facts, lines, &spans);
    let grown = |(id, floor): (usize, &Floor)| {
        let growth = (floor.live > 0).then(|| growth(&floor.values(spans.len())))??;
        Some((id as u32, growth))
    };
    let mut growths: Vec<(u32, Growth)> = floors.iter().enumerate().filter_map(grown).collect();
    growths.sort_by(|a, b| b.1.slope.total_cmp(&a.1.slope).then(a.0.cmp(&b.0)));
    growths.truncate(MOST_LEAKS);
    let found = growths
        .iter()
        .map(|(id, growth)| leak(facts, lines, *id, &spans, growth, is_guess))
        .collect();
    let missing = is_guess
        .then_some("no steps were found: the trace was cut into equal parts, and this is a guess");
    let steps = if is_guess { spans.len() } else { whole };
    Leaks { leaks: found, steps, is_guess, missing }
}

/// The floor of a group in each step, stored where it changes.
#[derive(Debug, Clone, Default)]
struct Floor {
    live: u64,
    least: u64,
    /// The step in which it was touched last.
    step: usize,
    /// Steps, and the floor from there on.
    changes: Vec<(usize, u64)>,
}

impl Floor {
    fn advance(&mut self, step: usize) {
        if step > self.step {
            self.changes.push((self.step, self.least));
            // Untouched steps keep what is alive.
            self.changes.push((self.step + 1, self.live));
            self.step = step;
            self.least = self.live;
        }
    }

    fn values(&self, steps: usize) -> Vec<u64> {
        let mut all = vec![0; steps];
        let mut changes = self.changes.clone();
        changes.push((self.step, self.least));
        changes.push((self.step + 1, self.live));
        for (place, &(from, bytes)) in changes.iter().enumerate() {
            let to = changes.get(place + 1).map_or(steps, |next| next.0);
            for value in all.iter_mut().take(to).skip(from) {
                *value = bytes;
            }
        }
        all
    }
}

fn floors(facts: &Facts<'_>, lines: &Keys, spans: &[(i64, i64)]) -> Vec<Floor> {
    let all = &facts.lives.allocations;
    let events = facts.lives.totals.len();
    let mut floors = vec![Floor::default(); lines.count];
    let mut freed_at: Vec<u32> = (0..all.len() as u32)
        .filter(|&which| (all.free_event[which as usize] as usize) < events)
        .collect();
    freed_at.sort_unstable_by_key(|&which| all.free_event[which as usize]);
    let first = spans.first().map_or(0, |span| span.0);
    let last = spans.last().map_or(0, |span| span.1);
    let step_of = |event: i64| spans.partition_point(|span| span.1 <= event).min(spans.len() - 1);
    for which in 0..all.len() {
        if all.alloc_event[which] == BEFORE {
            floors[lines.ids[which] as usize].live += all.size[which];
        }
    }
    let mut made = all.alloc_event.partition_point(|&event| event == BEFORE);
    let mut freed = 0;
    // What happens before the first step is its starting point.
    while made < all.len() && all.alloc_event[made] < first {
        floors[lines.ids[made] as usize].live += all.size[made];
        made += 1;
    }
    while freed < freed_at.len() && all.free_event[freed_at[freed] as usize] < first {
        let which = freed_at[freed] as usize;
        floors[lines.ids[which] as usize].live -= all.size[which];
        freed += 1;
    }
    for floor in &mut floors {
        floor.least = floor.live;
    }
    loop {
        let next_made = all.alloc_event.get(made).copied().filter(|&event| event < last);
        let next_freed = freed_at.get(freed).map(|&which| all.free_event[which as usize]);
        let next_freed = next_freed.filter(|&event| event < last);
        let is_free = match (next_made, next_freed) {
            (None, None) => break,
            (Some(made), Some(freed)) => freed <= made,
            (made, _) => made.is_none(),
        };
        let which = if is_free { freed_at[freed] as usize } else { made };
        let event = if is_free { all.free_event[which] } else { all.alloc_event[which] };
        let floor = &mut floors[lines.ids[which] as usize];
        floor.advance(step_of(event));
        if is_free {
            freed += 1;
            floor.live -= all.size[which];
            floor.least = floor.least.min(floor.live);
        } else {
            made += 1;
            floor.live += all.size[which];
        }
    }
    floors
}

/// How a series of floors grows.
struct Growth {
    slope: f64,
    first: usize,
    confidence: f64,
    grown: u64,
}

/// Whether a series goes on growing at about the same rate until its end.
fn growth(floors: &[u64]) -> Option<Growth> {
    let count = floors.len();
    let (first_floor, last) = (*floors.first()?, *floors.last()?);
    if last <= first_floor {
        return None;
    }
    // Warm-up: the first steps may build what all later ones use.
    let warm = 1 + count / 10;
    let rises: Vec<i64> = floors.windows(2).map(|pair| pair[1] as i64 - pair[0] as i64).collect();
    let first = rises.iter().enumerate().position(|(at, &rise)| rise > 0 && at + 1 >= warm)?;
    // What grew as fast before the warm-up ended belongs to it.
    let usual = rises[first];
    let earlier = rises[..first].iter().rev();
    let first = first - earlier.take_while(|&&rise| rise * 2 > usual && rise < usual * 2).count();
    let part = &rises[first..];
    let length = part.len();
    if length < 3 {
        return None;
    }
    let net: i64 = part.iter().sum();
    if net <= 0 {
        return None;
    }
    let falls: i64 = part.iter().filter(|&&rise| rise < 0).map(|rise| -rise).sum();
    let growing = part.iter().filter(|&&rise| rise > 0).count();
    // Each third of what is left must grow, the last one about as fast as all of it.
    let rate = net as f64 / length as f64;
    let thirds = [0..length / 3, length / 3..2 * length / 3, 2 * length / 3..length];
    let mut slowest: f64 = 1.0;
    for third in thirds {
        let steps = third.len().max(1);
        let rise: i64 = part[third].iter().sum();
        slowest = slowest.min(rise as f64 / steps as f64 / rate);
    }
    if growing < 3 || falls * 4 > net || slowest < 0.34 {
        return None;
    }
    let slope = middle_slope(&floors[first + 1..]).unwrap_or(rate);
    let slope = if slope > 0.0 { slope } else { rate };
    let steadiness = growing as f64 / length as f64;
    let enough = 1.0 - 1.0 / length as f64;
    let confidence = (0.5 + 0.5 * steadiness) * enough * (1.0 - falls as f64 / net as f64);
    Some(Growth { slope, first: first + 1, confidence, grown: net as u64 })
}

/// The median of the slopes between pairs of points (Theil and Sen's), which a few odd steps do not move.
fn middle_slope(floors: &[u64]) -> Option<f64> {
    let stride = floors.len().div_ceil(300).max(1);
    let points: Vec<(usize, u64)> = floors.iter().copied().enumerate().step_by(stride).collect();
    let mut slopes = Vec::new();
    for (at, &(x, y)) in points.iter().enumerate() {
        for &(later, z) in &points[at + 1..] {
            slopes.push((z as f64 - y as f64) / (later - x) as f64);
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied()
}

fn leak(
    facts: &Facts<'_>,
    lines: &Keys,
    id: u32,
    spans: &[(i64, i64)],
    growth: &Growth,
    is_guess: bool,
) -> Leak {
    let all = &facts.lives.allocations;
    let end = facts.lives.totals.len() as i64;
    let (from, to) = (spans[growth.first].0, spans.last().map_or(end, |span| span.1));
    let is_added = |&which: &u32| {
        let which = which as usize;
        let made = all.alloc_event[which];
        lines.ids[which] == id && made >= from && made < to && all.free_event[which] >= to
    };
    let allocations: Vec<u32> = (0..all.len() as u32).filter(is_added).collect();
    let mut shared: Option<Vec<u32>> = None;
    let mut last = u32::MAX;
    for &which in &allocations {
        let stack = all.stack[which as usize];
        if stack == last {
            continue;
        }
        last = stack;
        let frames = facts.texts.stack(stack);
        shared = Some(match shared {
            None => frames.to_vec(),
            Some(before) => {
                let pairs = before.iter().rev().zip(frames.iter().rev());
                let same = pairs.take_while(|(one, other)| one == other).count();
                before[before.len() - same..].to_vec()
            }
        });
    }
    let confidence = if is_guess { growth.confidence.min(0.4) } else { growth.confidence };
    Leak {
        id,
        bytes_per_step: growth.slope,
        first_step: growth.first,
        confidence,
        grown_bytes: growth.grown,
        allocations,
        shared_frames: shared.unwrap_or_default(),
    }
}
