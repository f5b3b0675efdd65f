//! Any input, opened: a snapshot file, or a bundle that was made of one.
//!
//! Both give the same answers. A snapshot is in memory whole; a bundle has the allocations in memory
//! and looks up the rest in its database.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::bundle::{self, Bundle};
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::lifetimes::{self, Lifetimes};
use crate::progress::Progress;
use crate::snapshot::Snapshot;
use crate::source::{Kind, Source};
use crate::stack_texts::StackTexts;
use crate::store::Store;

/// An opened input.
#[derive(Debug)]
pub struct Recording {
    /// What the file is: "pickle", "gzip json", "bundle of pickle", ….
    pub format: String,
    /// The devices, in order. Timelines share them.
    pub devices: Vec<Arc<Lifetimes>>,
    /// What is odd about the file as a whole.
    pub warnings: Vec<String>,
    content: Content,
    stack_texts: OnceLock<StackTexts>,
}

#[derive(Debug)]
enum Content {
    Snapshot(Box<Snapshot>),
    Bundle { bundle: Box<Bundle>, store: OnceLock<Store> },
}

/// A line of a call stack, in words.
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
            return Ok(Self::from_bundle(bundle::open(path, progress)?));
        }
        let (snapshot, devices, format) = read(path, progress)?;
        Ok(Self {
            format,
            devices: devices.into_iter().map(Arc::new).collect(),
            warnings: snapshot.oddities.sentences(),
            content: Content::Snapshot(Box::new(snapshot)),
            stack_texts: OnceLock::new(),
        })
    }

    fn from_bundle(mut bundle: Bundle) -> Self {
        Self {
            format: format!("bundle of {}", bundle.format),
            devices: std::mem::take(&mut bundle.devices).into_iter().map(Arc::new).collect(),
            warnings: bundle.warnings.clone(),
            content: Content::Bundle { bundle: Box::new(bundle), store: OnceLock::new() },
            stack_texts: OnceLock::new(),
        }
    }

    /// How many stacks there are; ids are below that.
    #[must_use]
    pub fn stack_count(&self) -> usize {
        match &self.content {
            Content::Snapshot(snapshot) => snapshot.stacks.len(),
            Content::Bundle { bundle, .. } => bundle.stacks as usize,
        }
    }

    /// The frames of a stack, innermost first; None if there is no such stack.
    pub fn frames(&self, stack: u32) -> Result<Option<Vec<FrameText>>> {
        if stack as usize >= self.stack_count() {
            return Ok(None);
        }
        match &self.content {
            Content::Snapshot(snapshot) => Ok(Some(frames(snapshot, stack))),
            Content::Bundle { .. } => self.with_store(|store| {
                let frames = store.frames(stack)?.into_iter();
                let text = |(name, filename, line)| FrameText { name, filename, line };
                Ok(Some(frames.map(text).collect()))
            }),
        }
    }

    /// Every stack in words, made when first asked for.
    pub fn stack_texts(&self) -> Result<&StackTexts> {
        if let Some(texts) = self.stack_texts.get() {
            return Ok(texts);
        }
        let texts = match &self.content {
            Content::Snapshot(snapshot) => stack_texts(snapshot),
            Content::Bundle { .. } => {
                self.with_store(|store| store.stack_texts(self.stack_count()))?
            }
        };
        Ok(self.stack_texts.get_or_init(|| texts))
    }

    /// Which of a device's allocations a filter lets through.
    pub fn mask(&self, which: usize, filter: &Filter) -> Result<Vec<bool>> {
        let times = if filter.needs_times() { self.times(which) } else { Cow::default() };
        filter.mask(&self.devices[which], self.stack_texts()?, &times)
    }

    /// The time of each event of a device in Unix microseconds; empty if none was recorded.
    #[must_use]
    pub fn times(&self, which: usize) -> Cow<'_, [u64]> {
        match &self.content {
            Content::Bundle { bundle, .. } => Cow::Borrowed(&bundle.times[which]),
            Content::Snapshot(snapshot) => {
                let rows = snapshot.traces[which].rows.clone();
                let times: Vec<u64> = rows.map(|row| snapshot.events.time_us(row)).collect();
                let has_times = times.iter().any(|&time| time != 0);
                Cow::Owned(if has_times { times } else { Vec::new() })
            }
        }
    }

    /// The snapshot, if this was made of one just now.
    #[must_use]
    pub fn snapshot(&self) -> Option<&Snapshot> {
        match &self.content {
            Content::Snapshot(snapshot) => Some(snapshot),
            Content::Bundle { .. } => None,
        }
    }

    /// Asks the bundle's database something; fails for a snapshot, which has none.
    pub fn with_store<T>(&self, ask: impl FnOnce(&Store) -> Result<T>) -> Result<T> {
        let Content::Bundle { bundle, store } = &self.content else {
            return Err(Error::bundle("only a bundle can be queried; convert the snapshot first"));
        };
        match store.get() {
            Some(store) => ask(store),
            None => {
                let opened = bundle.store()?;
                ask(store.get_or_init(|| opened))
            }
        }
    }
}

