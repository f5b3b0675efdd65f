//! Opens a checkpoint of any kind and adds up its bytes.

use std::ops::{Deref, Range};
use std::path::Path;

use hashbrown::HashMap;

use super::archive::looks_like_pickle;
use super::describe::Sizes;
use super::files::CheckpointFile;
use super::imports::Imports;
use super::json::shortened;
use super::reach::{self, Reach};
use super::safetensors::{self, Safetensors};
use super::torch_zip::{self, TorchZip};
use super::values::{self, Values};
use super::walk::TensorOf;
use super::{Class, Content, Ledger, PickleAt, Storage, Stretch, Tensor, Tree, View};
use super::{index, ledger, legacy, plain_pickle, pt2, tar};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// How much of a file that is of no known kind is taken for a pickle, to see what it names.
const MAX_GUESSED: u64 = 1 << 20;
/// How many warnings are kept.
const MAX_WARNINGS: usize = 100;
/// How many runs are walked to find what one tensor reaches: milliseconds, since a caller may ask for
/// every one. Only a tensor that is made of several in one storage is walked at all.
const BUDGET_OF_ONE: u64 = 1 << 18;

/// What is in a checkpoint.
#[derive(Debug)]
pub struct Checkpoint {
    /// The file itself, then its shards.
    pub files: Vec<CheckpointFile>,
    /// What the files contain.
    pub content: Content,
    /// What each storage is used for.
    pub uses: Vec<Use>,
    /// The bytes of the files, by what they are for.
    pub ledger: Ledger,
}

impl Deref for Checkpoint {
    type Target = Content;

    fn deref(&self) -> &Content {
        &self.content
    }
}

/// What a storage is used for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Use {
    /// The tensors that are views of it.
    pub tensors: Vec<u32>,
    /// How many of its bytes they reach, each counted once.
    pub reached_bytes: u64,
    /// How many bytes clones of them would take; those that are the same view stay one.
    pub clone_bytes: u64,
}

impl Checkpoint {
    /// Opens a file. Errors name it.
    pub fn open(path: &Path, progress: &Progress<'_>) -> Result<Self> {
        Self::open_any(path, progress).map_err(|error| error.in_file(path))
    }

    fn open_any(path: &Path, progress: &Progress<'_>) -> Result<Self> {
        let file = CheckpointFile::open(path)?;
        let head = file.part(0, file.len().min(64))?;
        let is_index = head.trim_ascii_start().starts_with(b"{");
        if is_index && !safetensors::looks_like_safetensors(&head) {
            return sharded(file, progress);
        }
        Self::from_file(file, progress)
    }

    /// Reads a file that is not an index of others.
    pub fn from_file(file: CheckpointFile, progress: &Progress<'_>) -> Result<Self> {
        let content = read(&file, 0, progress)?;
        settle(vec![file], content, progress)
    }

    /// How many bytes the files have.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.files.iter().map(CheckpointFile::len).sum()
    }

    /// How many bytes the elements of all tensors are if each is written out.
    #[must_use]
    pub fn logical_bytes(&self) -> u64 {
        self.tensors.iter().fold(0, |sum, tensor| sum.saturating_add(tensor.logical_bytes))
    }

    /// How many bytes of storages some tensor reaches, each counted once.
    #[must_use]
    pub fn unique_bytes(&self) -> u64 {
        self.uses.iter().map(|used| used.reached_bytes).sum()
    }

    /// How many bytes saving clones of the tensors would save.
    #[must_use]
    pub fn wasted_bytes(&self) -> u64 {
        (0..self.storages.len()).map(|index| self.wasted_in(index)).sum()
    }

    /// How many bytes of a storage saving clones of its tensors would save.
    #[must_use]
    pub fn wasted_in(&self, storage: usize) -> u64 {
        self.storages[storage].bytes.saturating_sub(self.uses[storage].clone_bytes)
    }

    /// The storages of a tensor, each once.
    #[must_use]
    pub fn storages_of(&self, tensor: &Tensor) -> Vec<u32> {
        let mut storages: Vec<u32> = tensor.views.iter().map(|view| view.storage).collect();
        storages.sort_unstable();
        storages.dedup();
        storages
    }

    /// How many bytes of its storages a tensor reaches, each counted once.
    #[must_use]
    pub fn reached_by(&self, tensor: &Tensor) -> u64 {
        let storages = self.storages_of(tensor);
        storages.into_iter().map(|index| self.reached_in(index, tensor)).sum()
    }

    /// How many bytes of one storage a tensor reaches, each counted once.
    fn reached_in(&self, storage: u32, tensor: &Tensor) -> u64 {
        let views: Vec<&View> =
            tensor.views.iter().filter(|view| view.storage == storage).collect();
        let mut budget = BUDGET_OF_ONE;
        reach::reach(self.storages[storage as usize].bytes, &views, &mut budget).bytes
    }

    /// How much memory Python would need for what the file holds. A storage's bytes are counted where
    /// a tensor first reaches them.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let mut left: Vec<u64> = self.uses.iter().map(|used| used.reached_bytes).collect();
        let tree = &self.trees[self.root_tree];
        Sizes::new(&tree.values, tree.root, &tree.tensor_of, |index| {
            let tensor = &self.tensors[index as usize];
            if tensor.kind == "ndarray" {
                return tensor.logical_bytes;
            }
            let mut bytes = 0;
            for storage in self.storages_of(tensor) {
                let left = &mut left[storage as usize];
                let own = if *left == 0 { 0 } else { self.reached_in(storage, tensor).min(*left) };
                *left -= own;
                bytes += own;
            }
            bytes
        })
    }
}

