//! Questions about a recording: one question a file, answered here for every door.

pub mod frames;
pub mod paths;
pub mod tree;
