//! Any text at all, as a filter.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| snapviewer_fuzz::text::check_filter(text));
