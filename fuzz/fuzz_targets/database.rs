//! Bundles whose database was changed in a few places.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| snapviewer_fuzz::database::check(data));
