//! Opens any input; the format is detected from the bytes, never from the name.
//!
//! A pickle or JSON is mapped, not read; what is packed (gzip) or embedded (a `memory_viz` page) is
//! unpacked into memory, within limits.

use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::Path;

use base64::Engine;

use crate::error::{Error, Result};
use crate::mapped::Mapped;
use crate::progress::Progress;

/// The bytes of a snapshot, unpacked.
#[derive(Debug)]
pub struct Source {
    bytes: Bytes,
    /// What the file is: "pickle", "json", "gzip pickle", "html", ….
    pub format: String,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mapped),
    Owned(Vec<u8>),
}

/// The format that the first bytes of an input show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A pickle of protocol 2 or later.
    Pickle,
    /// A gzip stream.
    Gzip,
    /// A zip archive.
    Zip,
    /// A `memory_viz` page.
    Html,
    /// Text that may be JSON.
    Json,
    /// An SQLite database.
    Sqlite,
    /// None of these.
    Unknown,
}

impl Kind {
    /// Detects the format from the first bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
        match (bytes, text) {
            ([0x80, 2..=5, ..], _) => Self::Pickle,
            ([0x1f, 0x8b, ..], _) => Self::Gzip,
            ([b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..], _) => Self::Zip,
            ([b'S', b'Q', b'L', b'i', b't', b'e', b' ', ..], _) => Self::Sqlite,
            (_, [b'<', ..]) => Self::Html,
            (_, [b'{' | b'[', ..]) => Self::Json,
            _ => Self::Unknown,
        }
    }
}

/// gzip makes real snapshots 10 to 40 times smaller. More than this is a bomb, or should be unpacked
/// by somebody who knows that it is not.
pub(crate) const MAX_RATIO: u64 = 150;
/// Small files may have any ratio.
pub(crate) const ALWAYS_ALLOWED: u64 = 64 << 20;

impl Source {
    /// The snapshot's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }

    /// Whether the bytes are those of the file itself.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        matches!(self.bytes, Bytes::Mapped(_))
    }

    /// Maps the file's pages before they are needed: to be called on another thread than the one
    /// that reads. (Saves the reader 5 to 10 % of its time.)
    pub fn touch(&self) {
        const WINDOW: usize = 4 << 20;
        let Bytes::Mapped(map) = &self.bytes else { return };
        #[cfg(target_os = "linux")]
        for from in (0..map.len()).step_by(WINDOW) {
            let length = WINDOW.min(map.len() - from);
            // Kernels before 5.14 do not know it, and the reader does it all itself.
            if map.map().advise_range(memmap2::Advice::PopulateRead, from, length).is_err() {
                return;
            }
        }
    }

    /// Why what was read is worthless, if the file was written to or cut short meanwhile.
    pub(crate) fn check_unchanged(&self, path: &Path) -> Result<()> {
        match &self.bytes {
            Bytes::Mapped(map) if map.has_changed() => Err(Error::io(path, changed())),
            _ => Ok(()),
        }
    }

    /// Opens a file.
    pub fn open(path: &Path, progress: &Progress<'_>) -> Result<Self> {
        let mapped = map(&open_file(path)?, path)?;
        Self::from_bytes(Bytes::Mapped(mapped), progress)
    }

    /// Unpacks bytes that are in memory already.
    pub fn from_vec(bytes: Vec<u8>) -> Result<Self> {
        Self::from_bytes(Bytes::Owned(bytes), &Progress::none())
    }

    fn from_bytes(bytes: Bytes, progress: &Progress<'_>) -> Result<Self> {
        let mut source = Self { bytes, format: String::new() };
        match Kind::of(source.bytes()) {
            Kind::Gzip => {
                source.bytes = Bytes::Owned(gunzip(source.bytes(), progress)?);
                "gzip ".clone_into(&mut source.format);
            }
            Kind::Html => {
                source.bytes = Bytes::Owned(from_page(source.bytes())?);
                "html ".clone_into(&mut source.format);
            }
            _ => {}
        }
        source.format += match (source.bytes(), Kind::of(source.bytes())) {
            (_, Kind::Pickle) => "pickle",
            (_, Kind::Json) => "json",
            ([], _) => return fail("the file is empty"),
            (_, Kind::Gzip) => return fail("it is packed twice; unpack it once and try again"),
            (_, Kind::Zip) => return fail("it is a zip archive, not a snapshot"),
            ([0x80, ..], _) => return fail("it is a pickle of an unknown protocol"),
            (_, Kind::Sqlite) => {
                return fail("it is a database; name the bundle's directory instead");
            }
            _ => {
                return fail(
                    "it is neither a pickle nor JSON, nor gzip or a memory_viz page of these",
                );
            }
        };
        Ok(source)
    }
}

