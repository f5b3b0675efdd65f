//! Reads snapshot files, and converts them into bundles.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::bundle;
use crate::digest::{FileDigest, Origin};
use crate::error::{Error, Result};
use crate::lifetimes::{self, Lifetimes};
use crate::progress::Progress;
use crate::snapshot::Snapshot;
use crate::source::{Kind, Source, open_file};

/// Whether a path is a converted snapshot: a directory, or a zip by its first bytes.
pub fn is_bundle(path: &Path) -> Result<bool> {
    let failed = |error| Error::io(path, error);
    let metadata = fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Ok(true);
    }
    let mut start = Vec::new();
    open_file(path)?.take(4).read_to_end(&mut start).map_err(failed)?;
    Ok(Kind::of(&start) == Kind::Zip)
}

/// Smaller files are read before another thread has begun.
const WORTH_TOUCHING: usize = 8 << 20;

/// Reads a snapshot file: its content, the lifetimes of its allocations, and its format.
pub fn read(path: &Path, progress: &Progress<'_>) -> Result<(Snapshot, Vec<Lifetimes>, String)> {
    let named = |error: Error| error.in_file(path);
    // A plain file has nothing to unpack, and the whole bar for reading.
    let source = Source::open(path, &progress.part(0.0, 0.3)).map_err(named)?;
    let from = if source.is_mapped() { 0.0 } else { 0.3 };
    let reading = &progress.part(from, 1.0);
    let read = std::thread::scope(|scope| {
        if source.bytes().len() > WORTH_TOUCHING {
            // Without a thread for it, it is not done.
            let _ = std::thread::Builder::new().spawn_scoped(scope, || source.touch());
        }
        lifetimes::read(source.bytes(), reading)
    });
    // If so, both the snapshot and an error would be of bytes that are no longer there.
    source.check_unchanged(path)?;
    let (snapshot, lifetimes) = read.map_err(named)?;
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
        // Reports what is wrong with it, if it is not a bundle.
        bundle::open(input, &Progress::none())?;
        let reason = "it is a bundle already; info and query take it as it is";
        return Err(Error::bundle(reason).in_file(input));
    }
    let has_failed = AtomicBool::new(false);
    let (read, file) = std::thread::scope(|scope| {
        let file = scope.spawn(|| {
            let digest = FileDigest::of_file_unless(&open_file(input)?, &has_failed);
            digest.map_err(|error| Error::io(input, error))
        });
        let read = read(input, &progress.part(0.0, 0.3));
        has_failed.store(read.is_err(), Ordering::Relaxed);
        (read, file.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let (mut snapshot, mut lifetimes, format) = read?;
    let origin = Origin { format, file: file? };
    if let Some(device) = device {
        snapshot.keep_device(device).map_err(|error| error.in_file(input))?;
        lifetimes.retain(|one| one.device == device);
    }
    bundle::write(&snapshot, &lifetimes, &origin, output, force, &progress.part(0.3, 1.0))
}
