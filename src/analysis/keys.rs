//! The group of each allocation, for every way to group.
//!
//! # Cost
//!
//! Made once a device and way: 1 to 5 ns an allocation, besides 1 µs a frame for its name.

use std::borrow::Cow;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::facts::Facts;
use super::{frames, modules};
use crate::lifetimes::{BEFORE, flag};
use crate::named::named;
use crate::snapshot::stack_text::StackTexts;

named! {
    /// What allocations are grouped by.
    pub enum GroupBy {
        /// The most informative line of the call stack.
        #[default]
        Line = "line",
        /// The whole call stack.
        Stack = "stack",
        /// The file of that line.
        File = "file",
        /// The function of that line.
        Function = "function",
        /// The module that was running.
        Module = "module",
        /// What it is for.
        Category = "category",
        /// The step that made it.
        Step = "step",
        /// The stream it was made on.
        Stream = "stream",
        /// Its memory pool.
        Pool = "pool",
        /// The region of `torch.compile`.
        Compile = "compile",
        /// Its size, by powers of two.
        Size = "size",
        /// How many events it lives, by powers of ten.
        Lifetime = "lifetime",
        /// The segment that it is in at the end.
        Segment = "segment",
    }
}

/// The group of each allocation.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Keys {
    /// A group of each allocation, below `count`.
    pub ids: Vec<u32>,
    /// How many groups there are.
    pub count: usize,
    /// Their names; empty if the groups are stacks, whose texts are long.
    names: Vec<String>,
    /// What the file lacks to answer this fully, as a sentence.
    pub missing: Option<&'static str>,
}

impl Keys {
    /// Groups with names.
    #[must_use]
    pub fn new(ids: Vec<u32>, names: Vec<String>, missing: Option<&'static str>) -> Self {
        Self { ids, count: names.len(), names, missing }
    }

    /// The name of a group.
    #[must_use]
    pub fn name<'a>(&'a self, id: u32, texts: &StackTexts) -> Cow<'a, str> {
        match self.names.get(id as usize) {
            Some(name) => name.into(),
            None => stack_text(texts, id).into(),
        }
    }

    /// The groups that facts give. Categories and steps are inferred, and make their own: here they are
    /// lines.
    #[must_use]
    pub fn of(facts: &Facts<'_>, by: GroupBy) -> Self {
        let all = &facts.lives.allocations;
        match by {
            GroupBy::Line | GroupBy::Category | GroupBy::Step => {
                by_frame(facts, frames::short_text)
            }
            GroupBy::File => by_frame(facts, |_, filename, _| match filename {
                "" | "??" => "C++ without a file".to_owned(),
                filename => filename.to_owned(),
            }),
            GroupBy::Function => by_frame(facts, |name, filename, _| {
                if frames::is_python(filename) {
                    format!("{name} ({})", frames::basename(filename))
                } else {
                    frames::short_text(name, filename, 0)
                }
            }),
            GroupBy::Stack => Self {
                ids: all.stack.clone(),
                count: facts.texts.len(),
                names: Vec::new(),
                missing: stackless(facts),
            },
            GroupBy::Module => modules::keys(facts),
            GroupBy::Stream => {
                interned(all.stream.iter().copied(), |stream| format!("stream {stream}"), None)
            }
            GroupBy::Pool => by_pool(facts),
            GroupBy::Compile => by_compile_context(facts),
            GroupBy::Size => {
                let class = all.size.iter().map(|&size| size.checked_ilog2());
                interned(class, size_class, None)
            }
            GroupBy::Lifetime => by_lifetime(facts),
            GroupBy::Segment => by_segment(facts),
        }
    }
}

/// Groups of values, numbered as they appear.
pub(super) fn interned<T: Copy + Eq + std::hash::Hash>(
    values: impl Iterator<Item = T>,
    name: impl Fn(T) -> String,
    missing: Option<&'static str>,
) -> Keys {
    let mut known: HashMap<T, u32, RandomState> = HashMap::default();
    let mut names = Vec::new();
    let mut last: Option<(T, u32)> = None;
    let mut id = |value: T| match last {
        // Neighbours are mostly alike.
        Some((same, id)) if same == value => id,
        _ => {
            let id = *known.entry(value).or_insert_with(|| {
                names.push(name(value));
                names.len() as u32 - 1
            });
            last = Some((value, id));
            id
        }
    };
    let ids = values.map(&mut id).collect();
    Keys::new(ids, names, missing)
}

/// Numbers texts as they appear.
#[derive(Default)]
pub(super) struct Names {
    known: HashMap<String, u32, RandomState>,
    list: Vec<String>,
}

impl Names {
    pub(super) fn id(&mut self, name: String) -> u32 {
        match self.known.get(&name) {
            Some(&id) => id,
            None => {
                let id = self.list.len() as u32;
                self.list.push(name.clone());
                self.known.insert(name, id);
                id
            }
        }
    }

    pub(super) fn into_list(self) -> Vec<String> {
        self.list
    }
}

