//! Any bytes at all, as a checkpoint: an archive, a stream, a tar, safetensors, an exported program.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| snapviewer_fuzz::checkpoint::check(data.to_vec()));
