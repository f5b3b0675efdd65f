//! What each allocation is for, without a profiler.
//!
//! Four kinds of evidence, in this order: the stack names what allocates (an optimizer, a workspace, a
//! collective); the phase in which an allocation is made and freed (what is made in a forward pass and
//! freed in the backward pass is an activation; what outlives the backward pass that made it is a
//! gradient; what outlives the optimizer's step that made it is its state); sizes that repeat (a
//! gradient has its parameter's size, and so have Adam's two states); and what never dies. The last two
//! also hold for allocations older than the recording.
//!
//! The file's own categories win over all of these, and a user's rules over both.
//!
//! # Cost
//!
//! Linear in the allocations: about 20 ns each, besides the names of frames.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::facts::Facts;
use super::keys::Keys;
use super::phases::{Phase, Phases, Run, feature};
use crate::error::{Error, Result};
use crate::lifetimes::{BEFORE, CATEGORIES};

/// The categories of all allocations of a device.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Categories {
    /// Of each allocation, 1 + a place in [`CATEGORIES`]: never 0, since not known is one of them.
    pub category: Vec<u8>,
    /// Of each allocation, a place in [`REASONS`].
    pub reason: Vec<u8>,
    /// What the file lacks, as a sentence.
    pub missing: Option<&'static str>,
}

const fn number(name: &str) -> u8 {
    let mut place = 0;
    while place < CATEGORIES.len() {
        if is_same(CATEGORIES[place].as_bytes(), name.as_bytes()) {
            return place as u8 + 1;
        }
        place += 1;
    }
    panic!("no such category")
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

const PARAMETER: u8 = number("parameter");
const OPTIMIZER_STATE: u8 = number("optimizer_state");
const INPUT: u8 = number("input");
const TEMPORARY: u8 = number("temporary");
const ACTIVATION: u8 = number("activation");
const GRADIENT: u8 = number("gradient");
const WORKSPACE: u8 = number("workspace");
const COMMUNICATION: u8 = number("communication");
/// The category of what is not known.
pub const UNKNOWN: u8 = number("unknown");

/// The number of the category with a name.
pub fn named(name: &str) -> Result<u8> {
    let place = CATEGORIES.iter().position(|known| known.eq_ignore_ascii_case(name));
    let wrong =
        || Error::filter(format!("a category is one of {}, not {name:?}", CATEGORIES.join(", ")));
    place.map(|place| place as u8 + 1).ok_or_else(wrong)
}

/// Reasons and confidences, and a constant for the number of each.
macro_rules! reasons {
    ($($name:ident = $confidence:literal, $text:literal;)+) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy)]
        #[repr(u8)]
        enum Why { $($name,)+ }

        /// Why a category was chosen, and how sure that is in percent.
        pub const REASONS: &[(&str, u8)] = &[$(($text, $confidence),)+];
    };
}