fn stackless(facts: &Facts<'_>) -> Option<&'static str> {
    let has_none = facts.lives.allocations.stack.iter().all(|&stack| stack == 0);
    has_none.then_some("no stacks were recorded")
}

/// By something of the most informative frame.
fn by_frame(facts: &Facts<'_>, text: impl Fn(&str, &str, u64) -> String) -> Keys {
    let mut names = Names::default();
    let none = names.id(frames::NO_STACK.to_owned());
    let mut of_frame: HashMap<u32, u32, RandomState> = HashMap::default();
    let of_stack: Vec<u32> = frames::own_frames(facts.texts)
        .into_iter()
        .map(|frame| match frame {
            None => none,
            Some(frame) => *of_frame.entry(frame).or_insert_with(|| {
                let (name, filename, line) = facts.texts.frame(frame);
                names.id(text(name, filename, line))
            }),
        })
        .collect();
    let id = |&stack: &u32| of_stack.get(stack as usize).copied().unwrap_or(none);
    let ids = facts.lives.allocations.stack.iter().map(id).collect();
    Keys::new(ids, names.into_list(), stackless(facts))
}

fn by_pool(facts: &Facts<'_>) -> Keys {
    let pools = &facts.lives.pools;
    let name = |pool: u16| match pool.checked_sub(1).and_then(|at| pools.get(usize::from(at))) {
        None => "pool not recorded".to_owned(),
        Some((0, 0)) => "default pool".to_owned(),
        Some((high, low)) => format!("pool ({high}, {low})"),
    };
    interned(facts.lives.allocations.pool.iter().copied(), name, None)
}

fn by_compile_context(facts: &Facts<'_>) -> Keys {
    let mut names = Names::default();
    let of_tag = facts.tags.map(|extras| {
        let context = extras.and_then(|extras| extras.compile_context.as_deref());
        context.filter(|context| !context.is_empty()).map(str::to_owned)
    });
    let has_any = of_tag.iter().any(Option::is_some);
    let of_tag: Vec<u32> = of_tag
        .into_iter()
        .map(|context| match context.as_deref() {
            None => names.id("compile region not recorded".to_owned()),
            Some("N/A") => names.id("not compiled".to_owned()),
            Some(context) => names.id(context.to_owned()),
        })
        .collect();
    let ids = facts.tags.of_allocation.iter().map(|&tag| of_tag[tag as usize]).collect();
    let missing = "no compile regions were recorded (PyTorch 2.8 and later record them)";
    Keys::new(ids, names.into_list(), (!has_any).then_some(missing))
}

fn by_lifetime(facts: &Facts<'_>) -> Keys {
    let all = &facts.lives.allocations;
    let end = facts.lives.totals.len() as i64;
    let class = all.alloc_event.iter().zip(&all.free_event).map(|(&alloc, &free)| {
        match (alloc == BEFORE, free >= end) {
            (true, true) => 100,
            (false, true) => 101,
            (true, false) => 102,
            (false, false) => ((free - alloc).max(1) as u64).ilog10(),
        }
    });
    let name = |class: u32| match class {
        100 => "alive throughout the recording".to_owned(),
        101 => "never freed".to_owned(),
        102 => "older than the recording, freed".to_owned(),
        0 => "under 10 events".to_owned(),
        class => format!("{} to {} events", 10_u64.pow(class), 10_u64.pow(class + 1) - 1),
    };
    let missing = (end == 0).then_some("the file has no events: lifetimes are not known");
    interned(class, name, missing)
}

fn by_segment(facts: &Facts<'_>) -> Keys {
    let all = &facts.lives.allocations;
    let segments = facts.segments;
    let find = |address: u64| {
        let after = segments.partition_point(|one| one.address <= address);
        let at = after.checked_sub(1)?;
        (address - segments[at].address < segments[at].bytes).then_some(at as u32)
    };
    let is_placed = |which: usize| all.flags[which] & flag::MISSING_BLOCK == 0;
    let values =
        (0..all.len()).map(|which| if is_placed(which) { find(all.address[which]) } else { None });
    let name = |place: Option<u32>| match place {
        None => "not in a segment at the end".to_owned(),
        Some(place) => {
            let SegmentName { address, bytes, kind } = segment_name(&segments[place as usize]);
            format!("{address} {bytes} {kind}").trim_end().to_owned()
        }
    };
    let missing = segments.is_empty().then_some("the file has no segments");
    interned(values, name, missing)
}

struct SegmentName<'a> {
    address: String,
    bytes: String,
    kind: &'a str,
}

fn segment_name(segment: &super::SegmentRange) -> SegmentName<'_> {
    SegmentName {
        address: format!("{:#x}", segment.address),
        bytes: binary(segment.bytes),
        kind: &segment.kind,
    }
}

fn size_class(class: Option<u32>) -> String {
    match class {
        None => "0 B".to_owned(),
        Some(power @ 0..9) => {
            format!("under {}", binary(1 << (power + 1))).replace("under 2 B", "1 B")
        }
        Some(63) => format!("{} or more", binary(1 << 63)),
        Some(power) => format!("{} to {}", binary(1 << power), binary(1 << (power + 1))),
    }
}

/// A power of two, or another number of bytes with one decimal.
fn binary(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = (bytes.max(1).ilog2() / 10) as usize;
    let scale = 1_u64 << (10 * unit);
    if bytes.is_multiple_of(scale) {
        format!("{} {}", bytes / scale, UNITS[unit])
    } else {
        format!("{:.1} {}", bytes as f64 / scale as f64, UNITS[unit])
    }
}

/// A stack as text, a line for each frame; what `callstack` is in SQL.
#[must_use]
pub fn stack_text(texts: &StackTexts, stack: u32) -> String {
    let frames = texts.stack(stack);
    if frames.is_empty() {
        return frames::NO_STACK.to_owned();
    }
    let lines: Vec<&str> = frames.iter().map(|&id| texts.frames()[id as usize].as_str()).collect();
    lines.join("\n")
}
