//! Bundles whose columns were changed number by number.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| snapviewer_fuzz::columns::check(data));
