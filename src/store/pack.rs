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
//! `width`: 1 to 8 bytes a number. Then a zlib stream of blocks of 2^17 numbers (the last may have
//! fewer), each of `width` planes: the lowest byte of every number, the next byte of every number, ….
//!
//! # Invariants
//!
//! [`unpack`] returns what [`pack`] was given. From any other bytes it returns a reason, and takes no
//! more memory than a number of elements that the bytes could really hold.
//!
//! # Cost
//!
//! Packing: 20 to 40 ns a number of an address or time column, 5 of others; unpacking 3 to 10.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// Deflate makes at most this many bytes of one.
const MAX_RATIO: usize = 1032;

const HEADER: usize = 3;

/// Numbers a block: their planes stay in the processor's cache.
const BLOCK: usize = 1 << 17;

/// Numbers that are put together at a time: simple loops, which the compiler makes wide.
const PIECE: usize = 1 << 10;

/// Whether a column is stored as its numbers or as their differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    Delta,
}

/// Packs numbers; goes through them three times.
pub(crate) fn pack(values: impl Iterator<Item = u64> + Clone, form: Form) -> Vec<u8> {
    pack_at(values, form, Compression::fast())
}

/// Packs numbers without deflating them, so that they take a byte each at least.
pub(crate) fn pack_loosely(values: impl Iterator<Item = u64> + Clone, form: Form) -> Vec<u8> {
    pack_at(values, form, Compression::none())
}

fn pack_at(
    values: impl Iterator<Item = u64> + Clone,
    form: Form,
    compression: Compression,
) -> Vec<u8> {
    let bits = values.clone().fold(0, |bits, value| bits | value);
    let shift = if bits == 0 { 0 } else { bits.trailing_zeros() };
    let mut last = 0;
    let mut coded = values.map(move |value| match form {
        Form::Plain => value >> shift,
        Form::Delta => {
            let value = value >> shift;
            zigzag(value.wrapping_sub(std::mem::replace(&mut last, value)))
        }
    });
    let bits = coded.clone().fold(0, |bits, value| bits | value);
    let width = (8 - bits.leading_zeros() / 8).max(1);
    let packed = vec![shift as u8, u8::from(form == Form::Delta), width as u8];
    let mut encoder = ZlibEncoder::new(packed, compression);
    let (mut block, mut plane) = (Vec::new(), Vec::new());
    loop {
        block.clear();
        block.extend(coded.by_ref().take(BLOCK));
        if block.is_empty() {
            break;
        }
        for byte in 0..width {
            plane.clear();
            plane.extend(block.iter().map(|value: &u64| (value >> (8 * byte)) as u8));
            // Writing to memory does not fail.
            let _ = encoder.write_all(&plane);
        }
    }
    encoder.finish().unwrap_or_default()
}

/// Unpacks numbers, of which there must be `count`.
pub(crate) fn unpack(packed: &[u8], count: usize) -> Result<Vec<u64>, &'static str> {
    unpack_as(packed, count, "", Some)
}

/// Unpacks numbers and makes something of each; fails with `reason` if that fails.
pub(crate) fn unpack_as<T>(
    packed: &[u8],
    count: usize,
    reason: &'static str,
    mut convert: impl FnMut(u64) -> Option<T>,
) -> Result<Vec<T>, &'static str> {
    let Some((header, stream)) = packed.split_first_chunk::<HEADER>() else {
        return Err("a column is cut off");
    };
    let &[shift @ 0..64, is_delta @ 0..2, width @ 1..=8] = header else {
        return Err("a column has no valid beginning");
    };
    let width = usize::from(width);
    if count.saturating_mul(width) > stream.len().saturating_mul(MAX_RATIO) {
        return Err("a column is too short for what it should hold");
    }
    let mut decoder = ZlibDecoder::new(stream);
    let mut planes = vec![0; width * count.min(BLOCK)];
    let mut values = Vec::with_capacity(count);
    let mut last = 0_u64;
    let mut piece = [0_u64; PIECE];
    while values.len() < count {
        let len = BLOCK.min(count - values.len());
        let planes = &mut planes[..width * len];
        decoder.read_exact(planes).map_err(|_| "a column is damaged or cut off")?;
        for from in (0..len).step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(len - from)];
            piece.fill(0);
            for (byte, plane) in planes.chunks_exact(len).enumerate() {
                for (value, &part) in piece.iter_mut().zip(&plane[from..]) {
                    *value |= u64::from(part) << (8 * byte);
                }
            }
            if is_delta == 1 {
                for value in &mut *piece {
                    last = last.wrapping_add(unzigzag(*value));
                    *value = last;
                }
            }
            for &value in &*piece {
                values.push(convert(value << shift).ok_or(reason)?);
            }
        }
    }
    // Reading on to the end also compares the checksum.
    if !matches!(decoder.read(&mut [0]), Ok(0)) {
        return Err("a column is damaged or too long");
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
                let packed = pack(values.iter().copied(), form);
                prop_assert_eq!(unpack(&packed, values.len()), Ok(values.clone()));
            }
        }

        #[test]
        fn damage_is_noticed_or_harmless(
            values in prop::collection::vec(0..5000_u64, 1..300), at in any::<prop::sample::Index>(), with in 1..=255_u8,
        ) {
            let mut packed = pack(values.iter().copied(), Form::Delta);
            let at = at.index(packed.len() - HEADER) + HEADER;
            packed[at] ^= with;

            let unpacked = unpack(&packed, values.len());

            prop_assert!(unpacked.is_err() || unpacked == Ok(values));
        }
    }

    #[test]
    fn columns_of_several_blocks_come_back() {
        for count in [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
            let values = (0..count as u64).map(|number| number * number);

            for form in [Form::Plain, Form::Delta] {
                assert_eq!(
                    unpack(&pack(values.clone(), form), count),
                    Ok(values.clone().collect())
                );
            }
        }
    }

    #[test]
    fn a_count_that_the_bytes_cannot_hold_is_refused() {
        let packed = pack([1, 2, 3].into_iter(), Form::Plain);

        for count in [0, 2, 4, 1 << 40, usize::MAX] {
            assert!(unpack(&packed, count).is_err(), "{count} numbers out of 3");
        }
    }

    #[test]
    fn a_number_that_means_nothing_is_refused_with_the_reason() {
        let packed = pack([1, 300].into_iter(), Form::Plain);

        let bytes = unpack_as(&packed, 2, "too large", |value| u8::try_from(value).ok());

        assert_eq!(bytes, Err("too large"));
    }
}
