//! Any bytes at all, as a file: pickle, JSON, gzip, a page.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use snapviewer::source::Source;

fuzz_target!(|data: &[u8]| -> Corpus {
    let Ok(source) = Source::from_vec(data.to_vec()) else { return Corpus::Keep };
    // What unpacks to much takes seconds, and finds nothing that a small file does not.
    if source.bytes().len() > 1 << 20 {
        return Corpus::Reject;
    }
    snapviewer_fuzz::check(source.bytes());
    Corpus::Keep
});