/// Whether a path is a converted snapshot: a directory, or a zip by its first bytes.
pub fn is_bundle(path: &Path) -> Result<bool> {
    let failed = |error| Error::io(path, error);
    let metadata = fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Ok(true);
    }
    if !metadata.is_file() {
        // A pipe would block, and cannot be mapped.
        return Err(failed(std::io::Error::other("not a regular file; save it as one first")));
    }
    let mut start = Vec::new();
    File::open(path).map_err(failed)?.take(4).read_to_end(&mut start).map_err(failed)?;
    Ok(Kind::of(&start) == Kind::Zip)
}

/// Smaller files are read before another thread has begun.
const WORTH_TOUCHING: usize = 8 << 20;

/// Reads a snapshot file: what it says, every allocation's life, and its format.
pub fn read(path: &Path, progress: &Progress<'_>) -> Result<(Snapshot, Vec<Lifetimes>, String)> {
    let named = |error: Error| error.in_file(path);
    // A plain file has nothing to unpack, and the whole bar for reading.
    let source = Source::open(path, &progress.part(0.0, 0.3)).map_err(named)?;
    let from = if source.is_mapped() { 0.0 } else { 0.3 };
    let reading = &progress.part(from, 1.0);
    let (snapshot, lifetimes) = std::thread::scope(|scope| {
        if source.bytes().len() > WORTH_TOUCHING {
            // Without a thread for it, it is not done.
            let _ = std::thread::Builder::new().spawn_scoped(scope, || source.touch());
        }
        lifetimes::read(source.bytes(), reading)
    })
    .map_err(named)?;
    progress.at(1, 1)?;
    Ok((snapshot, lifetimes, source.format))
}

/// Reads a snapshot file and writes a bundle, of one device or of all.
pub fn convert(
    input: &Path,
    output: &Path,
    device: Option<i32>,
    force: bool,
    progress: &Progress<'_>,
) -> Result<()> {
    // Before the reading, which may take a while.
    if !force && fs::symlink_metadata(output).is_ok() {
        return Err(Error::Exists { path: output.to_owned() });
    }
    if is_bundle(input)? {
        // Says what is wrong with it, if it is none of ours.
        bundle::open(input, &Progress::none())?;
        let reason = "it is a bundle already; info and query take it as it is";
        return Err(Error::bundle(reason).in_file(input));
    }
    let (mut snapshot, mut lifetimes, format) = read(input, &progress.part(0.0, 0.3))?;
    if let Some(device) = device {
        snapshot.keep_device(device).map_err(|error| error.in_file(input))?;
        lifetimes.retain(|one| one.device == device);
    }
    bundle::write(&snapshot, &lifetimes, &format, output, force, &progress.part(0.3, 1.0))
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

fn stack_texts(snapshot: &Snapshot) -> StackTexts {
    let (strings, stacks) = (&snapshot.strings, &snapshot.stacks);
    let mut texts = StackTexts::default();
    for frame in stacks.frames() {
        texts.add_frame(strings.get(frame.name), strings.get(frame.filename), frame.line);
    }
    for id in 0..stacks.len() {
        texts.add_stack(stacks.get(id as u32));
    }
    texts
}