/// Reads one file; the format is detected from its first bytes.
fn read(file: &CheckpointFile, number: u32, progress: &Progress<'_>) -> Result<Content> {
    let content = read_any(file, number, progress);
    // If so, both the content and an error would be of bytes that are no longer there.
    file.check_unchanged()?;
    content
}

fn read_any(file: &CheckpointFile, number: u32, progress: &Progress<'_>) -> Result<Content> {
    let head = file.part(0, file.len().min(1024))?;
    match &*head {
        [] => Err(Error::checkpoint("the file is empty", 0)),
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => {
            zip(file, 0..file.len(), number, progress)
        }
        head if safetensors::looks_like_safetensors(head) => safetensors(file, number),
        head if tar::is_tar(head) => tar::read(file.map()?, number, progress),
        head if legacy::is_legacy(head) => legacy::read(file.map()?, number, progress),
        head if tar::looks_like_tar(head) => tar::read(file.map()?, number, progress),
        [0x80, ..] => plain_pickle::read(file, number, progress),
        head if looks_like_pickle(head) => plain_pickle::read(file, number, progress),
        [0x1f, 0x8b, ..] => Err(Error::checkpoint("it is packed with gzip; unpack it first", 0)),
        head if head.starts_with(b"version https://git-lfs") => Err(Error::checkpoint(
            "it is not the checkpoint itself but a pointer of Git LFS to it; `git lfs pull` fetches it",
            0,
        )),
        head if head.trim_ascii_start().starts_with(b"<") => {
            Err(Error::checkpoint("it is a web page, not a checkpoint", 0))
        }
        _ => {
            let reason = "it is not a checkpoint: neither an archive, a pickle nor a tar of torch, nor \
                safetensors";
            // The oldest pickles can only be recognised by what they name.
            let named = values::names(&file.part(0, file.len().min(MAX_GUESSED))?);
            Err(Error::checkpoint(format!("{reason}{}", named.warning()), 0))
        }
    }
}

fn zip(
    file: &CheckpointFile,
    within: Range<u64>,
    number: u32,
    progress: &Progress<'_>,
) -> Result<Content> {
    let zip = TorchZip::open(file, within)?;
    let content = if zip.text("archive_format").is_some_and(|format| format == "pt2") {
        pt2::content(&zip, number, progress)
    } else if pt2::is_older(&zip) {
        pt2::older(&zip, number, progress)
    } else {
        torch_zip::read(&zip, number, "", progress)
    };
    Ok(Content { members: zip.into_members(), ..content? })
}

/// Reads an index and the shards that it names.
fn sharded(file: CheckpointFile, progress: &Progress<'_>) -> Result<Checkpoint> {
    let index = index::read(&file)?;
    let paths = index.paths(file.path())?;
    let class = Class::Archive;
    let mut whole = Content {
        stretches: vec![Stretch { file: 0, start: 0, bytes: file.len(), class }],
        metadata: index.metadata.clone(),
        ..Content::default()
    };
    let mut files = vec![file];
    let mut ends = vec![0];
    for path in &paths {
        let done = files.len() - 1;
        let part = |done: usize| done as f64 / paths.len() as f64;
        let shard = CheckpointFile::open(path)?;
        let content = read(&shard, files.len() as u32, &progress.part(part(done), part(done + 1)));
        whole.append(content.map_err(|error| error.in_file(path))?);
        ends.push(whole.tensors.len());
        files.push(shard);
    }
    let held = ends
        .windows(2)
        .map(|ends| whole.tensors[ends[0]..ends[1]].iter().map(|tensor| tensor.name.as_str()));
    let differences = index.compare(held);
    whole.warnings.splice(0..0, differences);
    whole.format = match whole.format {
        "safetensors" => "safetensors sharded",
        _ => "torch sharded",
    };
    let names = Tree::of_names(whole.tensors.iter().map(|tensor| tensor.name.as_str()));
    whole.trees.push(names);
    whole.root_tree = whole.trees.len() - 1;
    settle(files, whole, progress)
}

impl Tree {
    /// A tree of nothing but tensors by their names.
    pub(super) fn of_names<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let (values, root) = Values::of_tensors(names);
        Self { values, root, tensor_of: TensorOf::new(), pickle: PickleAt::Nowhere }
    }
}

