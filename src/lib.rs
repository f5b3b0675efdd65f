//! The core of snapviewer: reads PyTorch memory snapshots, finds the lifetime of every allocation,
//! draws them, and stores them in bundles that open at once. It also reads checkpoints.
//!
//! ```text
//! snap.pickle ─ source ─ pickle ─ snapshot ─ lifetimes ─┬─ timeline ─ raster ─ screen ─▶ pixels
//!                                                       ├─ allocator, analysis ─ recording ─▶ Python
//!                                                       ├─ filter ─ recording ─▶ Python
//!                                                       └─ store + bundle ─▶ snap.zip / directory
//! model.pth ─── checkpoint ─ stats ─▶ Python
//! ```
//!
//! Each arrow is one module with one entry point, and no module reaches back.

pub mod error;

pub mod progress;

pub mod column;
pub mod digest;
pub mod dtype;
mod mapped;
mod named;
pub mod source;
pub mod strided;

pub mod pickle;
pub mod profile;
pub mod snapshot;

pub mod lifetimes;

pub mod allocator;

pub mod analysis;

pub mod timeline;

pub mod raster;

pub mod screen;

pub mod store;

pub mod bundle;

pub mod filter;

pub mod recording;

pub mod stats;

pub mod checkpoint;

pub mod null_device;

#[cfg(feature = "python")]
mod py;
