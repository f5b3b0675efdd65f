//! Any input, opened: a snapshot file, or a bundle that was made of one.
//!
//! Both give the same answers. A snapshot is in memory whole; a bundle has the allocations in memory
//! and looks up the rest in its database.

mod analysed;
mod convert;
mod look;
mod replayed;
mod trees;

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::bundle::{self, Bundle};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::lifetimes::{Lifetimes, flag};
use crate::progress::Progress;
use crate::snapshot::event_text::{self, EventText};
use crate::snapshot::stack_text::StackTexts;
use crate::snapshot::{Action, Snapshot};
use crate::store::{Active, AnnotationRow, Query, Store, Table};

use analysed::Analysed;
pub use convert::{convert, is_bundle, read};
pub use look::{Look, Subset};
pub use replayed::Replayed;

/// An opened input.
#[derive(Debug)]
pub struct Recording {
    /// What the file is: "pickle", "gzip json", "bundle of pickle", ….
    pub format: String,
    /// The devices, in order. Timelines share them.
    pub devices: Vec<Arc<Lifetimes>>,
    /// What is odd about the file as a whole.
    pub warnings: Vec<String>,
    path: PathBuf,
    content: Content,
    stack_texts: OnceLock<StackTexts>,
    paths: trees::MadePaths,
    /// The replay of each device.
    replays: Vec<OnceLock<Arc<Replayed>>>,
    /// What was computed of each device.
    analysed: Vec<Analysed>,
    /// Categories that the user's rules give: a place in the categories, and a filter.
    rules: Vec<(u8, Filter)>,
}

#[derive(Debug)]
enum Content {
    Snapshot(Box<Snapshot>),
    Bundle(Box<Stored>),
}

/// A bundle, and its database: opened twice, because a query may take long, and nothing else
/// should wait for it.
#[derive(Debug)]
struct Stored {
    bundle: Bundle,
    lookups: OnceLock<Store>,
    queries: OnceLock<Store>,
}

/// A line of a call stack, as text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FrameText {
    /// The function.
    pub name: String,
    /// The file.
    pub filename: String,
    /// The line; 0 in C++ frames.
    pub line: u64,
}

impl Recording {
    /// Opens a snapshot file, a bundle's directory or a bundle's zip, whichever it is.
    pub fn open(path: &Path, progress: &Progress<'_>) -> Result<Self> {
        if is_bundle(path)? {
            return Ok(Self::from_bundle(path, bundle::open(path, progress)?));
        }
        let (snapshot, devices, format) = read(path, progress)?;
        Ok(Self {
            replays: devices.iter().map(|_| OnceLock::new()).collect(),
            rules: Vec::new(),
            analysed: devices.iter().map(|_| Analysed::default()).collect(),
            format,
            devices: devices.into_iter().map(Arc::new).collect(),
            warnings: snapshot.oddities.sentences(),
            path: path.to_owned(),
            content: Content::Snapshot(Box::new(snapshot)),
            stack_texts: OnceLock::new(),
            paths: trees::MadePaths::default(),
        })
    }

    /// The same with rules that give allocations a category: the category's name, and a filter.
    pub fn with_rules(mut self, rules: &[(String, String)]) -> Result<Self> {
        let rule = |(name, filter): &(String, String)| {
            Ok((crate::analysis::categories::named(name)?, Filter::parse(filter)?))
        };
        self.rules = rules.iter().map(rule).collect::<Result<_>>()?;
        Ok(self)
    }

    fn from_bundle(path: &Path, mut bundle: Bundle) -> Self {
        Self {
            rules: Vec::new(),
            analysed: bundle.devices.iter().map(|_| Analysed::default()).collect(),
            replays: std::mem::take(&mut bundle.replays)
                .into_iter()
                .map(|replay| Replayed::new(replay).into())
                .collect(),
            format: format!("bundle of {}", bundle.origin.format),
            devices: std::mem::take(&mut bundle.devices).into_iter().map(Arc::new).collect(),
            warnings: bundle.warnings.clone(),
            path: path.to_owned(),
            content: Content::Bundle(Box::new(Stored {
                bundle,
                lookups: OnceLock::new(),
                queries: OnceLock::new(),
            })),
            stack_texts: OnceLock::new(),
            paths: trees::MadePaths::default(),
        }
    }

