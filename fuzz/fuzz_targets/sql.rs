//! Any text at all, as a query.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| snapviewer_fuzz::text::check_sql(text));
