//! Marks and numbers for the values of a tree, by their handles.
//!
//! Handles of a kind are numbered without gaps, so that a bit, or a place in a row, is enough for each. With
//! hash tables instead, a walk over three million dicts took most of its time to look them up.

use crate::pickle::Handle;

const KINDS: usize = Handle::MAX_KIND as usize + 1;

/// A set of handles.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// A bit for each, by kind.
    bits: [Vec<u64>; KINDS],
}

impl Marks {
    /// Adds a handle; returns whether it is new.
    pub fn insert(&mut self, handle: Handle) -> bool {
        let bits = &mut self.bits[handle.kind as usize % KINDS];
        let (word, bit) = (handle.id as usize / 64, 1 << (handle.id % 64));
        if bits.len() <= word {
            bits.resize(word + 1, 0);
        }
        let is_new = bits[word] & bit == 0;
        bits[word] |= bit;
        is_new
    }
}

/// A number for each of some handles; 0 for the others.
#[derive(Debug, Default)]
pub(super) struct Amounts {
    by_kind: [Vec<u64>; KINDS],
}

impl Amounts {
    /// Sets the number of a handle.
    pub fn insert(&mut self, handle: Handle, amount: u64) {
        let amounts = &mut self.by_kind[handle.kind as usize % KINDS];
        let at = handle.id as usize;
        if amounts.len() <= at {
            amounts.resize(at + 1, 0);
        }
        amounts[at] = amount;
    }

    /// The number of a handle.
    pub fn get(&self, handle: Handle) -> u64 {
        let amounts = &self.by_kind[handle.kind as usize % KINDS];
        amounts.get(handle.id as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_do_what_tables_do(
            handles in proptest::collection::vec((0..=Handle::MAX_KIND, 0..200_u32, any::<u64>()), 0..300)
        ) {
            let (mut marks, mut set) = (Marks::default(), HashSet::new());
            let (mut amounts, mut map) = (Amounts::default(), HashMap::new());
            for (kind, id, amount) in handles {
                let handle = Handle { kind, id };
                prop_assert_eq!(marks.insert(handle), set.insert(handle));
                amounts.insert(handle, amount);
                map.insert(handle, amount);
            }
            for kind in 0..=Handle::MAX_KIND {
                for id in 0..210 {
                    let handle = Handle { kind, id };
                    prop_assert_eq!(amounts.get(handle), map.get(&handle).copied().unwrap_or(0));
                }
            }
        }
    }
}
