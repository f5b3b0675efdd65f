//! A converted snapshot: `allocations.json` and `elements.db`, in a directory or a zip.
//!
//! The first is what drawing needs ([`document`]), the second answers queries ([`crate::store`]).
//! Unpacking a zip gives the directory. The first has the digest of the second, which is compared before
//! the second is used, and of the snapshot that both were made of.
//!
//! # Cost
//!
//! At 1M events: written in 0.45 s of processor time, opened in 30 ms, 16 bytes an event, of which 12 are
//! rows of allocations. The database is stored in the zip as it is: deflated it would take a third
//! of the room, and 30 to 80 ms before the first query is answered.

mod atomic_write;
mod document;
mod first_error;
mod replay;
mod restore;

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::allocator::curves::Curves;
use crate::allocator::{self, Replay};
use crate::digest::{FileDigest, Hashing, Origin};
use crate::error::{Error, Result};
use crate::lifetimes::Lifetimes;
use crate::progress::Progress;
use crate::snapshot::Snapshot;
use crate::source::open_file;
use crate::store::write::Contents;
use crate::store::{self, Active, Figures, Store, columns};
use atomic_write::AtomicWrite;
use first_error::FirstError;

/// The file that drawing needs.
pub const DOCUMENT: &str = "allocations.json";
/// The file that queries need.
pub const ELEMENTS: &str = "elements.db";

/// The name of the zip until it is renamed.
const ARCHIVE: &str = "bundle.zip";

/// The members of bundles that were zipped again are 2 to 5 times smaller, small ones 10 times. More than
/// this is a bomb.
const MAX_RATIO: u64 = 12;
const ALWAYS_ALLOWED: u64 = 1 << 20;

/// An open bundle.
#[derive(Debug)]
pub struct Bundle {
    /// The devices, as they were when it was written.
    pub devices: Vec<Lifetimes>,
    /// The replay of each one's allocator.
    pub replays: Vec<Replay>,
    /// For each device, the time of each event in Unix microseconds; empty if none was recorded.
    pub times: Vec<Vec<u64>>,
    /// What it was made of.
    pub origin: Origin,
    /// What was not as expected in the snapshot.
    pub warnings: Vec<String>,
    /// How many stacks there are; every stack's id is below.
    pub stacks: u32,
    /// Whether it is a zip rather than a directory.
    pub is_zip: bool,
    path: PathBuf,
    elements: FileDigest,
    /// What the database has to say of the devices.
    figures: Vec<Figures>,
}

/// Whether a bundle of this name is a zip.
#[must_use]
pub fn is_zip_name(output: &Path) -> bool {
    output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"))
}

/// Writes a bundle: a zip if the name ends in `.zip`, otherwise a directory.
///
/// It appears under its name when it is whole. An output that is there already is refused, or with
/// `force` replaced if it is a file (by a zip), or a bundle or empty directory (by a directory).
pub fn write(
    snapshot: &Snapshot,
    lifetimes: &[Lifetimes],
    origin: &Origin,
    output: &Path,
    force: bool,
    progress: &Progress<'_>,
) -> Result<()> {
    let is_zip = is_zip_name(output);
    let there = fs::symlink_metadata(output);
    if there.is_ok() && !force {
        return Err(Error::Exists { path: output.to_owned() });
    }
    atomic_write::check_replaceable(output, is_zip)?;
    // Replace the target of a link, not the link.
    let is_link = there.is_ok_and(|there| there.is_symlink());
    let target = if is_link { fs::canonicalize(output).ok() } else { None };
    let output = target.as_deref().unwrap_or(output);
    let _active = Active::new()?;
    let staged = AtomicWrite::new(output)?;
    let filled = fill(&staged, snapshot, lifetimes, origin, is_zip, progress);
    filled.map_err(|error| match error {
        // The temporary files mean nothing to the caller.
        Error::Io { source, .. } => Error::io(output, source),
        error => error,
    })?;
    if is_zip { staged.place_file(ARCHIVE, output, force) } else { staged.place_all(output, force) }
}

