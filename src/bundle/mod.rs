//! A converted snapshot: `allocations.json` and `elements.db`, in a directory or a zip.
//!
//! The first is what drawing needs ([`document`]), the second answers queries ([`crate::store`]).
//! Unpacking a zip gives the directory.
//!
//! # Cost
//!
//! At 1M events: written in 0.15 s on two cores, opened in 30 ms, 15 bytes an event, of which 11 are
//! rows of allocations. The database is stored in the zip as it is: deflated it would take a third
//! of the room, and 30 to 80 ms before the first query is answered.

mod atomic_write;
mod document;
mod restore;

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::error::{Error, Result};
use crate::lifetimes::Lifetimes;
use crate::progress::Progress;
use crate::snapshot::Snapshot;
use crate::store::{self, Store, columns};
use atomic_write::AtomicWrite;

/// The file that drawing needs.
pub const DOCUMENT: &str = "allocations.json";
/// The file that queries need.
pub const ELEMENTS: &str = "elements.db";

/// The name of the zip until it is renamed.
const ARCHIVE: &str = "bundle.zip";

/// Bundles that were zipped again are 2 to 5 times smaller. More than this is a bomb.
const MAX_RATIO: u64 = 32;

/// An open bundle.
#[derive(Debug)]
pub struct Bundle {
    /// The devices, as they were when it was written.
    pub devices: Vec<Lifetimes>,
    /// For each device, the time of each event in Unix microseconds; empty if none was recorded.
    pub times: Vec<Vec<u64>>,
    /// What the snapshot was: "pickle", "gzip pickle", "json", ….
    pub format: String,
    /// What was not as expected in the snapshot.
    pub warnings: Vec<String>,
    /// How many stacks there are; every stack's id is below.
    pub stacks: u32,
    /// Whether it is a zip rather than a directory.
    pub is_zip: bool,
    path: PathBuf,
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
    source_format: &str,
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
    let staged = AtomicWrite::new(output)?;
    let filled = fill(&staged, snapshot, lifetimes, source_format, is_zip, progress);
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
    source_format: &str,
    is_zip: bool,
    progress: &Progress<'_>,
) -> Result<()> {
    let elements = staged.file(ELEMENTS);
    let document = std::thread::scope(|scope| {
        let (sender, chunks) = mpsc::channel();
        let packing = scope.spawn(move || {
            columns::pack_events(snapshot, lifetimes, &sender);
            drop(sender);
            document::write(snapshot, lifetimes, source_format)
        });
        let storing = &progress.part(0.0, 0.9);
        store::write::write(&elements, snapshot, lifetimes, source_format, &chunks, storing)?;
        drop(chunks);
        packing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
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
    let zip_failed = |error: zip::result::ZipError| Error::io(path, error.into());
    let mut from = File::open(elements).map_err(failed)?;
    let total = from.metadata().map_err(failed)?.len();
    let options = |method, size: u64| {
        SimpleFileOptions::default()
            .compression_method(method)
            .compression_level((method == CompressionMethod::Deflated).then_some(1))
            .large_file(size >= u64::from(u32::MAX))
    };
    let file = File::create(path).map_err(failed)?;
    let mut zip = ZipWriter::new(BufWriter::with_capacity(1 << 20, file));
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
    zip.finish().map_err(zip_failed)?.flush().map_err(failed)
}

/// Opens a bundle: a directory or a zip.
pub fn open(path: &Path, progress: &Progress<'_>) -> Result<Bundle> {
    let is_zip = !fs::metadata(path).map_err(|error| Error::io(path, error))?.is_dir();
    progress.at(0, 2)?;
    let bytes = if is_zip { read_member(path, DOCUMENT) } else { read_file(path) };
    let bytes = bytes.map_err(|error| error.in_file(path))?;
    progress.at(1, 2)?;
    let read = document::read(&bytes).map_err(|error| error.in_file(path))?;
    progress.at(2, 2)?;
    Ok(Bundle {
        devices: read.devices,
        times: read.times,
        format: read.source_format,
        warnings: read.warnings,
        stacks: read.stacks,
        is_zip,
        path: path.to_owned(),
    })
}

impl Bundle {
    /// Opens the database for queries.
    pub fn store(&self) -> Result<Store> {
        if !self.is_zip {
            return Store::open(&self.path.join(ELEMENTS));
        }
        let opened = member(&self.path, ELEMENTS, |mut file, size| {
            let store = Store::read(&mut file, size)?;
            finish(file)?;
            Ok(store)
        });
        opened.map_err(|error| error.in_file(&self.path))
    }
}

fn read_file(directory: &Path) -> Result<Vec<u8>> {
    let path = directory.join(DOCUMENT);
    fs::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => no_bundle(),
        _ => Error::io(&path, error),
    })
}

fn read_member(path: &Path, name: &str) -> Result<Vec<u8>> {
    member(path, name, |file, size| {
        let mut bytes = Vec::new();
        let count = file.take(size as u64).read_to_end(&mut bytes);
        if count.map_err(|error| damaged_zip(&error))? < size {
            return Err(damaged_zip(&"it is shorter than it says"));
        }
        finish(file)?;
        Ok(bytes)
    })
}

/// Opens a member of a zip, whose size is one that its packed bytes could have.
fn member<T>(
    path: &Path,
    name: &str,
    read: impl FnOnce(&mut dyn Read, usize) -> Result<T>,
) -> Result<T> {
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    let length = file.metadata().map_err(|error| Error::io(path, error))?.len();
    let mut zip = ZipArchive::new(file).map_err(|error| damaged_zip(&error))?;
    let mut member = match zip.by_name(name) {
        Ok(member) => member,
        Err(zip::result::ZipError::FileNotFound) => return Err(no_bundle()),
        Err(error) => return Err(damaged_zip(&error)),
    };
    let ratio = match member.compression() {
        CompressionMethod::Stored => 1,
        _ => MAX_RATIO,
    };
    let (size, packed) = (member.size(), member.compressed_size());
    if packed > length || size > packed.saturating_mul(ratio) {
        return Err(damaged_zip(&"a size in it is wrong"));
    }
    let size = usize::try_from(size).map_err(|error| damaged_zip(&error))?;
    read(&mut member, size)
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
