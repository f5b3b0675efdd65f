//! Columns that are as narrow as their data allows.
//!
//! A trace has millions of 64-bit numbers, but within a few thousand events they differ little:
//! times by milliseconds, addresses by gigabytes, streams not at all. [`Packed`] keeps the smallest
//! of them and the differences to it in as few bytes as fit.
//!
//! # Invariants
//!
//! `get` returns the numbers that were packed, whatever they are (tested against a slice).

/// Some numbers, packed. Made at once, then only read.
#[derive(Debug, Clone)]
pub struct Packed {
    least: u64,
    above: Above,
}

/// How much each number is above the least.
#[derive(Debug, Clone)]
enum Above {
    Nothing,
    Bytes1(Box<[u8]>),
    Bytes2(Box<[u16]>),
    Bytes4(Box<[u32]>),
    Bytes8(Box<[u64]>),
}

impl Packed {
    /// Packs numbers.
    pub fn pack(values: impl Iterator<Item = u64> + Clone) -> Self {
        let bounds = |(least, most): (u64, u64), value: u64| (least.min(value), most.max(value));
        let (least, most) = values.clone().fold((u64::MAX, 0), bounds);
        let range = most.saturating_sub(least);
        let above = values.map(|value| value - least);
        let above = if range == 0 {
            Above::Nothing
        } else if u8::try_from(range).is_ok() {
            Above::Bytes1(above.map(|value| value as u8).collect())
        } else if u16::try_from(range).is_ok() {
            Above::Bytes2(above.map(|value| value as u16).collect())
        } else if u32::try_from(range).is_ok() {
            Above::Bytes4(above.map(|value| value as u32).collect())
        } else {
            Above::Bytes8(above.collect())
        };
        Self { least, above }
    }

    /// The number at `index`; panics past the end unless all numbers are the same.
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        let above = match &self.above {
            Above::Nothing => 0,
            Above::Bytes1(values) => u64::from(values[index]),
            Above::Bytes2(values) => u64::from(values[index]),
            Above::Bytes4(values) => u64::from(values[index]),
            Above::Bytes8(values) => values[index],
        };
        self.least + above
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_packed_column_returns_what_was_packed(
            base in any::<u64>(), bits in 0..=64_u32, values in prop::collection::vec(any::<u64>(), 1..50)
        ) {
            let mask = 1_u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1);
            let values: Vec<u64> = values.iter().map(|value| base.saturating_add(value & mask)).collect();

            let packed = Packed::pack(values.iter().copied());

            prop_assert_eq!((0..values.len()).map(|i| packed.get(i)).collect::<Vec<_>>(), values);
        }
    }
}