    /// How many stacks there are; ids are below that.
    #[must_use]
    pub fn stack_count(&self) -> usize {
        match &self.content {
            Content::Snapshot(snapshot) => snapshot.stacks.len(),
            Content::Bundle(stored) => stored.bundle.stacks as usize,
        }
    }

    /// The frames of a stack, innermost first; None if there is no such stack.
    pub fn frames(&self, stack: u32) -> Result<Option<Vec<FrameText>>> {
        if stack as usize >= self.stack_count() {
            return Ok(None);
        }
        match &self.content {
            Content::Snapshot(snapshot) => Ok(Some(frames(snapshot, stack))),
            Content::Bundle(_) => self.with_store(|store| {
                let frames = store.frames(stack)?.into_iter();
                let text = |(name, filename, line)| FrameText { name, filename, line };
                Ok(Some(frames.map(text).collect()))
            }),
        }
    }

    /// Every stack as text, made at the first use.
    pub fn stack_texts(&self) -> Result<&StackTexts> {
        if let Some(texts) = self.stack_texts.get() {
            return Ok(texts);
        }
        let texts = match &self.content {
            Content::Snapshot(snapshot) => StackTexts::of(snapshot),
            Content::Bundle(_) => self.with_store(|store| store.stack_texts(self.stack_count()))?,
        };
        Ok(self.stack_texts.get_or_init(|| texts))
    }

    /// Which of a device's allocations a filter matches.
    pub fn mask(&self, which: usize, filter: &Filter) -> Result<Vec<bool>> {
        let times = if filter.needs_times() { self.times(which) } else { Cow::default() };
        let categories = self.needed_categories(which, filter.needs_categories())?;
        filter.mask_by(&self.devices[which], &categories, self.stack_texts()?, &times)
    }

