//! One file of a checkpoint, to be looked at without loading it.
//!
//! What is needed is read through the file's handle: that leaves no pages of the file in the process's
//! memory, so that 100,000 headers or a tensor of 100 GiB need no more than a buffer, and it works
//! where the process may not have as much address space as the file has bytes. Only what is read as a
//! stream of pickles (the formats before zip), or is itself very long, is mapped.
//!
//! # Cost
//!
//! Opening a file of any size takes a few system calls and no memory.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::mapped::Mapped;
use crate::source;

/// One file of a checkpoint.
#[derive(Debug)]
pub struct CheckpointFile {
    path: PathBuf,
    content: Content,
}

#[derive(Debug)]
enum Content {
    OnDisk {
        file: File,
        bytes: u64,
        /// Made on demand.
        map: OnceLock<Mapped>,
    },
    Owned(Vec<u8>),
}

/// What is not longer is read into memory rather than mapped.
const MAX_READ: u64 = 64 << 20;

impl CheckpointFile {
    /// Opens and maps a file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = source::open_file(path)?;
        let bytes = file.metadata().map_err(|error| Error::io(path, error))?.len();
        let content = Content::OnDisk { file, bytes, map: OnceLock::new() };
        Ok(Self { path: path.to_owned(), content })
    }

    /// Takes bytes that are in memory already for a file of this name.
    #[must_use]
    pub fn from_vec(name: impl Into<PathBuf>, bytes: Vec<u8>) -> Self {
        Self { path: name.into(), content: Content::Owned(bytes) }
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All bytes, mapped. Looking at them makes them part of the process's memory for a while.
    pub fn map(&self) -> Result<&[u8]> {
        match &self.content {
            Content::Owned(bytes) => Ok(bytes),
            Content::OnDisk { file, map, .. } => {
                if let Some(mapped) = map.get() {
                    return Ok(mapped);
                }
                let mapped = source::map(file, &self.path)?;
                Ok(map.get_or_init(|| mapped))
            }
        }
    }

    /// Fails if the file was mapped, and written to or cut short since.
    pub fn check_unchanged(&self) -> Result<()> {
        match &self.content {
            Content::OnDisk { map, .. } if map.get().is_some_and(Mapped::has_changed) => {
                Err(Error::io(&self.path, source::changed()))
            }
            _ => Ok(()),
        }
    }

    /// How many bytes the file has.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.content {
            Content::Owned(bytes) => bytes.len() as u64,
            Content::OnDisk { bytes, .. } => *bytes,
        }
    }

    /// Some of the bytes; an error if the file does not have them.
    pub fn part(&self, start: u64, bytes: u64) -> Result<Cow<'_, [u8]>> {
        self.check(start, bytes)?;
        if matches!(self.content, Content::OnDisk { .. }) && bytes <= MAX_READ {
            let mut into = vec![0; bytes as usize];
            self.read_at(start, &mut into)?;
            return Ok(Cow::Owned(into));
        }
        let (from, length) = (start as usize, bytes as usize);
        let part = self.map()?.get(from..).and_then(|rest| rest.get(..length));
        part.map(Cow::Borrowed).ok_or_else(|| self.too_short(start, bytes))
    }

    fn check(&self, start: u64, bytes: u64) -> Result<()> {
        match start.checked_add(bytes) {
            Some(end) if end <= self.len() => Ok(()),
            _ => Err(self.too_short(start, bytes)),
        }
    }

    /// Fills `into` with the bytes from `at` on; an error if the file is too short.
    pub fn read_at(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.check(at, into.len() as u64)?;
        match &self.content {
            Content::Owned(bytes) => into.copy_from_slice(&bytes[at as usize..][..into.len()]),
            Content::OnDisk { file, .. } => {
                read_exact_at(file, at, into).map_err(|error| Error::io(&self.path, error))?;
            }
        }
        Ok(())
    }

    /// Reads some of the bytes as a stream, without mapping them.
    #[must_use]
    pub fn window(&self, start: u64, bytes: u64) -> Window<'_> {
        Window { file: self, at: start, end: start.saturating_add(bytes) }
    }

    /// Reads deflated bytes as the stream of what they unpack to. It is for the caller to stop where
    /// the archive says that it ends: a bomb never does.
    #[must_use]
    pub fn inflate(
        &self,
        start: u64,
        packed_bytes: u64,
    ) -> flate2::read::DeflateDecoder<Window<'_>> {
        flate2::read::DeflateDecoder::new(self.window(start, packed_bytes))
    }

    fn too_short(&self, start: u64, bytes: u64) -> Error {
        let has = self.len();
        let reason = format!("it is cut off: {bytes} bytes are needed here, the file has {has}");
        Error::checkpoint(reason, start)
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, at: u64, into: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, into, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut at: u64, mut into: &mut [u8]) -> io::Result<()> {
    while !into.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, into, at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                into = &mut into[count..];
                at += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A stretch of a file, read from its beginning to its end.
#[derive(Debug)]
pub struct Window<'f> {
    file: &'f CheckpointFile,
    at: u64,
    end: u64,
}

