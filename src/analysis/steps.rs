//! The steps of a training run, and what memory does in each.
//!
//! Steps come from the first of these that a file has: annotations `ProfilerStep#N`; our own recorder's
//! marks `step=`; annotations of the optimizer's step; another annotation that repeats; the optimizer's
//! code in the stacks; the backward passes; and at last the period of the trace itself.
//!
//! # Cost
//!
//! 10 ns an allocation and 1 ns an event; finding a period, 50 ns an allocation.

use std::collections::BTreeMap;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::facts::{Facts, mark};
use super::frames::Rank;
use super::keys::Keys;
use super::modules::is_module_call;
use super::phases::{Phase, Phases};
use crate::lifetimes::BEFORE;

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it is called: `ProfilerStep#7`, `step 3`.
    pub name: String,
    /// Its first event.
    pub start: i64,
    /// The first event after it.
    pub end: i64,
    /// Whether the recording has all of it.
    pub is_whole: bool,
    /// What memory does in it.
    pub figures: Figures,
    /// Lines that allocate more than in the step before: group, bytes more; the most first.
    pub new: Vec<(u32, u64)>,
}

/// What memory does in a stretch of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// The most live bytes after one of its events.
    pub peak_bytes: u64,
    /// The first event with that much.
    pub peak_event: i64,
    /// Live bytes before it.
    pub start_bytes: u64,
    /// Live bytes after its last event.
    pub end_bytes: u64,
    /// Bytes that were allocated in it, and how many allocations.
    pub allocated_bytes: u64,
    /// See `allocated_bytes`.
    pub allocated_count: u64,
    /// Bytes that were freed in it, and how many allocations.
    pub freed_bytes: u64,
    /// See `freed_bytes`.
    pub freed_count: u64,
    /// The largest allocation that was made in it; of equals the first.
    pub largest: Option<u32>,
}

/// The steps of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Steps {
    /// The steps, in order; they do not overlap.
    pub steps: Vec<Step>,
    /// Where they come from, as a phrase; empty if there are none.
    pub source: &'static str,
    /// What the file lacks, as a sentence.
    pub missing: Option<&'static str>,
}

/// A step's place and name.
struct Cut {
    name: String,
    start: i64,
    end: i64,
    is_whole: bool,
}

/// Finds the steps. `lines` groups allocations by line.
#[must_use]
pub fn steps(facts: &Facts<'_>, phases: &Phases, lines: &Keys) -> Steps {
    let end = facts.lives.totals.len() as i64;
    if end == 0 {
        let missing = Some("the file has no events, so it has no steps");
        return Steps { missing, ..Steps::default() };
    }
    let (cuts, source) = find(facts, phases, end);
    let figures = figures(facts, &cuts.iter().map(|cut| (cut.start, cut.end)).collect::<Vec<_>>());
    let mut new = new_lines(facts, lines, &cuts);
    let steps: Vec<Step> = cuts
        .into_iter()
        .zip(figures)
        .enumerate()
        .map(|(at, (Cut { name, start, end, is_whole }, figures))| {
            let new = new.get_mut(at).map(std::mem::take).unwrap_or_default();
            Step { name, start, end, is_whole, figures, new }
        })
        .collect();
    let missing = match steps.iter().filter(|step| step.is_whole).count() {
        0 => Some("no steps were found: no annotations, no optimizer, no backward pass, no period"),
        1 => Some("the recording has one whole step only"),
        _ => None,
    };
    Steps { steps, source, missing }
}

/// A way to find steps.
type Way<'a> = (&'static str, &'a dyn Fn() -> Vec<Cut>);