fn safetensors(file: &CheckpointFile, number: u32) -> Result<Content> {
    let Safetensors { storages, stretches, tensors, metadata, warnings } =
        safetensors::read(file, number, 0)?;
    let trees = vec![Tree::of_names(tensors.iter().map(|tensor| tensor.name.as_str()))];
    let mut imports = Imports::default();
    if file.part(0, 1)?[0] == 0x80 {
        // Its length happens to begin as a pickle does; nothing in it may be one.
        imports.add(&values::names(&file.part(0, file.len().min(MAX_GUESSED))?), false);
    }
    let format = "safetensors";
    Ok(Content {
        format,
        storages,
        stretches,
        tensors,
        trees,
        imports,
        warnings,
        metadata,
        ..Content::default()
    })
}

impl Content {
    /// Adds what another file, or an archive in this one, holds.
    pub(super) fn append(&mut self, other: Self) {
        let storages = self.storages.len() as u32;
        let tensors = self.tensors.len() as u32;
        self.format = other.format;
        self.storages.extend(other.storages);
        self.stretches.extend(other.stretches.into_iter().map(|mut stretch| {
            if let Class::Storage(index) = &mut stretch.class {
                *index += storages;
            }
            stretch
        }));
        let trees = self.trees.len() as u32;
        self.tensors.extend(other.tensors.into_iter().map(|mut tensor| {
            tensor.views.iter_mut().for_each(|view| view.storage += storages);
            tensor.in_pickle.iter_mut().for_each(|place| place.tree += trees);
            tensor
        }));
        self.trees.extend(other.trees.into_iter().map(|mut tree| {
            tree.tensor_of.values_mut().for_each(|index| *index += tensors);
            tree
        }));
        self.imports.merge(other.imports);
        self.warnings.extend(other.warnings);
        self.metadata.extend(other.metadata);
    }
}

/// Finds which tensors use which bytes, and adds everything up.
fn settle(
    files: Vec<CheckpointFile>,
    mut content: Content,
    progress: &Progress<'_>,
) -> Result<Checkpoint> {
    let mut more = 0;
    let Content { storages, stretches, tensors, warnings, .. } = &mut content;
    let uses = uses(storages, tensors, progress, |warning| {
        if warnings.len() < MAX_WARNINGS {
            warnings.push(warning());
        } else {
            more += 1;
        }
    })?;
    let lengths: Vec<u64> = files.iter().map(CheckpointFile::len).collect();
    let reached: Vec<u64> = uses.iter().map(|used| used.reached_bytes).collect();
    let ledger = ledger::add_up(&lengths, &std::mem::take(stretches), storages, &reached)?;
    more += warnings.len().saturating_sub(MAX_WARNINGS);
    if more > 0 {
        warnings.truncate(MAX_WARNINGS);
        warnings.push(format!("{more} more warnings like these"));
    }
    Ok(Checkpoint { files, content, uses, ledger })
}

fn uses(
    storages: &[Storage],
    tensors: &[Tensor],
    progress: &Progress<'_>,
    mut warn: impl FnMut(&dyn Fn() -> String),
) -> Result<Vec<Use>> {
    let mut views: HashMap<u32, Vec<&View>> = HashMap::new();
    let mut uses = vec![Use::default(); storages.len()];
    for (index, tensor) in tensors.iter().enumerate() {
        for view in &tensor.views {
            views.entry(view.storage).or_default().push(view);
            let owners = &mut uses[view.storage as usize].tensors;
            if owners.last() != Some(&(index as u32)) {
                owners.push(index as u32);
            }
        }
    }
    let mut budget = reach::BUDGET;
    for (index, used) in uses.iter_mut().enumerate() {
        if index.is_multiple_of(1024) {
            progress.at(0, 1)?;
        }
        let Some(views) = views.get(&(index as u32)) else { continue };
        let Reach { bytes, is_exact, is_within } =
            reach::reach(storages[index].bytes, views, &mut budget);
        used.reached_bytes = bytes;
        used.clone_bytes = reach::clone_bytes(views);
        let fits = |tensor: &&u32| {
            let own = tensors[**tensor as usize].views.iter().filter(|v| v.storage == index as u32);
            own.into_iter().all(|view| {
                let span = view.layout.span();
                let end = span.and_then(|span| view.dtype.bytes_of(span.end));
                end.is_some_and(|end| end <= storages[index].bytes)
            })
        };
        let beyond = used.tensors.iter().find(|tensor| !is_within && !fits(tensor));
        let blamed = beyond.unwrap_or(&used.tensors[0]);
        let name = || shortened(&tensors[*blamed as usize].name);
        if !is_within {
            let key = || shortened(&storages[index].key);
            warn(&|| format!("{} reaches beyond the end of its storage {}", name(), key()));
        }
        if !is_exact {
            warn(&|| format!("the bytes that {} reaches are counted as one stretch", name()));
        }
    }
    Ok(uses)
}
