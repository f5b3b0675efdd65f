//! Errors, whose messages are sentences that a user can act on.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

/// An error of the core.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to read or write a file.
    #[error("{}: {}", plainly(source), path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// The bytes are not a snapshot that we understand.
    #[error("not a PyTorch memory snapshot: {reason} (at byte {offset})")]
    Malformed {
        /// What is wrong with them.
        reason: Cow<'static, str>,
        /// Where in the (unpacked) bytes.
        offset: u64,
    },

    /// The bytes are not a checkpoint that we understand, or one that we trust.
    #[error("{reason}{}", at(*offset))]
    Checkpoint {
        /// What is wrong with them.
        reason: Cow<'static, str>,
        /// Where in the file.
        offset: u64,
    },

    /// The snapshot does not have the requested device.
    #[error("device {device} is not in this snapshot; it has: {}", list(available))]
    NoDevice {
        /// The requested device.
        device: i32,
        /// The devices that are there.
        available: Vec<i32>,
    },

    /// A bundle (`allocations.json` and `elements.db`) cannot be opened.
    #[error("{reason}")]
    Bundle {
        /// What is wrong with it, and what would help.
        reason: Cow<'static, str>,
    },

    /// The output exists already.
    #[error("the output exists already; choose another name, or set `force` to replace it: {}", path.display())]
    Exists {
        /// The output.
        path: PathBuf,
    },

    /// An argument is not valid.
    #[error("{reason}")]
    Argument {
        /// What is wrong with it, and what is valid.
        reason: String,
    },

    /// A query was refused or failed.
    #[error("query: {reason}")]
    Query {
        /// The database's error.
        reason: String,
    },

    /// A filter is not understood, or asks for what the file does not have.
    #[error("filter: {reason}")]
    Filter {
        /// What is wrong with it, and what to write instead.
        reason: String,
    },

    /// The bytes are not a profiler's trace.
    #[error("not a PyTorch profiler trace: {reason}")]
    Profile {
        /// What is wrong.
        reason: String,
    },

    /// A picture cannot be put into a window.
    #[error("{reason}")]
    Screen {
        /// Why not.
        reason: Cow<'static, str>,
    },

    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,

    /// Any of these, with the file that it happened in.
    #[error("{error}: {}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What happened.
        error: Box<Error>,
    },
}

/// `T`, or an [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The bytes are wrong, for this reason, at this offset.
    pub fn malformed(reason: impl Into<Cow<'static, str>>, offset: usize) -> Self {
        Self::Malformed { reason: reason.into(), offset: offset as u64 }
    }

    /// The checkpoint is wrong, for this reason, at this offset.
    pub fn checkpoint(reason: impl Into<Cow<'static, str>>, offset: u64) -> Self {
        Self::Checkpoint { reason: reason.into(), offset }
    }

    /// The bundle is wrong, for this reason.
    pub fn bundle(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Bundle { reason: reason.into() }
    }

    /// A caller's argument is wrong, for this reason.
    pub fn argument(reason: impl Into<String>) -> Self {
        Self::Argument { reason: reason.into() }
    }

    /// The filter is wrong, for this reason.
    pub fn filter(reason: impl Into<String>) -> Self {
        Self::Filter { reason: reason.into() }
    }

    /// The bytes are not a profiler's trace, for this reason.
    pub fn profile(reason: impl Into<String>) -> Self {
        Self::Profile { reason: reason.into() }
    }

    /// Pictures cannot be put into a window, for this reason.
    pub fn screen(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Screen { reason: reason.into() }
    }

    /// The system refused something about this path.
    #[must_use]
    pub fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// Names the file, unless the error does so already or is not about it.
    #[must_use]
    pub fn in_file(self, path: &Path) -> Self {
        match self {
            Self::Io { .. }
            | Self::Exists { .. }
            | Self::Query { .. }
            | Self::Argument { .. }
            | Self::Filter { .. }
            | Self::Screen { .. }
            | Self::Cancelled
            | Self::InFile { .. } => self,
            error => Self::InFile { path: path.to_owned(), error: Box::new(error) },
        }
    }
}

/// The system's message, without the error number.
fn plainly(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// The offset as the end of a message; empty for 0, which stands for the whole file.
fn at(offset: u64) -> String {
    if offset == 0 { String::new() } else { format!(" (at byte {offset})") }
}

fn list(devices: &[i32]) -> String {
    match devices {
        [] => "none".to_owned(),
        some => some.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}