reasons! {
    Rule = 100, "a rule of the user's";
    File = 100, "recorded in the file";
    Collective = 95, "allocated for communication between processes";
    Scratch = 95, "allocated as a workspace";
    ScratchSize = 80, "has the size of a cuBLAS workspace, is made once and never freed";
    StateMade = 97, "made in an optimizer's step and kept after it";
    OptimizerScratch = 97, "made and freed in one optimizer's step";
    GradientStored = 97, "made in a backward pass, kept after it, with the size of a parameter";
    GradientKept = 75, "made in a backward pass and kept after it";
    GradientOpen = 70, "made in a backward pass that the recording does not end, with the size of a parameter";
    BackwardScratch = 95, "made and freed in one backward pass";
    Recomputed = 90, "computed again in a backward pass, for a checkpoint";
    Built = 97, "made when a model was built, moved or loaded";
    BuiltScratch = 85, "made and freed while a model was built";
    KeptWithGradient = 90, "made before the first step, kept, with gradients of its size";
    KeptEarly = 65, "made before the first step and kept";
    KeptForBackward = 95, "made in a forward pass and freed in the backward pass";
    ForwardScratch = 85, "made and freed before the backward pass";
    ModuleKept = 65, "made in a module's call and freed before a backward pass, but not at once";
    ModuleOutput = 85, "made in a module's call, without a backward pass";
    ForwardKept = 55, "made in a forward pass and not freed";
    StateBySize = 85, "made after a backward pass, kept, with the size of a gradient";
    StateKept = 60, "made after a backward pass and kept";
    BatchMade = 80, "made outside of the model before its call";
    Loaded = 90, "made by a data loader";
    KeptInput = 70, "made outside of the model before the first step, kept, without gradients of its size";
    OldWithGradient = 90, "older than the recording, never freed, with gradients of its size";
    OldState = 80, "older than the recording, never freed, one of several for each gradient of its size";
    OldKept = 65, "older than the recording and never freed";
    OldGradient = 80, "older than the recording, freed between backward and forward, with the size of a parameter";
    OldActivation = 80, "older than the recording and freed in a backward pass";
    OldFreed = 40, "older than the recording and freed";
    Loss = 80, "made after a forward pass and freed in the backward pass";
    Aside = 60, "made and freed outside of the model";
    ShortLived = 50, "lives for a few events only";
    LongLived = 40, "comes and goes with the steps";
    FreedTogether = 50, "has the size of something kept, and is freed together with others that have";
    KeptLater = 60, "made after the first steps began, kept, with the size of something kept from the start";
    OldReplaced = 65, "older than the recording, freed after an optimizer's step, with the size of something kept";
    Nothing = 0, "nothing is known but its size and lifetime";
}

/// The size of the workspace that cuBLAS gets from PyTorch; on the newest GPUs it is a round number,
/// which says nothing.
const WORKSPACE_BYTES: u64 = 8_519_680;

/// A user's rule: a category, and the allocations that it is for.
pub type Rule = (u8, Vec<bool>);

/// Infers the category of every allocation.
#[must_use]
pub fn categories(facts: &Facts<'_>, phases: &Phases, rules: &[Rule]) -> Categories {
    let count = facts.lives.allocations.len();
    let judge = Judge::new(facts, phases);
    let mut found = Categories {
        category: Vec::with_capacity(count),
        reason: Vec::with_capacity(count),
        missing: judge.missing(),
    };
    let older = judge.older();
    for which in 0..count {
        let recorded = facts.lives.allocations.category[which];
        let by_rule = rules.iter().find(|(_, mask)| mask[which]).map(|(category, _)| *category);
        let (category, why) = match by_rule {
            Some(category) => (category, Why::Rule),
            None if recorded != 0 && recorded != UNKNOWN => (recorded, Why::File),
            None if facts.lives.allocations.alloc_event[which] == BEFORE => older[which],
            None => judge.made(which),
        };
        found.category.push(category);
        found.reason.push(why as u8);
    }
    found
}

impl Categories {
    /// A group for each category.
    #[must_use]
    pub fn keys(&self) -> Keys {
        let ids = self.category.iter().map(|&one| u32::from(one) - 1).collect();
        let names = CATEGORIES.iter().map(|&name| name.to_owned()).collect();
        Keys::new(ids, names, self.missing)
    }

    /// Why an allocation has its category, and how sure that is in percent.
    #[must_use]
    pub fn reason(&self, which: usize) -> (&'static str, u8) {
        REASONS[usize::from(self.reason[which])]
    }
}

type Counts = HashMap<u64, u64, RandomState>;

struct Judge<'a> {
    facts: &'a Facts<'a>,
    phases: &'a Phases,
    /// The run of each event, by its start: runs are in order.
    runs: &'a [Run],
    backward: Vec<Run>,
    /// The event of the first forward, backward or optimizer allocation.
    first_step: i64,
    /// Events in the trace.
    end: i64,
    /// The last event that makes an allocation: a program that ends frees everything after it.
    last_made: i64,
    /// How many gradients of each size a step has.
    gradients: Counts,
    /// Sizes of what is known to be a parameter.
    parameters: Counts,
    /// Whether an optimizer's state was made in the recording.
    makes_state: bool,
    /// If stacks show nothing: when allocations of a parameter's size are freed, in order.
    gradient_frees: Vec<i64>,
    /// Of each backward pass.
    tails: Vec<Tail>,
}