impl Read for Window<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let count = into.len().min(rest);
        self.file.read_at(self.at, &mut into[..count]).map_err(io::Error::other)?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(bytes: &[u8]) -> [(Option<tempfile::NamedTempFile>, CheckpointFile); 2] {
        let on_disk = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(on_disk.path(), bytes).unwrap();
        let opened = CheckpointFile::open(on_disk.path()).unwrap();
        [(Some(on_disk), opened), (None, CheckpointFile::from_vec("it", bytes.to_vec()))]
    }

    #[test]
    fn a_file_in_memory_and_one_on_disk_read_the_same() {
        for (_kept, file) in both(b"0123456789") {
            let mut into = [0; 4];

            file.read_at(3, &mut into).unwrap();

            assert_eq!(&into, b"3456");
            assert_eq!(*file.part(3, 4).unwrap(), *b"3456");
            assert_eq!(file.map().unwrap(), b"0123456789");
            assert_eq!(file.len(), 10);
            let mut text = String::new();
            file.window(6, 3).read_to_string(&mut text).unwrap();
            assert_eq!(text, "678");
        }
    }

    #[test]
    fn reading_beyond_the_end_is_an_error_that_says_how_much_there_is() {
        for (_kept, file) in both(b"0123456789") {
            for at in [8, 10, 11, u64::MAX - 1] {
                let error = file.read_at(at, &mut [0; 4]).unwrap_err().to_string();

                assert!(error.contains("4 bytes are needed here, the file has 10"), "{error}");
                assert!(file.part(at, 4).is_err());
                assert!(file.window(at, 4).read_to_end(&mut Vec::new()).is_err());
            }
        }
    }

    #[test]
    fn an_empty_file_opens() {
        for (_kept, file) in both(b"") {
            assert_eq!(file.len(), 0);
            file.read_at(0, &mut []).unwrap();
        }
    }

    #[test]
    fn deflated_bytes_are_read_as_what_they_unpack_to() {
        let text = b"tensor ".repeat(10_000);
        let mut packed = Vec::new();
        flate2::read::DeflateEncoder::new(&text[..], flate2::Compression::fast())
            .read_to_end(&mut packed)
            .unwrap();

        for (_kept, file) in both(&packed) {
            let mut unpacked = Vec::new();
            file.inflate(0, packed.len() as u64).read_to_end(&mut unpacked).unwrap();

            assert_eq!(unpacked, text);
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_a_file_is_refused_without_waiting_for_it() {
        let error = CheckpointFile::open(Path::new("/dev/null")).unwrap_err().to_string();

        assert_eq!(error, "not a regular file; save it as one first: /dev/null");
    }
}