fn fail<T>(reason: &'static str) -> Result<T> {
    Err(Error::malformed(reason, 0))
}

/// Opens a regular file for reading, or a link to one. Anything else is refused before it is opened:
/// a pipe would wait for a writer, and a device may never end.
pub(crate) fn open_file(path: &Path) -> Result<File> {
    let failed = |source| Error::io(path, source);
    let check = |metadata: Metadata| {
        if metadata.is_dir() {
            return Err(failed(ErrorKind::IsADirectory.into()));
        }
        let odd = "not a regular file; save it as one first";
        if metadata.is_file() { Ok(()) } else { Err(failed(std::io::Error::other(odd))) }
    };
    check(fs::metadata(path).map_err(failed)?)?;
    let mut options = File::options();
    options.read(true);
    // Should it have become a pipe meanwhile.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path).map_err(failed)?;
    check(file.metadata().map_err(failed)?)?;
    Ok(file)
}

/// Maps a file into memory.
pub(crate) fn map(file: &File, path: &Path) -> Result<Mapped> {
    Mapped::new(file).map_err(|source| Error::io(path, source))
}

/// Why a file was not read.
pub(crate) fn changed() -> std::io::Error {
    std::io::Error::other("the file changed while it was being read; try again when it is complete")
}

fn gunzip(packed: &[u8], progress: &Progress<'_>) -> Result<Vec<u8>> {
    let mut reader = flate2::bufread::GzDecoder::new(packed);
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 1 << 18];
    loop {
        let at = packed.len() - reader.get_ref().len();
        let count = reader.read(&mut chunk).map_err(|error| {
            Error::malformed(format!("the gzip stream is damaged or cut off: {error}"), at)
        })?;
        if count == 0 {
            return Ok(bytes);
        }
        bytes
            .try_reserve(count)
            .map_err(|_| Error::malformed("it unpacks to more than the memory has room for", at))?;
        bytes.extend_from_slice(&chunk[..count]);
        if !matches!(
            Kind::of(&bytes[..bytes.len().min(64)]),
            Kind::Pickle | Kind::Json | Kind::Html
        ) {
            return Err(Error::malformed("what is packed is neither a pickle nor JSON", at));
        }
        // Of what was read so far, so that most bombs end early.
        let limit = ((packed.len() - reader.get_ref().len()) as u64).saturating_mul(MAX_RATIO);
        if bytes.len() as u64 > limit.max(ALWAYS_ALLOWED) {
            let reason = format!(
                "it unpacks to more than {MAX_RATIO} times its size; \
                if you trust it, unpack it with gunzip first"
            );
            return Err(Error::malformed(reason, at));
        }
        progress.at(at as u64, packed.len() as u64)?;
    }
}

/// The snapshot inside a page that `torch.cuda._memory_viz` made: JSON with the pickle in base64.
fn from_page(page: &[u8]) -> Result<Vec<u8>> {
    const KEY: &[u8] = b"\"base64\":";
    let Some(at) = page.windows(KEY.len()).position(|window| window == KEY) else {
        return fail("the page has no snapshot inside");
    };
    let from = at + KEY.len();
    let rest = page[from..].trim_ascii_start();
    let start = page.len() - rest.len() + 1;
    let end = rest.iter().skip(1).position(|&byte| byte == b'"');
    let (Some(b'"'), Some(length)) = (rest.first(), end) else {
        return Err(Error::malformed("the snapshot in the page is cut off", from));
    };
    base64::engine::general_purpose::STANDARD.decode(&page[start..start + length]).map_err(
        |error| Error::malformed(format!("the snapshot in the page is damaged: {error}"), start),
    )
}
