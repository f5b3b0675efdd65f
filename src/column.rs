//! Columns that are as narrow as their data allows.
//!
//! A trace has millions of 64-bit numbers whose upper halves take few values (a device's addresses
//! span some gigabytes, a trace's times some minutes, most sizes are below 4 GiB). [`Split64`] keeps
//! the lower halves, and for the upper ones a byte that says which; or nothing while there is one.
//! [`Lazy32`] takes no room at all until a value other than the usual one comes.
//!
//! # Invariants
//!
//! What was pushed is what `get` returns, for any sequence of numbers (tested against `Vec<u64>`).
//!
//! # Cost
//!
//! 4 or 5 bytes a number instead of 8; 8 only when more than 256 upper halves occur.

/// A growing column of `u64`.
#[derive(Debug, Clone, Default)]
pub struct Split64 {
    low: Vec<u32>,
    /// Which of `highs` goes with each number; empty while there is only one.
    high: Vec<u8>,
    highs: Vec<u32>,
    /// All numbers whole, once the upper halves are too many; then the others are empty.
    wide: Vec<u64>,
    /// The upper half that the last number had, and its place in `highs`.
    last: (u32, u8),
}

impl Split64 {
    /// How many numbers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.low.len() + self.wide.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number at `index`; panics past the end, as slices do.
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        if !self.wide.is_empty() {
            return self.wide[index];
        }
        let which = if self.high.is_empty() { 0 } else { self.high[index] as usize };
        (u64::from(self.highs[which]) << 32) | u64::from(self.low[index])
    }

    /// Adds a number.
    #[inline]
    pub fn push(&mut self, value: u64) {
        let high = (value >> 32) as u32;
        if !self.wide.is_empty() {
            self.wide.push(value);
            return;
        }
        if high != self.last.0 || self.highs.is_empty() {
            let Some(which) = self.place_of(high) else {
                self.widen();
                self.wide.push(value);
                return;
            };
            self.last = (high, which);
        }
        self.low.push(value as u32);
        if self.highs.len() > 1 {
            self.high.push(self.last.1);
        }
    }

    /// Replaces the number at `index`.
    pub fn set(&mut self, index: usize, value: u64) {
        if self.wide.is_empty() && (value >> 32) as u32 != (self.get(index) >> 32) as u32 {
            // Seldom enough that the simple way is good enough.
            self.widen();
        }
        if self.wide.is_empty() {
            self.low[index] = value as u32;
        } else {
            self.wide[index] = value;
        }
    }

    /// The numbers in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The place of an upper half among the known ones; None if there is no room for a new one.
    #[cold]
    fn place_of(&mut self, high: u32) -> Option<u8> {
        if let Some(which) = self.highs.iter().position(|&known| known == high) {
            return Some(which as u8);
        }
        let which = u8::try_from(self.highs.len()).ok()?;
        if which == 1 {
            self.high = vec![0; self.low.len()];
        }
        self.highs.push(high);
        Some(which)
    }

    #[cold]
    fn widen(&mut self) {
        let wide = self.iter().collect();
        *self = Self { wide, ..Self::default() };
    }
}

impl FromIterator<u64> for Split64 {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut column = Self::default();
        values.into_iter().for_each(|value| column.push(value));
        column
    }
}

/// A growing column of `u32` that are nearly all zero.
#[derive(Debug, Clone, Default)]
pub struct Lazy32 {
    len: usize,
    /// Empty while all are zero.
    values: Vec<u32>,
}

impl Lazy32 {
    /// The number at `index`.
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> u32 {
        if self.values.is_empty() { 0 } else { self.values[index] }
    }

    /// Adds a number.
    #[inline]
    pub fn push(&mut self, value: u32) {
        self.len += 1;
        if value != 0 || !self.values.is_empty() {
            self.push_wide(value);
        }
    }

    /// Replaces the number at `index`.
    pub fn set(&mut self, index: usize, value: u32) {
        if value != self.get(index) {
            self.values.resize(self.len, 0);
            self.values[index] = value;
        }
    }

    /// Whether all are zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.values.is_empty()
    }

    fn push_wide(&mut self, value: u32) {
        self.values.resize(self.len - 1, 0);
        self.values.push(value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Few upper halves, or many, or anything.
    fn numbers() -> impl Strategy<Value = Vec<u64>> {
        prop_oneof![
            prop::collection::vec(0..5_u64, 0..50),
            prop::collection::vec((0..3_u64, any::<u32>()).prop_map(|(h, l)| h << 40 | u64::from(l)), 0..300),
            prop::collection::vec(any::<u64>(), 0..600),
        ]
    }

    proptest! {
        #[test]
        fn a_split_column_returns_what_was_pushed_and_set(
            values in numbers(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 0..4)
        ) {
            let mut expected = values.clone();
            let mut column: Split64 = values.into_iter().collect();
            for (index, value) in changes {
                if !expected.is_empty() {
                    let at = index.index(expected.len());
                    expected[at] = value;
                    column.set(at, value);
                }
            }
            column.push(7);
            expected.push(7);

            prop_assert_eq!(column.iter().collect::<Vec<_>>(), expected);
        }

        #[test]
        fn a_lazy_column_returns_what_was_pushed_and_set(
            values in prop::collection::vec(prop_oneof![Just(0_u32), 0..3_u32], 1..50), at in any::<prop::sample::Index>()
        ) {
            let mut expected = values.clone();
            let mut column = Lazy32::default();
            values.iter().for_each(|&value| column.push(value));
            let at = at.index(expected.len());
            expected[at] = 9;
            column.set(at, 9);
            column.push(0);
            expected.push(0);

            prop_assert_eq!((0..expected.len()).map(|i| column.get(i)).collect::<Vec<_>>(), expected);
        }
    }
}
