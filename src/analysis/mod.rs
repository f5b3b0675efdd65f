//! Questions about the memory of one device, one a file.
//!
//! [`groups`] adds up what is alive at an event by any of the [`keys`]; [`peaks`] finds the highest
//! moments and what must go to get below a limit; [`categories`] infers what allocations are for;
//! [`steps`] cuts the trace into training steps and phases; [`leaks`] finds what grows from step to
//! step; [`tree`] weighs the call [`paths`]. All are pure functions of [`Facts`] or of the stacks, which
//! a snapshot and the bundle made of it both give.

pub mod categories;
pub mod facts;
pub mod frames;
pub mod groups;
pub mod keys;
pub mod leaks;
pub mod modules;
pub mod paths;
pub mod peaks;
pub mod phases;
pub mod steps;
pub mod tree;

pub use facts::{Facts, SegmentRange, Tags};
pub use groups::{Group, Groups};
pub use keys::{GroupBy, Keys};
