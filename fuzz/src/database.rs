//! Databases that were changed in a few places.
//!
//! A whole database is too long for a fuzzer to change it in the places that matter: pages begin with
//! small numbers that say where everything is.

use arbitrary::{Result, Unstructured};

use crate::bundle;
use crate::samples::SAMPLES;

const PAGE: usize = 4096;

/// Changes the database of a sample as the bytes say, and reads the bundle.
///
/// # Panics
///
/// If what is accepted does not add up.
pub fn check(data: &[u8]) {
    let mut from = Unstructured::new(data);
    let Ok(sample) = from.choose(SAMPLES.as_slice()) else { return };
    let mut elements = sample.elements.clone();
    // What the bytes do not say stays as it is.
    let _ = change(&mut from, &mut elements);
    let mut document = sample.document.to_string();
    document.pop();
    bundle::check_parts(document.as_bytes(), &elements);
}

fn change(from: &mut Unstructured<'_>, elements: &mut Vec<u8>) -> Result<()> {
    for _ in 0..from.int_in_range(1..=12)? {
        let pages = elements.len() / PAGE;
        if pages == 0 {
            return Ok(());
        }
        let page = from.choose_index(pages)? * PAGE;
        // The first page begins with the header of the file; others with that of a tree.
        let within = match from.int_in_range(0..=3)? {
            0 => from.int_in_range(0..=107)?,
            1 => from.int_in_range(0..=11)?,
            _ => from.int_in_range(0..=PAGE - 1)?,
        };
        match from.int_in_range(0..=11)? {
            0 => {
                let other = from.choose_index(pages)? * PAGE;
                elements.copy_within(other..other + PAGE, page);
            }
            1 => elements.truncate(page + within),
            2 => elements.extend_from_within(page..page + PAGE),
            3 => {
                // The number of a page, where one may be.
                let number = (from.choose_index(pages + 2)? as u32).to_be_bytes();
                write(elements, page + within, &number);
            }
            kind => {
                let bytes = from.bytes(usize::from(kind as u8 / 4))?;
                write(elements, page + within, bytes);
            }
        }
    }
    Ok(())
}

fn write(elements: &mut [u8], at: usize, bytes: &[u8]) {
    for (offset, &byte) in bytes.iter().enumerate() {
        if let Some(place) = elements.get_mut(at + offset) {
            *place = byte;
        }
    }
}
