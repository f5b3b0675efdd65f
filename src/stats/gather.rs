//! The elements of a view, any part of them, one after the other in a buffer.
//!
//! A row of neighbours is read into the buffer as it is. Elements that are apart, but not far, are picked
//! from a window that is read at once; far ones are read one by one. Afterwards the low byte comes first,
//! and an element that is less than a byte has a byte of its own.
//!
//! # Cost
//!
//! Memory: the buffer and a window. Time: that of reading, plus some nanoseconds an element if they are
//! apart.

use super::values::Values;
use super::{Bytes, Elements, broken};
use crate::error::Result;
use crate::strided::Dim;

/// So much is read at once where elements are apart.
const WINDOW: u64 = 64 << 10;

/// Elements that are further apart than this are read one by one: a system call costs about as much as
/// copying a quarter of a window.
const FAR: u64 = WINDOW / 4;

/// Elements of a storage in some order.
pub(super) struct Gather<'a> {
    source: &'a dyn Bytes,
    start: u64,
    storage_bytes: u64,
    bits: u64,
    unit_bytes: usize,
    /// How many bytes a number has if its high byte comes first; 1 if it does not.
    swap_bytes: usize,
    offset: u64,
    dims: Vec<Dim>,
}

/// What [`Gather::fill`] keeps between calls.
#[derive(Default)]
pub(super) struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> Gather<'a> {
    /// The elements at these places: like a pattern's, but the dimensions may come in any order and
    /// may be expanded.
    pub fn new(
        elements: &Elements<'a>,
        values: &Values,
        offset: u64,
        dims: Vec<Dim>,
    ) -> Result<Self> {
        let last = dims.iter().map(|dim| (dim.size - 1) * dim.stride).sum::<u64>() + offset;
        let end = (u128::from(last) + 1) * u128::from(values.bits);
        let storage_end = elements.start.checked_add(elements.storage_bytes);
        if end > u128::from(elements.storage_bytes) * 8 || storage_end.is_none() {
            return Err(broken("a tensor reaches beyond the end of its storage", elements.start));
        }
        Ok(Self {
            source: elements.bytes,
            start: elements.start,
            storage_bytes: elements.storage_bytes,
            bits: values.bits,
            unit_bytes: values.unit_bytes,
            swap_bytes: if elements.is_big_endian { values.part_bytes } else { 1 },
            offset,
            dims,
        })
    }

    /// How many elements there are.
    pub fn elements(&self) -> u64 {
        self.dims.iter().map(|dim| dim.size).product()
    }

    /// Puts the units of `count` elements from the `first` on into the buffer.
    pub fn fill(
        &self,
        first: u64,
        count: usize,
        window: &mut Window,
        into: &mut Vec<u8>,
    ) -> Result<()> {
        into.resize(count * self.unit_bytes, 0);
        let (&row, outer) = self.dims.split_last().unwrap_or((&Dim { size: 1, stride: 1 }, &[]));
        let ahead = self.ahead(row, outer);
        let (mut index, mut at) = (vec![0; outer.len()], self.offset);
        let mut rest = first / row.size;
        for (dim, index) in outer.iter().zip(&mut index).rev() {
            *index = rest % dim.size;
            rest /= dim.size;
            at += *index * dim.stride;
        }
        let mut column = first % row.size;
        let mut left = into.as_mut_slice();
        while !left.is_empty() {
            let count = (row.size - column).min((left.len() / self.unit_bytes) as u64);
            let (now, later) = left.split_at_mut(count as usize * self.unit_bytes);
            self.row(at + column * row.stride, row.stride, ahead, window, now)?;
            (left, column) = (later, 0);
            for (dim, index) in outer.iter().zip(&mut index).rev() {
                *index += 1;
                if *index < dim.size {
                    at += dim.stride;
                    break;
                }
                *index = 0;
                at -= dim.stride * (dim.size - 1);
            }
        }
        match self.swap_bytes {
            2 => swap::<2>(into),
            4 => swap::<4>(into),
            8 => swap::<8>(into),
            _ => {}
        }
        Ok(())
    }

    /// How much more than is wanted to read at once.
    fn ahead(&self, row: Dim, outer: &[Dim]) -> u64 {
        let apart = if row.stride > 1 { Some(row) } else { outer.last().copied() };
        let apart = apart.map_or(u64::MAX, |dim| dim.stride.saturating_mul(self.bits) / 8);
        if apart <= FAR { WINDOW } else { 0 }
    }

    /// Puts elements that are equally far apart into a buffer of exactly their size.
    fn row(
        &self,
        at: u64,
        stride: u64,
        ahead: u64,
        window: &mut Window,
        into: &mut [u8],
    ) -> Result<()> {
        let unit = self.unit_bytes as u64;
        if self.bits.is_multiple_of(8) && stride == 1 {
            if into.len() as u64 >= FAR {
                return self.source.read_at(self.start + at * unit, into);
            }
            into.copy_from_slice(self.window(at * unit, into.len() as u64, ahead, window)?);
            return Ok(());
        }
        // As many as a window spans.
        let apart_bits = stride * self.bits;
        let at_once = (WINDOW * 8).checked_div(apart_bits).unwrap_or(u64::MAX).max(1);
        for (piece, into) in into.chunks_mut((at_once.min(WINDOW) * unit) as usize).enumerate() {
            let first = (at + piece as u64 * at_once.min(WINDOW) * stride) * self.bits;
            let count = into.len() as u64 / unit;
            let end = first + (count - 1) * apart_bits + self.bits;
            let from = first / 8;
            let bytes = self.window(from, end.div_ceil(8) - from, ahead, window)?;
            if self.bits < 8 {
                for (index, unit) in into.iter_mut().enumerate() {
                    *unit = bits_at(bytes, first % 8 + index as u64 * apart_bits, self.bits);
                }
            } else {
                let apart = (apart_bits / 8) as usize;
                for (index, unit) in into.chunks_exact_mut(self.unit_bytes).enumerate() {
                    unit.copy_from_slice(&bytes[index * apart..][..unit.len()]);
                }
            }
        }
        Ok(())
    }

    /// Some bytes of the storage.
    fn window<'w>(
        &self,
        at: u64,
        count: u64,
        ahead: u64,
        window: &'w mut Window,
    ) -> Result<&'w [u8]> {
        let end = window.start + window.bytes.len() as u64;
        if at < window.start || at + count > end {
            let wanted = count.max(ahead).min(self.storage_bytes - at);
            window.bytes.resize(wanted as usize, 0);
            window.start = at;
            if let Err(error) = self.source.read_at(self.start + at, &mut window.bytes) {
                window.bytes.clear();
                return Err(error);
            }
        }
        Ok(&window.bytes[(at - window.start) as usize..][..count as usize])
    }
}

/// An element of less than a byte: the low bits of a byte are the first element's.
fn bits_at(bytes: &[u8], at: u64, bits: u64) -> u8 {
    let byte = (at / 8) as usize;
    let pair = [bytes[byte], bytes.get(byte + 1).copied().unwrap_or(0)];
    (u16::from_le_bytes(pair) >> (at % 8)) as u8 & ((1 << bits) - 1)
}

fn swap<const N: usize>(bytes: &mut [u8]) {
    for number in bytes.as_chunks_mut::<N>().0 {
        number.reverse();
    }
}
