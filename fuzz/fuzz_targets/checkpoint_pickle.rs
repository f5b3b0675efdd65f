//! Any bytes at all, as the pickle of a checkpoint that is right otherwise.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    snapviewer_fuzz::checkpoint::check(snapviewer_fuzz::archive::around(data));
});
