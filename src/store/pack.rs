//! A column of numbers as few bytes: differences, then byte planes, then deflate.
//!
//! What repeats in a trace (training steps) repeats in its columns too, but only as deflate's 32 KiB
//! window sees it: so each byte of the numbers gets a plane of its own, and the planes of zeros cost
//! next to nothing.
//!
//! # The bytes
//!
//! `shift`: all numbers end in that many zero bits, which are left out. `is_delta`: 1 if the numbers
//! are differences to the one before (the sign in the lowest bit), 0 if they are themselves.
//! `width`: 1 to 8 bytes a number. Then a zlib stream of `width` planes: the lowest byte of every
//! number, the next byte of every number, ….
//!
//! # Invariants
//!
//! [`unpack`] returns what [`pack`] was given. From any other bytes it returns a reason, and takes no
//! more memory than a number of elements that the bytes could really hold.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// Deflate makes at most this many bytes of one.
pub(crate) const MAX_RATIO: usize = 1032;

const HEADER: usize = 3;

/// Whether a column is stored as its numbers or as their differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    Delta,
}

/// Packs numbers.
pub(crate) fn pack(values: &[u64], form: Form) -> Vec<u8> {
    let bits = values.iter().fold(0, |bits, value| bits | value);
    let shift = if bits == 0 { 0 } else { bits.trailing_zeros() };
    let mut last = 0;
    let coded: Vec<u64> = match form {
        Form::Plain => values.iter().map(|value| value >> shift).collect(),
        Form::Delta => values
            .iter()
            .map(|value| {
                zigzag((value >> shift).wrapping_sub(std::mem::replace(&mut last, value >> shift)))
            })
            .collect(),
    };
    let bits = coded.iter().fold(0, |bits, value| bits | value);
    let width = (8 - bits.leading_zeros() / 8).max(1);
    let packed = vec![shift as u8, u8::from(form == Form::Delta), width as u8];
    let mut encoder = ZlibEncoder::new(packed, Compression::fast());
    let mut plane = Vec::with_capacity(coded.len());
    for byte in 0..width {
        plane.clear();
        plane.extend(coded.iter().map(|value| (value >> (8 * byte)) as u8));
        // Writing to memory does not fail.
        let _ = encoder.write_all(&plane);
    }
    encoder.finish().unwrap_or_default()
}

/// Unpacks numbers of which there must be `count`.
pub(crate) fn unpack(packed: &[u8], count: usize) -> Result<Vec<u64>, &'static str> {
    let Some((header, stream)) = packed.split_first_chunk::<HEADER>() else {
        return Err("a column is cut off");
    };
    let &[shift @ 0..64, is_delta @ 0..2, width @ 1..=8] = header else {
        return Err("a column does not begin as columns do");
    };
    if count.saturating_mul(width as usize) > stream.len().saturating_mul(MAX_RATIO) {
        return Err("a column is too short for what it should hold");
    }
    let mut decoder = ZlibDecoder::new(stream);
    let mut plane = vec![0_u8; count];
    let mut values = vec![0_u64; count];
    for byte in 0..width {
        decoder.read_exact(&mut plane).map_err(|_| "a column is damaged or cut off")?;
        for (value, &part) in values.iter_mut().zip(&plane) {
            *value |= u64::from(part) << (8 * byte);
        }
    }
    // Reading on to the end also compares the checksum.
    if !matches!(decoder.read(&mut [0]), Ok(0)) {
        return Err("a column is damaged or too long");
    }
    if is_delta == 1 {
        let mut last = 0_u64;
        for value in &mut values {
            last = last.wrapping_add(unzigzag(*value));
            *value = last << shift;
        }
    } else if shift > 0 {
        for value in &mut values {
            *value <<= shift;
        }
    }
    Ok(values)
}

/// Small numbers of either sign as small numbers.
pub(crate) fn zigzag(value: u64) -> u64 {
    (value << 1) ^ ((value as i64) >> 63) as u64
}

pub(crate) fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_packed_comes_back(
            values in prop::collection::vec(any::<u64>(), 0..300), bits in 0..=64_u32, shift in 0..64_u32,
        ) {
            let mask = 1_u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1);
            let values: Vec<u64> = values.iter().map(|value| (value & mask) << shift).collect();

            for form in [Form::Plain, Form::Delta] {
                prop_assert_eq!(unpack(&pack(&values, form), values.len()), Ok(values.clone()));
            }
        }

        #[test]
        fn damage_is_noticed_or_harmless(
            values in prop::collection::vec(0..5000_u64, 1..300), at in any::<prop::sample::Index>(), with in 1..=255_u8,
        ) {
            let mut packed = pack(&values, Form::Delta);
            let at = at.index(packed.len() - HEADER) + HEADER;
            packed[at] ^= with;

            let unpacked = unpack(&packed, values.len());

            prop_assert!(unpacked.is_err() || unpacked == Ok(values));
        }
    }

    #[test]
    fn a_count_that_the_bytes_cannot_hold_is_refused() {
        let packed = pack(&[1, 2, 3], Form::Plain);

        for count in [0, 2, 4, 1 << 40, usize::MAX] {
            assert!(unpack(&packed, count).is_err(), "{count} numbers out of 3");
        }
    }
}