fn find(facts: &Facts<'_>, phases: &Phases, end: i64) -> (Vec<Cut>, &'static str) {
    let ways: [Way<'_>; 7] = [
        ("annotations ProfilerStep#", &|| {
            annotated(facts, |name| name.starts_with("ProfilerStep#"))
        }),
        ("marks of the recorder", &|| marked(facts, end)),
        ("annotations of the optimizer's step", &|| optimizer_annotations(facts, end)),
        ("a repeated annotation", &|| repeated_annotation(facts)),
        ("the optimizer's code in the stacks", &|| after_runs(phases, Phase::Optimizer, end)),
        ("the backward passes in the stacks", &|| after_runs(phases, Phase::Backward, end)),
        ("the period of the trace", &|| periodic(facts, end)),
    ];
    let mut one: Option<(Vec<Cut>, &'static str)> = None;
    for (source, way) in ways {
        let cuts = way();
        let whole = cuts.iter().filter(|cut| cut.is_whole).count();
        if whole >= 2 {
            return (cuts, source);
        }
        if whole == 1 && one.is_none() {
            one = Some((cuts, source));
        }
    }
    one.unwrap_or_default()
}

/// Spans of annotations, as events: name, first event, first one after; None where not recorded.
fn spans(facts: &Facts<'_>) -> Vec<(String, Option<i64>, Option<i64>)> {
    let times = facts.times;
    let mut open: HashMap<&str, Vec<usize>, RandomState> = HashMap::default();
    let mut found: Vec<(String, Option<i64>, Option<i64>)> = Vec::new();
    if times.is_empty() {
        return found;
    }
    // Threads may be a little out of order: an event is after a time if all later ones are.
    let mut least = times.to_vec();
    for at in (1..least.len()).rev() {
        least[at - 1] = least[at - 1].min(least[at]);
    }
    for (name, stage, _, time) in facts.annotations {
        let event = if stage == "START" {
            least.partition_point(|at| at < time)
        } else {
            least.partition_point(|at| at <= time)
        } as i64;
        match stage.as_str() {
            "START" => {
                open.entry(name).or_default().push(found.len());
                found.push((name.clone(), Some(event), None));
            }
            "END" => match open.get_mut(name.as_str()).and_then(Vec::pop) {
                Some(at) => found[at].2 = Some(event),
                None => found.push((name.clone(), None, Some(event))),
            },
            _ => {}
        }
    }
    found
}

fn annotated(facts: &Facts<'_>, is_wanted: impl Fn(&str) -> bool) -> Vec<Cut> {
    let end = facts.lives.totals.len() as i64;
    let mut cuts: Vec<Cut> = Vec::new();
    let mut spans = spans(facts);
    spans.retain(|(name, ..)| is_wanted(name));
    spans.sort_by_key(|(_, start, _)| start.unwrap_or(BEFORE));
    for (name, start, stop) in spans {
        let last = cuts.last().map_or(0, |cut| cut.end);
        let is_whole = start.is_some() && stop.is_some();
        let (start, stop) = (start.unwrap_or(0).max(last), stop.unwrap_or(end));
        if start < stop {
            cuts.push(Cut { name, start, end: stop, is_whole });
        }
    }
    cuts
}

fn marked(facts: &Facts<'_>, end: i64) -> Vec<Cut> {
    let of_tag: Vec<Option<i64>> =
        facts.tags.map(|extras| mark(extras?, "step")?.parse::<i64>().ok());
    let all = &facts.lives.allocations;
    let mut cuts: Vec<Cut> = Vec::new();
    let mut now = i64::MIN;
    for (which, &event) in all.alloc_event.iter().enumerate() {
        // The threads of autograd's engine may be late, so steps only go up.
        if let Some(step) =
            of_tag[facts.tags.of_allocation[which] as usize].filter(|&step| step > now)
        {
            if let Some(last) = cuts.last_mut() {
                last.end = event;
            }
            now = step;
            cuts.push(Cut { name: format!("step {step}"), start: event, end, is_whole: true });
        }
    }
    cuts
}

fn optimizer_annotations(facts: &Facts<'_>, end: i64) -> Vec<Cut> {
    let spans = spans(facts);
    let steps = spans.iter().filter(|(name, ..)| name.starts_with("Optimizer.step#"));
    let mut ends: Vec<i64> = steps.filter_map(|(_, _, stop)| *stop).collect();
    ends.sort_unstable();
    ends.dedup();
    cut_at(&ends, end)
}

/// The annotation that repeats and covers most of the trace.
fn repeated_annotation(facts: &Facts<'_>) -> Vec<Cut> {
    let mut covered: BTreeMap<String, (usize, i64)> = BTreeMap::new();
    for (name, start, stop) in spans(facts) {
        if let (Some(start), Some(stop)) = (start, stop) {
            let is_ours = !name.starts_with("Optimizer.") && !name.starts_with("enumerate(");
            if is_ours && start < stop {
                // `step 3`, `step 4`: numbers do not make another name.
                let one = covered.entry(without_number(&name).to_owned()).or_default();
                *one = (one.0 + 1, one.1 + stop - start);
            }
        }
    }
    covered.retain(|_, (count, _)| *count >= 2);
    let Some((most, _)) = covered.iter().max_by_key(|(_, (_, events))| *events) else {
        return Vec::new();
    };
    let cuts = annotated(facts, |name| without_number(name) == most);
    let total: i64 = cuts.iter().map(|cut| cut.end - cut.start).sum();
    // A part of a step is not the step.
    if total * 2 >= facts.lives.totals.len() as i64 { cuts } else { Vec::new() }
}

fn without_number(name: &str) -> &str {
    name.trim_end_matches(|letter: char| {
        letter.is_ascii_digit() || matches!(letter, ' ' | '#' | '_' | ':' | '=')
    })
}

/// Steps that end where each of these runs ends.
fn after_runs(phases: &Phases, phase: Phase, end: i64) -> Vec<Cut> {
    let has_forward = phases.runs.iter().any(|run| run.phase == Phase::Forward);
    let mut ends: Vec<i64> = Vec::new();
    let mut is_between = false;
    for run in &phases.runs {
        if run.phase == phase {
            // Two runs with nothing but a little of the user's code between them are one.
            if !is_between && has_forward {
                ends.pop();
            }
            ends.push(run.end);
            is_between = false;
        } else {
            is_between |= matches!(run.phase, Phase::Forward | Phase::Backward | Phase::Optimizer);
        }
    }
    cut_at(&ends, end)
}

/// Steps that end at some events, and what is after the last of them.
fn cut_at(ends: &[i64], end: i64) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let mut start = 0;
    for (number, &stop) in ends.iter().enumerate() {
        if start < stop {
            cuts.push(Cut { name: format!("step {number}"), start, end: stop, is_whole: true });
            start = stop;
        }
    }
    if start < end && !cuts.is_empty() {
        cuts.push(Cut { name: "after the last step".to_owned(), start, end, is_whole: false });
    }
    cuts
}