/// How a backward pass ends.
#[derive(Debug, Default, Clone, Copy)]
struct Tail {
    /// The event that makes its last allocation.
    last_made: i64,
    /// How many of a parameter's size are freed after that, before anything else is allocated.
    freed: u32,
    /// How many of a parameter's size outlive it.
    kept: u32,
    /// Whether what is freed then are the gradients.
    has_gradients: bool,
}

/// What lives for fewer events than this is not kept for anything.
const SHORT: i64 = 20;

impl<'a> Judge<'a> {
    fn new(facts: &'a Facts<'a>, phases: &'a Phases) -> Self {
        let end = facts.lives.totals.len() as i64;
        let is_step = |run: &&Run| !matches!(run.phase, Phase::Construct | Phase::Outside);
        let mut judge = Self {
            facts,
            phases,
            runs: &phases.runs,
            backward: phases.backward_runs().collect(),
            first_step: phases.runs.iter().find(is_step).map_or(end, |run| run.start),
            end,
            last_made: facts.lives.allocations.alloc_event.last().copied().unwrap_or(BEFORE),
            gradients: Counts::default(),
            parameters: Counts::default(),
            makes_state: false,
            gradient_frees: Vec::new(),
            tails: Vec::new(),
        };
        if !phases.has_stacks {
            judge.first_step = judge.first_return();
        }
        judge.count_parameters();
        judge.find_tails();
        judge.count_gradients();
        judge.find_state();
        if !phases.has_stacks {
            judge.find_gradient_frees();
        } else if judge.backward.is_empty() {
            judge.count_replaced();
        }
        judge
    }