    /// The time of each event of a device in Unix microseconds; empty if none was recorded.
    #[must_use]
    pub fn times(&self, which: usize) -> Cow<'_, [u64]> {
        match &self.content {
            Content::Bundle(stored) => Cow::Borrowed(&stored.bundle.times[which]),
            Content::Snapshot(snapshot) => {
                let rows = snapshot.traces[which].rows.clone();
                let times: Vec<u64> = rows.map(|row| snapshot.events.time_us(row)).collect();
                let has_times = times.iter().any(|&time| time != 0);
                Cow::Owned(if has_times { times } else { Vec::new() })
            }
        }
    }

    /// How many allocations the devices before this one have: what queries call its first `idx`.
    #[must_use]
    pub fn first_idx(&self, which: usize) -> usize {
        self.devices[..which].iter().map(|one| one.allocations.len()).sum()
    }

    /// Some events of a device, decoded; as many as there are.
    pub fn event_texts(&self, which: usize, events: Range<usize>) -> Result<Vec<EventText>> {
        let count = self.devices[which].totals.len();
        let events = events.start.min(count)..events.end.min(count);
        match &self.content {
            Content::Snapshot(snapshot) => {
                let first = snapshot.traces[which].rows.start;
                Ok(event_text::of_rows(snapshot, first + events.start..first + events.end))
            }
            Content::Bundle(_) => self.with_store(|store| {
                let device = self.devices[which].device;
                let texts = store.event_texts(device, count, events)?;
                let is_known = |event: &EventText| (event.stack as usize) < self.stack_count();
                if texts.iter().all(is_known) { Ok(texts) } else { Err(stackless()) }
            }),
        }
    }

    /// The events of a device with this action, in their order.
    pub fn events_of(&self, which: usize, action: &str) -> Result<Vec<i64>> {
        match &self.content {
            Content::Snapshot(snapshot) => {
                let rows = snapshot.traces[which].rows.clone();
                let first = rows.start;
                let is_wanted = Action::all_named(action, &snapshot.actions);
                let found = snapshot.events.with_action(rows, &is_wanted);
                Ok(found.map(|row| (row - first) as i64).collect())
            }
            Content::Bundle(_) => {
                let lives = &self.devices[which];
                let (device, count) = (lives.device, lives.totals.len());
                self.with_store(|store| store.events_of(device, count, action))
            }
        }
    }

    /// The size of the block that holds an allocation at the end. None if it is freed before, or is
    /// not in the segments.
    pub fn rounded_size(&self, which: usize, allocation: usize) -> Result<Option<u64>> {
        let lives = &self.devices[which];
        let one = lives.allocations.get(allocation);
        if one.free_event < lives.totals.len() as i64 || one.flags & flag::MISSING_BLOCK != 0 {
            return Ok(None);
        }
        match &self.content {
            Content::Snapshot(snapshot) => Ok(snapshot.block_size(lives.device, one.address)),
            Content::Bundle(_) => {
                self.with_store(|store| store.block_size(lives.device, one.address))
            }
        }
    }

    /// The annotations of the program, in the file's order.
    pub fn annotations(&self) -> Result<Vec<AnnotationRow>> {
        match &self.content {
            Content::Snapshot(snapshot) => {
                let text = |id| snapshot.strings.get(id).to_owned();
                let all = snapshot.annotations.iter();
                Ok(all
                    .map(|one| (text(one.name), text(one.stage), one.device, one.time_us))
                    .collect())
            }
            Content::Bundle(_) => self.with_store(Store::annotations),
        }
    }

    /// Further top-level entries of the file, such as `predicted`.
    pub fn metadata(&self) -> Result<Vec<(String, serde_json::Value)>> {
        match &self.content {
            Content::Snapshot(snapshot) => Ok(snapshot.metadata.clone()),
            Content::Bundle(_) => self.with_store(Store::entries),
        }
    }

    /// Looks something up in the bundle's database; fails for a snapshot, which has none.
    pub fn with_store<T>(&self, ask: impl FnOnce(&Store) -> Result<T>) -> Result<T> {
        self.ask(|stored| &stored.lookups, ask)
    }

    /// Runs a user's query on a bundle's database.
    pub fn query(&self, query: &Query<'_>, cancel: &dyn Fn() -> bool) -> Result<Table> {
        self.ask(|stored| &stored.queries, |store| store.query(query, cancel))
    }

    /// Uses one of the databases, which is opened at the first use.
    fn ask<T>(
        &self,
        which: impl Fn(&Stored) -> &OnceLock<Store>,
        ask: impl FnOnce(&Store) -> Result<T>,
    ) -> Result<T> {
        let asked = match &self.content {
            Content::Snapshot(_) => {
                Err(Error::bundle("only a bundle can be queried; convert the snapshot first"))
            }
            Content::Bundle(stored) => {
                Active::new().and_then(|_active| match which(stored).get() {
                    Some(store) => ask(store),
                    None => {
                        stored.bundle.store().and_then(|new| ask(which(stored).get_or_init(|| new)))
                    }
                })
            }
        };
        asked.map_err(|error| error.in_file(&self.path))
    }
}

fn stackless() -> Error {
    Error::bundle("elements.db is damaged (a stack is out of range); convert the snapshot again")
}

fn frames(snapshot: &Snapshot, stack: u32) -> Vec<FrameText> {
    let text = |&id: &u32| {
        let frame = snapshot.stacks.frame(id);
        FrameText {
            name: snapshot.strings.get(frame.name).to_owned(),
            filename: snapshot.strings.get(frame.filename).to_owned(),
            line: frame.line,
        }
    };
    snapshot.stacks.get(stack).iter().map(text).collect()
}