/// Steps from the period with which allocations repeat.
///
/// A kind of allocation (stack and size) that a step makes once comes back after as many others as a
/// step makes; the number on which most kinds agree is the period.
fn periodic(facts: &Facts<'_>, end: i64) -> Vec<Cut> {
    let all = &facts.lives.allocations;
    let first = all.alloc_event.partition_point(|&event| event == BEFORE);
    let count = all.len() - first;
    let kind = |at: usize| (all.stack[first + at], all.size[first + at]);
    let mut places: HashMap<(u32, u64), Vec<u32>, RandomState> = HashMap::default();
    for at in 0..count {
        places.entry(kind(at)).or_default().push(at as u32);
    }
    let mut votes: BTreeMap<u32, u64> = BTreeMap::new();
    for places in places.values().filter(|places| places.len() >= 3) {
        let mut gaps: Vec<u32> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_unstable();
        let middle = gaps[gaps.len() / 2];
        let regular = gaps.iter().filter(|&&gap| gap == middle).count();
        // The first step may differ from the others.
        if middle > 1 && regular + 1 >= gaps.len() && regular >= 2 {
            *votes.entry(middle).or_default() += 1;
        }
    }
    let Some((&period, &agreed)) = votes.iter().max_by_key(|(_, votes)| **votes) else {
        return Vec::new();
    };
    let period = period as usize;
    if agreed < 3.min(period as u64) || count < 3 * period {
        return Vec::new();
    }
    // The first stretch that repeats, and how much of the rest does.
    let repeats = |at: usize| kind(at) == kind(at + period);
    let same = (0..count - period).filter(|&at| repeats(at)).count();
    if same * 2 < count - period {
        return Vec::new();
    }
    let mut begin = count - period;
    while begin > 0 && (repeats(begin - 1) || !begin.is_multiple_of(period)) {
        begin -= 1;
    }
    if is_inside_module(facts, first + begin, period) {
        return Vec::new();
    }
    // A step begins where least is alive.
    let low = |at: usize| {
        let event = all.alloc_event[first + at];
        if event == 0 { facts.lives.initial_bytes } else { facts.lives.totals[event as usize - 1] }
    };
    let within = begin..(begin + period).min(count);
    let Some(start) = within.min_by_key(|&at| low(at)) else { return Vec::new() };
    let event = |at: usize| all.alloc_event.get(first + at).copied().unwrap_or(end);
    let mut cuts = Vec::new();
    let mut at = start;
    while at + period <= count {
        let name = format!("period {}", cuts.len());
        cuts.push(Cut { name, start: event(at), end: event(at + period), is_whole: true });
        at += period;
    }
    cuts
}

/// Whether a period is that of a module's parts, such as layers: all its stacks pass through one call
/// of a module and then through the same line of the user's code.
fn is_inside_module(facts: &Facts<'_>, from: usize, period: usize) -> bool {
    let all = &facts.lives.allocations;
    let stacks = (from..(from + period).min(all.len())).map(|which| all.stack[which]);
    let mut shared: Option<&[u32]> = None;
    for stack in stacks.filter(|&stack| stack != 0) {
        let frames = facts.texts.stack(stack);
        shared = Some(match shared {
            None => frames,
            Some(before) => {
                let pairs = before.iter().rev().zip(frames.iter().rev());
                let same = pairs.take_while(|(one, other)| one == other).count();
                &before[before.len() - same..]
            }
        });
    }
    let mut is_called = false;
    for &frame in shared.unwrap_or_default().iter().rev() {
        let (name, filename, _) = facts.texts.frame(frame);
        if is_module_call(name, filename) {
            is_called = true;
        } else if is_called && Rank::of(name, filename) <= Rank::Library {
            return true;
        }
    }
    false
}