    fn missing(&self) -> Option<&'static str> {
        let all = &self.facts.lives.allocations;
        if self.end == 0 && !all.stack.iter().any(|&stack| stack != 0) {
            Some("neither events nor stacks were recorded: what allocations are for is not known")
        } else if self.end == 0 {
            Some("the file has no events: categories are inferred from stacks only")
        } else if !self.phases.has_stacks {
            Some(
                "no stack shows a forward or backward pass: categories are inferred from lifetimes only",
            )
        } else {
            None
        }
    }

    /// The last allocation of each backward pass, and whether gradients are freed before the next phase
    /// allocates: some optimizers allocate nothing.
    fn find_tails(&mut self) {
        let all = &self.facts.lives.allocations;
        let mut tails = vec![Tail::default(); self.backward.len()];
        let of_pass = |which: usize| {
            (self.phases.of_allocation[which] == Phase::Backward)
                .then(|| self.backward_of(all.alloc_event[which]))
                .flatten()
        };
        for which in 0..all.len() {
            if let Some(run) = of_pass(which) {
                tails[run].last_made = all.alloc_event[which];
            }
        }
        for which in 0..all.len() {
            if let Some(run) = of_pass(which) {
                let freed = all.free_event[which];
                let is_tail = freed > tails[run].last_made && freed < self.backward[run].end;
                if self.parameters.contains_key(&all.size[which]) {
                    tails[run].freed += u32::from(is_tail);
                    tails[run].kept += u32::from(freed >= self.backward[run].end);
                }
            }
        }
        // A few of them are what the last nodes left, not the gradients of all parameters; and a pass
        // whose gradients outlive it has no others.
        let most = tails.iter().map(|tail| tail.freed.max(tail.kept)).max().unwrap_or(0);
        for tail in &mut tails {
            tail.has_gradients =
                tail.freed >= 2 && tail.freed * 2 > most && tail.freed > 4 * tail.kept;
        }
        self.tails = tails;
    }

    /// Whether an allocation of a backward pass outlives it.
    fn outlives_backward(&self, which: usize, run: usize) -> bool {
        let all = &self.facts.lives.allocations;
        let (freed, tail) = (all.free_event[which], &self.tails[run]);
        let is_tail = tail.has_gradients && freed > tail.last_made;
        freed >= self.backward[run].end
            || (is_tail && self.parameters.contains_key(&all.size[which]))
    }

    /// How many gradients of each size there are at once: they outlive the backward pass that made them.
    fn count_gradients(&mut self) {
        let all = &self.facts.lives.allocations;
        let mut changes: Vec<(i64, i64, u64)> = Vec::new();
        for which in 0..all.len() {
            if self.phases.of_allocation[which] != Phase::Backward || self.is_scratch(which) {
                continue;
            }
            let Some(run) = self.backward_of(all.alloc_event[which]) else { continue };
            let is_over = self.backward[run].end < self.end || self.tails[run].has_gradients;
            if is_over && self.outlives_backward(which, run) {
                changes.push((all.alloc_event[which], 1, all.size[which]));
                changes.push((all.free_event[which], -1, all.size[which]));
            }
        }
        changes.sort_unstable();
        let mut now: HashMap<u64, i64, RandomState> = HashMap::default();
        for (_, change, size) in changes {
            let count = now.entry(size).or_default();
            *count += change;
            let most = self.gradients.entry(size).or_default();
            *most = (*most).max((*count).max(0) as u64);
        }
    }

    fn count_parameters(&mut self) {
        let all = &self.facts.lives.allocations;
        // Activations are freed in the first backward pass.
        let first_end = self.backward.first().map_or(self.first_step, |run| run.end);
        for which in 0..all.len() {
            let freed = all.free_event[which];
            let is_early = all.alloc_event[which] < self.first_step;
            let is_parameter = match self.phases.of_allocation[which] {
                Phase::Construct => is_early && freed > self.first_step,
                Phase::Outside => is_early && (freed >= first_end || self.is_kept(which)),
                Phase::Before => self.is_kept_old(which),
                _ => false,
            };
            if is_parameter {
                *self.parameters.entry(all.size[which]).or_default() += 1;
            }
        }
    }

    /// Whether an optimizer's state is made in the recording.
    fn find_state(&mut self) {
        let all = &self.facts.lives.allocations;
        let first = self.backward.first().map_or(self.end, |run| run.end);
        let last = self.backward.last().map_or(self.end, |run| run.start);
        self.makes_state = (0..all.len()).any(|which| match self.phases.of_allocation[which] {
            Phase::Optimizer => {
                all.free_event[which] >= self.run_end(all.alloc_event[which])
                    && all.size[which] > 64
            }
            Phase::Outside if !self.phases.has_python => {
                (first..last).contains(&all.alloc_event[which])
                    && self.is_kept(which)
                    && self.gradients.contains_key(&all.size[which])
            }
            _ => false,
        });
    }

    /// Without stacks: the event that makes the first of what comes and goes.
    fn first_return(&self) -> i64 {
        let all = &self.facts.lives.allocations;
        let returns = |which: &usize| {
            all.alloc_event[*which] != BEFORE
                && !self.is_kept(*which)
                && all.free_event[*which] - all.alloc_event[*which] > SHORT
        };
        (0..all.len()).find(returns).map_or(self.end, |which| all.alloc_event[which])
    }

    fn find_gradient_frees(&mut self) {
        let all = &self.facts.lives.allocations;
        let is_like = |&which: &usize| {
            !self.is_kept(which)
                && self.parameters.contains_key(&all.size[which])
                && all.free_event[which] - all.alloc_event[which] > SHORT
        };
        let mut frees: Vec<i64> =
            (0..all.len()).filter(is_like).map(|which| all.free_event[which]).collect();
        frees.sort_unstable();
        self.gradient_frees = frees;
    }

    /// A recording of an optimizer's step without a backward pass: gradients are what is freed after
    /// it and has the size of something kept.
    fn count_replaced(&mut self) {
        let all = &self.facts.lives.allocations;
        let optimizer = self.runs.iter().find(|run| run.phase == Phase::Optimizer);
        let Some(after) = optimizer.map(|run| run.start) else { return };
        let older = all.alloc_event.iter().take_while(|&&event| event == BEFORE).count();
        let kept: Counts = (0..older).filter(|&which| self.is_kept(which)).fold(
            Counts::default(),
            |mut kept, which| {
                *kept.entry(all.size[which]).or_default() += 1;
                kept
            },
        );
        for which in 0..older {
            let is_replaced = !self.is_kept(which) && all.free_event[which] > after;
            if is_replaced && kept.contains_key(&all.size[which]) {
                *self.gradients.entry(all.size[which]).or_default() += 1;
            }
        }
    }

    /// Whether it is there until the program ends.
    fn is_kept(&self, which: usize) -> bool {
        let freed = self.facts.lives.allocations.free_event[which];
        freed >= self.end || freed > self.last_made
    }

    /// Whether something older than the recording outlives more than one step, or the program.
    fn is_kept_old(&self, which: usize) -> bool {
        let freed = self.facts.lives.allocations.free_event[which];
        self.is_kept(which) || self.backward.get(1).is_some_and(|second| freed >= second.end)
    }

    fn features(&self, which: usize) -> u16 {
        self.phases.features[self.facts.lives.allocations.stack[which] as usize]
    }

    fn has(&self, which: usize, bits: u16) -> bool {
        self.features(which) & bits != 0
    }

    /// Whether it is a workspace: by its stack, or by its size if it is never freed.
    fn is_scratch(&self, which: usize) -> bool {
        let all = &self.facts.lives.allocations;
        self.has(which, feature::WORKSPACE)
            || (all.size[which] == WORKSPACE_BYTES && self.is_kept(which) && !self.phases.has_cpp)
    }

    /// Where the run with an event ends.
    fn run_end(&self, event: i64) -> i64 {
        let after = self.runs.partition_point(|run| run.start <= event);
        after.checked_sub(1).map_or(self.end, |at| self.runs[at].end)
    }

    /// The backward pass with an event.
    fn backward_of(&self, event: i64) -> Option<usize> {
        let at = self.backward.partition_point(|run| run.start <= event).checked_sub(1)?;
        (event < self.backward[at].end).then_some(at)
    }

    /// The first backward pass that begins after an event.
    fn next_backward(&self, event: i64) -> Option<Run> {
        self.backward.get(self.backward.partition_point(|run| run.start <= event)).copied()
    }

    /// The category of an allocation made in the recording.
    fn made(&self, which: usize) -> (u8, Why) {
        let all = &self.facts.lives.allocations;
        if self.has(which, feature::COMMUNICATION) {
            return (COMMUNICATION, Why::Collective);
        }
        if self.is_scratch(which) {
            let why =
                if self.has(which, feature::WORKSPACE) { Why::Scratch } else { Why::ScratchSize };
            return (WORKSPACE, why);
        }
        let (made, freed) = (all.alloc_event[which], all.free_event[which]);
        match self.phases.of_allocation[which] {
            Phase::Optimizer if freed < self.run_end(made) => (TEMPORARY, Why::OptimizerScratch),
            Phase::Optimizer => (OPTIMIZER_STATE, Why::StateMade),
            Phase::Backward => self.made_backward(which),
            Phase::Construct if freed > self.first_step || freed >= self.end => {
                (PARAMETER, Why::Built)
            }
            Phase::Construct => (TEMPORARY, Why::BuiltScratch),
            _ => self.made_forward(which),
        }
    }

    fn made_backward(&self, which: usize) -> (u8, Why) {
        let all = &self.facts.lives.allocations;
        let (size, freed) = (all.size[which], all.free_event[which]);
        let Some(pass) = self.backward_of(all.alloc_event[which]) else {
            return (TEMPORARY, Why::BackwardScratch);
        };
        let run = self.backward[pass];
        let has_size = self.parameters.contains_key(&size);
        if self.has(which, feature::RECOMPUTE) {
            (ACTIVATION, Why::Recomputed)
        } else if !self.outlives_backward(which, pass) {
            (TEMPORARY, Why::BackwardScratch)
        } else if has_size && (run.end < self.end || freed < self.end) {
            (GRADIENT, Why::GradientStored)
        } else if has_size {
            (GRADIENT, Why::GradientOpen)
        } else if run.end < self.end {
            (GRADIENT, Why::GradientKept)
        } else {
            (TEMPORARY, Why::BackwardScratch)
        }
    }

    /// Made in a forward pass, or in code of the user's.
    fn made_forward(&self, which: usize) -> (u8, Why) {
        let all = &self.facts.lives.allocations;
        let (made, freed, size) = (all.alloc_event[which], all.free_event[which], all.size[which]);
        let is_forward = self.phases.of_allocation[which] == Phase::Forward;
        if self.has(which, feature::DATA) {
            return (INPUT, Why::Loaded);
        }
        if !self.phases.has_stacks {
            return self.made_unseen(which);
        }
        let next = self.next_backward(made);
        let has_gradient = self.gradients.contains_key(&size);
        if !is_forward {
            let outlives_pass = match next {
                Some(run) => freed >= run.end,
                None => self.is_kept(which),
            };
            let is_early = self.backward.first().is_none_or(|first| made < first.start);
            let is_before_model = made < self.first_step || !self.phases.has_python;
            if is_early && is_before_model && outlives_pass {
                return self.kept_early(which, has_gradient);
            }
            // What a program's last step frees when it ends is not kept.
            let is_state = next.is_some() || freed >= self.end;
            if is_state && !self.phases.has_python && !is_early && outlives_pass {
                if has_gradient {
                    return (OPTIMIZER_STATE, Why::StateBySize);
                }
                if self.is_kept(which) {
                    return (OPTIMIZER_STATE, Why::StateKept);
                }
            }
            if self.has(which, feature::GRADIENT_TOOLS) {
                return (TEMPORARY, Why::Aside);
            }
        }
        let is_before_call =
            !is_forward && self.phases.has_python && self.precedes_forward(made, freed);
        match next {
            _ if is_before_call => (INPUT, Why::BatchMade),
            Some(run) if freed >= run.end => (ACTIVATION, Why::ForwardKept),
            Some(run) if freed >= run.start => {
                (ACTIVATION, if is_forward { Why::KeptForBackward } else { Why::Loss })
            }
            // A forward pass that failed, or one without gradients: what it kept was not for a moment.
            Some(_) if is_forward && freed - made > 2 * SHORT => (ACTIVATION, Why::ModuleKept),
            Some(_) if is_forward => (TEMPORARY, Why::ForwardScratch),
            None if is_forward => (ACTIVATION, Why::ModuleOutput),
            _ => (TEMPORARY, Why::Aside),
        }
    }

    /// Made in a trace whose stacks show nothing: lifetimes and sizes are all there is.
    fn made_unseen(&self, which: usize) -> (u8, Why) {
        let all = &self.facts.lives.allocations;
        let (made, freed) = (all.alloc_event[which], all.free_event[which]);
        let has_size = self.parameters.contains_key(&all.size[which]);
        match () {
            () if self.is_kept(which) && made < self.first_step => (PARAMETER, Why::KeptEarly),
            () if self.is_kept(which) && has_size => (OPTIMIZER_STATE, Why::KeptLater),
            () if self.is_kept(which) => (UNKNOWN, Why::Nothing),
            () if freed - made <= SHORT => (TEMPORARY, Why::ShortLived),
            () if self.is_freed_as_gradient(which) => (GRADIENT, Why::FreedTogether),
            () => (ACTIVATION, Why::LongLived),
        }
    }

    /// Whether it has a parameter's size and is freed right before or after another that has.
    fn is_freed_as_gradient(&self, which: usize) -> bool {
        let all = &self.facts.lives.allocations;
        let freed = all.free_event[which];
        let near = |from: i64, to: i64| {
            let from = self.gradient_frees.partition_point(|&event| event < from);
            self.gradient_frees.get(from).is_some_and(|&event| event <= to)
        };
        self.parameters.contains_key(&all.size[which])
            && (near(freed - 3, freed - 1) || near(freed + 1, freed + 3))
    }

    /// Made before the first step and kept after it.
    fn kept_early(&self, which: usize, has_gradient: bool) -> (u8, Why) {
        let is_built = self.has(which, feature::INIT) && !self.has(which, feature::FACTORY);
        match () {
            () if has_gradient => (PARAMETER, Why::KeptWithGradient),
            () if is_built => (PARAMETER, Why::KeptEarly),
            () if self.phases.has_python => (INPUT, Why::KeptInput),
            () if self.has(which, feature::FACTORY) => (INPUT, Why::KeptInput),
            () => (PARAMETER, Why::KeptEarly),
        }
    }

    /// Whether what is made in the user's code is still there when a module is called next.
    fn precedes_forward(&self, made: i64, freed: i64) -> bool {
        let after = self.runs.partition_point(|run| run.start <= made);
        match self.runs.get(after) {
            Some(next) => next.phase == Phase::Forward && freed > next.start,
            None => false,
        }
    }

    /// The categories of all allocations older than the recording, which come first.
    fn older(&self) -> Vec<(u8, Why)> {
        let all = &self.facts.lives.allocations;
        let count = all.alloc_event.iter().take_while(|&&event| event == BEFORE).count();
        let mut found: Vec<(u8, Why)> = (0..count).map(|which| self.old(which)).collect();
        if self.makes_state || self.gradients.is_empty() {
            return found;
        }
        // The optimizer's state is as old as the parameters, and of the same sizes.
        let mut of_size: HashMap<u64, Vec<u32>, RandomState> = HashMap::default();
        for (which, one) in found.iter().enumerate() {
            if matches!(one.1, Why::OldWithGradient | Why::OldKept) {
                of_size.entry(all.size[which]).or_default().push(which as u32);
            }
        }
        let states = self.states_per_parameter(&of_size);
        for (size, mut same) in of_size {
            // What was made first usually has the lower address.
            same.sort_unstable_by_key(|&which| all.address[which as usize]);
            let parameters = match (self.gradients.get(&size), self.gradients.get(&(size / 2))) {
                (Some(_), _) if same.len().is_multiple_of(states + 1) => same.len() / (states + 1),
                (Some(&gradients), _) => {
                    same.len().saturating_sub(states * gradients as usize).max(gradients as usize)
                }
                // States of twice the bytes: parameters of half precision.
                (None, Some(&gradients))
                    if size % 2 == 0 && same.len() as u64 >= gradients && states > 0 =>
                {
                    0
                }
                _ => same.len(),
            };
            for &which in same.iter().skip(parameters) {
                found[which as usize] = (OPTIMIZER_STATE, Why::OldState);
            }
        }
        found
    }

    /// How many states of its own size the optimizer keeps for a parameter, as most of them have it.
    fn states_per_parameter(&self, of_size: &HashMap<u64, Vec<u32>, RandomState>) -> usize {
        let mut votes: std::collections::BTreeMap<usize, u64> = std::collections::BTreeMap::new();
        for (size, &gradients) in &self.gradients {
            let same = of_size.get(size).map_or(0, Vec::len);
            if gradients > 0 && same > 0 {
                let states = (same / gradients as usize).saturating_sub(1);
                *votes.entry(states).or_default() += gradients;
            }
        }
        let most = votes.iter().max_by_key(|(_, votes)| **votes);
        most.map_or(0, |(&states, _)| states.min(3))
    }

    fn old(&self, which: usize) -> (u8, Why) {
        let all = &self.facts.lives.allocations;
        let (size, freed) = (all.size[which], all.free_event[which]);
        let has_gradient = self.gradients.contains_key(&size);
        if self.has(which, feature::COMMUNICATION) {
            return (COMMUNICATION, Why::Collective);
        }
        if self.has(which, feature::WORKSPACE) {
            return (WORKSPACE, Why::Scratch);
        }
        if self.is_kept_old(which) {
            return match () {
                () if self.has(which, feature::OPTIMIZER) => (OPTIMIZER_STATE, Why::StateMade),
                () if self.has(which, feature::RECOMPUTE) => (ACTIVATION, Why::Recomputed),
                () if self.has(which, feature::BACKWARD) => (GRADIENT, Why::GradientKept),
                () if self.has(which, feature::MODULE) => (ACTIVATION, Why::ModuleOutput),
                () if self.has(which, feature::CONSTRUCT) => (PARAMETER, Why::Built),
                () if self.has(which, feature::DATA) => (INPUT, Why::Loaded),
                () if size == WORKSPACE_BYTES && !has_gradient => (WORKSPACE, Why::ScratchSize),
                () if has_gradient => (PARAMETER, Why::OldWithGradient),
                () if self.end == 0 => (UNKNOWN, Why::Nothing),
                () => (PARAMETER, Why::OldKept),
            };
        }
        if self.backward_of(freed).is_some() {
            return (ACTIVATION, Why::OldActivation);
        }
        match () {
            () if has_gradient && self.backward.is_empty() => (GRADIENT, Why::OldReplaced),
            () if has_gradient => (GRADIENT, Why::OldGradient),
            () => (UNKNOWN, Why::OldFreed),
        }
    }
}
