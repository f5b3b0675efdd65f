//! Digests, which tie the files of a bundle to each other and to the snapshot that they were made of.
//!
//! BLAKE3, because a bundle's database is hashed before the first lookup: 13 MB, at 1M events, take
//! 5 ms, and no file with other content has the same digest. A checksum such as CRC-32 could be met by
//! an edited file.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

/// The length and the digest of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// How long it is.
    pub bytes: u64,
    /// The BLAKE3 digest of its content, in hexadecimal.
    pub blake3: String,
}

/// What a bundle is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// What the snapshot was: "pickle", "gzip pickle", "json", ….
    pub format: String,
    /// Its file.
    pub file: FileDigest,
}

impl FileDigest {
    /// Of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, blake3: hex(bytes) }
    }

    /// Of a file, from where it is to the end.
    pub fn of_file(file: &File) -> std::io::Result<Self> {
        Self::of_file_unless(file, &AtomicBool::new(false))
    }

    /// The same, until another thread sets the flag: then it fails.
    pub fn of_file_unless(file: &File, is_stopped: &AtomicBool) -> std::io::Result<Self> {
        let mut from = Hashing::new(file);
        let mut buffer = vec![0; 1 << 18];
        while from.read(&mut buffer)? > 0 {
            if is_stopped.load(Ordering::Relaxed) {
                return Err(ErrorKind::Interrupted.into());
            }
        }
        Ok(from.digest())
    }
}

/// The digest of bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Passes bytes through from a reader and computes their digest.
pub(crate) struct Hashing<R> {
    from: R,
    hasher: blake3::Hasher,
}

impl<R: Read> Hashing<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, hasher: blake3::Hasher::new() }
    }

    /// The digest of what was read so far.
    pub(crate) fn digest(&self) -> FileDigest {
        let blake3 = self.hasher.finalize().to_hex().to_string();
        FileDigest { bytes: self.hasher.count(), blake3 }
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = loop {
            match self.from.read(into) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                count => break count?,
            }
        };
        self.hasher.update(&into[..count]);
        Ok(count)
    }
}