/// Writes all files of a bundle into the temporary directory.
fn fill(
    staged: &AtomicWrite,
    snapshot: &Snapshot,
    lifetimes: &[Lifetimes],
    origin: &Origin,
    is_zip: bool,
    progress: &Progress<'_>,
) -> Result<()> {
    let elements = staged.file(ELEMENTS);
    let replay = |(which, one)| allocator::replay(snapshot, which, one);
    let replays: Vec<Replay> = lifetimes.iter().enumerate().map(replay).collect();
    let replays = &replays;
    let contents = Contents { snapshot, lifetimes, replays, origin };
    let document = std::thread::scope(|scope| {
        let (sender, chunks) = mpsc::channel();
        let packing = scope.spawn(move || {
            let curves = |(one, replay)| Curves::of(one, replay);
            let curves: Vec<Curves> = lifetimes.iter().zip(replays).map(curves).collect();
            columns::pack_events(snapshot, lifetimes, &curves, &sender);
            drop(sender);
            document::write(snapshot, lifetimes, replays, origin)
        });
        let storing = &progress.part(0.0, 0.9);
        store::write::write(&elements, &contents, &chunks, storing)?;
        drop(chunks);
        packing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let hashed = open_file(&elements)
        .and_then(|file| FileDigest::of_file(&file).map_err(|error| Error::io(&elements, error)))?;
    let document = document::seal(document, &hashed);
    progress.at(9, 10)?;
    if is_zip {
        return archive(&staged.file(ARCHIVE), &document, &elements, &progress.part(0.9, 1.0));
    }
    let path = staged.file(DOCUMENT);
    fs::write(&path, document).map_err(|error| Error::io(&path, error))?;
    progress.at(1, 1)
}

fn archive(path: &Path, document: &[u8], elements: &Path, progress: &Progress<'_>) -> Result<()> {
    let failed = |error| Error::io(path, error);
    let zip_failed = |error: ZipError| Error::io(path, error.into());
    let mut from = File::open(elements).map_err(failed)?;
    let total = from.metadata().map_err(failed)?.len();
    let options = |method, size: u64| {
        SimpleFileOptions::default()
            .compression_method(method)
            .compression_level((method == CompressionMethod::Deflated).then_some(1))
            .large_file(size >= u64::from(u32::MAX))
    };
    let file = BufWriter::with_capacity(1 << 20, File::create(path).map_err(failed)?);
    let first_error = Cell::new(None);
    let mut zip = ZipWriter::new(FirstError::new(file, &first_error));
    // Takes back what base64 adds to the packed columns.
    let deflated = options(CompressionMethod::Deflated, document.len() as u64);
    zip.start_file(DOCUMENT, deflated).map_err(zip_failed)?;
    zip.write_all(document).map_err(failed)?;
    let stored = options(CompressionMethod::Stored, total);
    zip.start_file(ELEMENTS, stored).map_err(zip_failed)?;
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        let count = from.read(&mut buffer).map_err(failed)?;
        if count == 0 {
            break;
        }
        zip.write_all(&buffer[..count]).map_err(failed)?;
        done += count as u64;
        progress.at(done, total)?;
    }
    zip.finish().map_err(zip_failed)?.flush().map_err(failed)?;
    first_error.take().map_or(Ok(()), |error| Err(failed(error)))
}

/// Opens a bundle: a directory or a zip.
pub fn open(path: &Path, progress: &Progress<'_>) -> Result<Bundle> {
    let is_zip = !fs::metadata(path).map_err(|error| Error::io(path, error))?.is_dir();
    progress.at(0, 2)?;
    let read = if is_zip { read_members(path) } else { read_files(path) };
    let (bytes, elements_bytes) = read.map_err(|error| error.in_file(path))?;
    progress.at(1, 2)?;
    let read = document::read(&bytes, elements_bytes).map_err(|error| error.in_file(path))?;
    progress.at(2, 2)?;
    Ok(Bundle {
        figures: Figures::of(&read.devices),
        devices: read.devices,
        replays: read.replays,
        times: read.times,
        origin: read.origin,
        warnings: read.warnings,
        stacks: read.stacks,
        is_zip,
        path: path.to_owned(),
        elements: read.elements,
    })
}

impl Bundle {
    /// Opens the database for queries, if it is the one that was written with the bundle.
    pub fn store(&self) -> Result<Store> {
        let compare = |digest: &FileDigest| {
            let is_same = *digest == self.elements;
            is_same.then_some(()).ok_or_else(|| Error::bundle(document::OTHER_ELEMENTS))
        };
        let opened = if self.is_zip {
            open_zip(&self.path).and_then(|mut zip| {
                member(&mut zip, ELEMENTS, |file, size| {
                    let mut hashing = Hashing::new(file);
                    Store::read(&mut hashing, size, |hashing| compare(&hashing.digest()))
                })
            })
        } else {
            let path = self.path.join(ELEMENTS);
            open_member(&path).and_then(|file| {
                let digest = FileDigest::of_file(&file).map_err(|error| Error::io(&path, error));
                digest.and_then(|digest| compare(&digest))?;
                Store::open(&path, self.elements.bytes)
            })
        };
        let checked = opened.and_then(|store| store.check_figures(&self.figures).map(|()| store));
        checked.map_err(|error| error.in_file(&self.path))
    }
}

/// The content of `allocations.json` and the length of `elements.db` in a directory.
fn read_files(directory: &Path) -> Result<(Vec<u8>, u64)> {
    let (path, elements) = (directory.join(DOCUMENT), directory.join(ELEMENTS));
    let mut bytes = Vec::new();
    let read = open_member(&path)?.read_to_end(&mut bytes);
    read.map_err(|error| Error::io(&path, error))?;
    let metadata = open_member(&elements)?.metadata();
    Ok((bytes, metadata.map_err(|error| Error::io(&elements, error))?.len()))
}

/// Opens a file in a bundle's directory.
fn open_member(path: &Path) -> Result<File> {
    open_file(path).map_err(|error| match error {
        Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => no_bundle(),
        error => error,
    })
}

/// The same of a zip.
fn read_members(path: &Path) -> Result<(Vec<u8>, u64)> {
    let mut zip = open_zip(path)?;
    let bytes = member(&mut zip, DOCUMENT, |file, size| {
        let mut bytes = Vec::new();
        let count = file.take(size as u64).read_to_end(&mut bytes);
        if count.map_err(|error| damaged_zip(&error))? < size {
            return Err(damaged_zip(&"it is shorter than it says"));
        }
        Ok(bytes)
    })?;
    let elements = zip.0.by_name(ELEMENTS).map_err(|error| without(&error))?;
    Ok((bytes, elements.size()))
}

/// An open zip, and how long it is.
type Zip = (ZipArchive<BufReader<File>>, u64);

fn open_zip(path: &Path) -> Result<Zip> {
    let file = open_file(path)?;
    let length = file.metadata().map_err(|error| Error::io(path, error))?.len();
    // The central directory is read in pieces of a few bytes.
    let zip = ZipArchive::new(BufReader::new(file)).map_err(|error| damaged_zip(&error))?;
    Ok((zip, length))
}

/// Opens a member of a zip, whose size is one that its packed bytes could have, and reads it all.
fn member<T>(
    (zip, length): &mut Zip,
    name: &str,
    read: impl FnOnce(&mut dyn Read, usize) -> Result<T>,
) -> Result<T> {
    let mut member = zip.by_name(name).map_err(|error| without(&error))?;
    let (size, packed) = (member.size(), member.compressed_size());
    let most = match member.compression() {
        CompressionMethod::Stored => packed,
        _ => packed.saturating_mul(MAX_RATIO).max(ALWAYS_ALLOWED),
    };
    if packed > *length || size > most {
        return Err(damaged_zip(&"a size in it is wrong"));
    }
    let size = usize::try_from(size).map_err(|error| damaged_zip(&error))?;
    let content = read(&mut member, size)?;
    finish(&mut member)?;
    Ok(content)
}

fn without(error: &ZipError) -> Error {
    match error {
        ZipError::FileNotFound => no_bundle(),
        error => damaged_zip(error),
    }
}

/// Nothing must follow; that also compares the checksum.
fn finish(file: &mut dyn Read) -> Result<()> {
    match file.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(damaged_zip(&"it is longer than it says")),
        Err(error) => Err(damaged_zip(&error)),
    }
}

fn damaged_zip(reason: &dyn std::fmt::Display) -> Error {
    Error::bundle(format!("the zip is damaged or cut off ({reason}); convert the snapshot again"))
}

fn no_bundle() -> Error {
    Error::bundle(
        "not a snapviewer bundle: it has no allocations.json and elements.db, which `snapviewer convert` makes of a snapshot (`snapviewer pth` reads checkpoints)",
    )
}
