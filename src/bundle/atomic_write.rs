//! Atomic writes: everything is written into a temporary directory, which is then renamed.
//!
//! The directory is `.<name>.<process>.<random>.part` beside the output. It is removed when the work
//! ends or fails. A process that is killed leaves it behind; the next write to the same output removes
//! it once that process is gone, or after a day where that cannot be known (process numbers are used
//! again, and another machine may share the directory).

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::bundle::{DOCUMENT, ELEMENTS};
use crate::error::{Error, Result};

/// What was left behind and is older is removed, whatever process has its number now.
const LITTER_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// A directory to write in; removed when dropped.
pub(super) struct AtomicWrite {
    path: PathBuf,
}

impl Drop for AtomicWrite {
    fn drop(&mut self) {
        // If that fails, the next one that writes to the same output tries again.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl AtomicWrite {
    /// Creates the directory beside `output`, and removes what killed processes left.
    pub(super) fn new(output: &Path) -> Result<Self> {
        let (parent, prefix) = (parent(output), prefix(output)?);
        remove_litter(parent, &prefix);
        let random = RandomState::new().build_hasher().finish();
        let path = parent.join(format!("{prefix}{}.{random:016x}{SUFFIX}", std::process::id()));
        fs::create_dir(&path).map_err(|error| Error::io(output, error))?;
        Ok(Self { path })
    }

    /// A file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes a file of it the output.
    pub(super) fn place_file(&self, name: &str, output: &Path, force: bool) -> Result<()> {
        let from = self.file(name);
        sync(&from)?;
        if force {
            fs::rename(&from, output).map_err(|error| Error::io(output, error))?;
        } else {
            rename_new(&from, output)?;
        }
        sync_parent(output);
        Ok(())
    }

    /// Makes the whole directory the output.
    pub(super) fn place_all(self, output: &Path, force: bool) -> Result<()> {
        for name in [DOCUMENT, ELEMENTS] {
            sync(&self.file(name))?;
        }
        sync_directory(&self.path);
        if !force || fs::symlink_metadata(output).is_err() {
            rename_new(&self.path, output)?;
        } else if exchange(&self.path, output).is_ok() {
            // The temporary directory is the old one now. Files may have been added to it meanwhile.
            if let Err(error) = check_replaceable(&self.path, false) {
                let _ = exchange(&self.path, output);
                return Err(error);
            }
        } else {
            let old = Self::new(output)?;
            let away = old.file("old");
            fs::rename(output, &away).map_err(|error| Error::io(output, error))?;
            let checked = check_replaceable(&away, false);
            let renamed = checked.and_then(|()| {
                fs::rename(&self.path, output).map_err(|error| Error::io(output, error))
            });
            if let Err(error) = renamed {
                // Should this fail too, the old one must not go away with `old`.
                if fs::rename(&away, output).is_err() {
                    std::mem::forget(old);
                }
                return Err(error);
            }
        }
        sync_parent(output);
        Ok(())
    }
}

const SUFFIX: &str = ".part";

fn parent(output: &Path) -> &Path {
    output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// How the names of all temporary directories of this output begin.
fn prefix(output: &Path) -> Result<String> {
    let name = output.file_name().ok_or_else(|| {
        Error::io(output, io::Error::new(io::ErrorKind::InvalidInput, "the output needs a name"))
    })?;
    // Names have 255 bytes at most, and ours is longer. Two outputs may share a prefix: no harm.
    let name: String = name.to_string_lossy().chars().take(50).collect();
    Ok(format!(".{name}."))
}

fn remove_litter(parent: &Path, prefix: &str) {
    // What cannot be removed is no reason to fail.
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(middle) =
            name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_suffix(SUFFIX))
        else {
            continue;
        };
        let Some((process, random)) = middle.split_once('.') else { continue };
        let is_ours = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Ok(process) = process.parse::<u32>() else { continue };
        if is_ours && (is_gone(process) || is_old(&entry)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_old(entry: &fs::DirEntry) -> bool {
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > LITTER_AGE))
}

/// Whether there is certainly no such process.
#[cfg(unix)]
fn is_gone(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    process.is_none_or(|process| {
        rustix::process::test_kill_process(process) == Err(rustix::io::Errno::SRCH)
    })
}

#[cfg(not(unix))]
fn is_gone(_process: u32) -> bool {
    false
}

/// Renames to a name that must be free.
fn rename_new(from: &Path, output: &Path) -> Result<()> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, from, CWD, output, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => return Err(Error::Exists { path: output.to_owned() }),
            // Not every file system can; then look first.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            Err(error) => return Err(Error::io(output, error.into())),
        }
    }
    if fs::symlink_metadata(output).is_ok() {
        return Err(Error::Exists { path: output.to_owned() });
    }
    fs::rename(from, output).map_err(|error| Error::io(output, error))
}

/// Swaps two names in one step, where the system can.
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?;
        Ok(())
    }
    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    {
        let _ = (one, other);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Refuses to replace anything but a file by a file, or a bundle or nothing by a directory.
pub(super) fn check_replaceable(output: &Path, is_zip: bool) -> Result<()> {
    let metadata = match fs::metadata(output) {
        Ok(metadata) => metadata,
        Err(_) if fs::symlink_metadata(output).is_err() => return Ok(()),
        Err(error) => return Err(Error::io(output, error)),
    };
    if is_zip && metadata.is_file() {
        return Ok(());
    }
    let reason = match (is_zip, metadata.is_dir()) {
        (true, _) => "the output is not a file, so a zip cannot replace it",
        (false, false) => "the output is a file; to replace it, give it a name that ends in .zip",
        (false, true) => {
            let entries = fs::read_dir(output).map_err(|error| Error::io(output, error))?;
            let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
            let names =
                names.collect::<io::Result<Vec<_>>>().map_err(|error| Error::io(output, error))?;
            if names.iter().all(|name| name == DOCUMENT || name == ELEMENTS) {
                return Ok(());
            }
            "the output is a directory with other files; choose another name"
        }
    };
    Err(Error::bundle(reason).in_file(output))
}

fn sync(path: &Path) -> Result<()> {
    let synced = File::options().write(true).open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| Error::io(path, error))
}

fn sync_parent(output: &Path) {
    sync_directory(parent(output));
}

/// Flushes the names to disk. Systems that cannot do so for a directory do it by themselves.
fn sync_directory(path: &Path) {
    let _ = File::open(path).and_then(|directory| directory.sync_all());
}