/// What memory does in some stretches of events, in order.
#[must_use]
pub fn figures(facts: &Facts<'_>, stretches: &[(i64, i64)]) -> Vec<Figures> {
    let lives = facts.lives;
    let all = &lives.allocations;
    let before = |event: i64| {
        let place = usize::try_from(event - 1).ok();
        place.and_then(|at| lives.totals.get(at)).copied().unwrap_or(lives.initial_bytes)
    };
    let mut found: Vec<Figures> = stretches
        .iter()
        .map(|&(start, end)| {
            let totals = &lives.totals[start as usize..end as usize];
            let mut peak = (start, totals.first().copied().unwrap_or(0));
            for (&bytes, event) in totals.iter().zip(start..) {
                if bytes > peak.1 {
                    peak = (event, bytes);
                }
            }
            Figures {
                peak_bytes: peak.1,
                peak_event: peak.0,
                start_bytes: before(start),
                end_bytes: before(end),
                ..Figures::default()
            }
        })
        .collect();
    let made = |event: i64| all.alloc_event.partition_point(|&at| at < event);
    for (figures, &(start, end)) in found.iter_mut().zip(stretches) {
        for which in made(start)..made(end) {
            figures.allocated_bytes += all.size[which];
            figures.allocated_count += 1;
            if figures.largest.is_none_or(|largest| all.size[which] > all.size[largest as usize]) {
                figures.largest = Some(which as u32);
            }
        }
    }
    add_freed(facts, stretches, &mut found);
    found
}

fn add_freed(facts: &Facts<'_>, stretches: &[(i64, i64)], found: &mut [Figures]) {
    let all = &facts.lives.allocations;
    let events = facts.lives.totals.len();
    let mut bytes = vec![(0_u64, 0_u64); events + 1];
    for (&free, &size) in all.free_event.iter().zip(&all.size) {
        if let Some(at) = usize::try_from(free).ok().filter(|&at| at < events) {
            bytes[at].0 += size;
            bytes[at].1 += 1;
        }
    }
    for (figures, &(start, end)) in found.iter_mut().zip(stretches) {
        for &(size, count) in &bytes[start as usize..end as usize] {
            figures.freed_bytes += size;
            figures.freed_count += count;
        }
    }
}

/// The most that is listed as new in a step.
const MOST_NEW: usize = 5;

/// Lines that allocate more than in the step before.
fn new_lines(facts: &Facts<'_>, lines: &Keys, cuts: &[Cut]) -> Vec<Vec<(u32, u64)>> {
    let all = &facts.lives.allocations;
    let mut before: HashMap<u32, u64, RandomState> = HashMap::default();
    let mut result = Vec::with_capacity(cuts.len());
    for (number, cut) in cuts.iter().enumerate() {
        let from = all.alloc_event.partition_point(|&at| at < cut.start);
        let to = all.alloc_event.partition_point(|&at| at < cut.end);
        let mut now: HashMap<u32, u64, RandomState> = HashMap::default();
        for which in from..to {
            *now.entry(lines.ids[which]).or_default() += all.size[which];
        }
        let mut new: Vec<(u32, u64)> = Vec::new();
        if number > 0 {
            let more = |(&line, &bytes): (&u32, &u64)| {
                let more = bytes.saturating_sub(before.get(&line).copied().unwrap_or(0));
                (more > 0).then_some((line, more))
            };
            new.extend(now.iter().filter_map(more));
            new.sort_unstable_by_key(|&(line, more)| (std::cmp::Reverse(more), line));
            new.truncate(MOST_NEW);
        }
        result.push(new);
        before = now;
    }
    result
}

impl Steps {
    /// A group for each step that made allocations.
    #[must_use]
    pub fn keys(&self, facts: &Facts<'_>) -> Keys {
        let mut names: Vec<String> = self.steps.iter().map(|step| step.name.clone()).collect();
        let between = names.len() as u32;
        names.push("outside of the steps".to_owned());
        names.push("before the recording".to_owned());
        let id = |&event: &i64| {
            if event == BEFORE {
                return between + 1;
            }
            let after = self.steps.partition_point(|step| step.start <= event);
            match after.checked_sub(1) {
                Some(at) if event < self.steps[at].end => at as u32,
                _ => between,
            }
        };
        Keys::new(facts.lives.allocations.alloc_event.iter().map(id).collect(), names, self.missing)
    }
}
