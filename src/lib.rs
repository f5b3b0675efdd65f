//! The core of snapviewer.
pub mod column;
pub mod error;
pub mod lifetimes;
pub mod pickle;
pub mod progress;
pub mod snapshot;
pub mod source;
