//! Any bytes at all, as a bundle: a zip, or two files whose digests are put right.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // Where the document ends, of which no byte is 0.
    match data.iter().position(|&byte| byte == 0).filter(|_| !data.starts_with(b"PK")) {
        Some(end) => snapviewer_fuzz::bundle::check_parts(&data[..end], &data[end + 1..]),
        None => snapviewer_fuzz::bundle::check_zip(data),
    }
});
