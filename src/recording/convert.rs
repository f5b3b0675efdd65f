//! Reads snapshot files, and converts them into bundles.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::bundle;
use crate::error::{Error, Result};
use crate::lifetimes::{self, Lifetimes};
use crate::progress::Progress;
use crate::snapshot::Snapshot;
use crate::source::{Kind, Source};

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
        // Reports what is wrong with it, if it is not a bundle.
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
