//! Pickles that are nearly right, so that runs of similar events come up.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| snapviewer_fuzz::check(&snapviewer_fuzz::pickle(data)));
