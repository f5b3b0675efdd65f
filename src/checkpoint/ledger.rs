//! Adds up what the bytes of a checkpoint's files are for.
//!
//! # Invariants
//!
//! The parts add up to the sizes of the files. A byte of a file is in one stretch; bytes in none are
//! padding; stretches that overlap, or reach beyond their file, are refused.
//!
//! # Cost
//!
//! `O(stretches × log stretches)`.

use super::{Class, Ledger, Storage, Stretch};
use crate::error::{Error, Result};

/// Adds up stretches of files with these sizes. `reached` says how many bytes of each storage,
/// unpacked, some tensor reaches.
pub fn add_up(
    file_bytes: &[u64],
    stretches: &[Stretch],
    storages: &[Storage],
    reached: &[u64],
) -> Result<Ledger> {
    let mut sorted: Vec<&Stretch> = stretches.iter().filter(|stretch| stretch.bytes > 0).collect();
    sorted.sort_by_key(|stretch| (stretch.file, stretch.start));
    let mut stored = vec![0_u64; storages.len()];
    let mut ledger = Ledger::default();
    let mut used = vec![0_u64; file_bytes.len()];
    let mut end = (0, 0);
    for stretch in sorted {
        let wrong = |reason: &'static str| Error::checkpoint(reason, stretch.start);
        if (stretch.file, stretch.start) < end {
            return Err(wrong("two parts of the file overlap"));
        }
        let file = stretch.file as usize;
        let stop = stretch.start.checked_add(stretch.bytes);
        let stop = stop.filter(|stop| file_bytes.get(file).is_some_and(|bytes| stop <= bytes));
        let stop = stop.ok_or_else(|| wrong("a part of the file reaches beyond its end"))?;
        end = (stretch.file, stop);
        used[file] += stretch.bytes;
        let part = match stretch.class {
            Class::Storage(index) => stored
                .get_mut(index as usize)
                .ok_or_else(|| wrong("a part of the file belongs to no storage"))?,
            Class::Pickle => &mut ledger.pickle,
            Class::Padding => &mut ledger.padding,
            Class::Archive => &mut ledger.archive,
        };
        *part += stretch.bytes;
    }
    for (bytes, used) in file_bytes.iter().zip(used) {
        ledger.padding += bytes - used;
    }
    for (index, (storage, stored)) in storages.iter().zip(stored).enumerate() {
        let reached = reached.get(index).copied().unwrap_or(0);
        let tensors = reached_of(stored, storage.bytes, reached);
        ledger.tensors += tensors;
        ledger.unreferenced += stored - tensors;
    }
    Ok(ledger)
}

/// How many of the bytes that a storage takes in its file are those that tensors reach: all of them
/// as they are, or, if it is packed, as many of the packed ones in proportion (to the nearest).
fn reached_of(stored: u64, bytes: u64, reached: u64) -> u64 {
    if bytes == 0 {
        return 0;
    }
    let (stored, bytes) = (u128::from(stored), u128::from(bytes));
    let share = (stored * u128::from(reached).min(bytes) + bytes / 2) / bytes;
    share as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn storage(start: u64, packed_bytes: u64, bytes: u64) -> Storage {
        Storage {
            key: String::new(),
            file: 0,
            start,
            packed_bytes,
            bytes,
            is_deflated: packed_bytes != bytes,
            is_big_endian: false,
        }
    }

    fn stretch(start: u64, bytes: u64, class: Class) -> Stretch {
        Stretch { file: 0, start, bytes, class }
    }

    #[test]
    fn the_parts_of_a_file_add_up_to_its_size() {
        let stretches = [
            stretch(0, 10, Class::Archive),
            stretch(40, 100, Class::Storage(0)),
            stretch(10, 20, Class::Pickle),
            stretch(150, 8, Class::Archive),
        ];

        let ledger = add_up(&[160], &stretches, &[storage(40, 100, 100)], &[75]).unwrap();

        let expected =
            Ledger { tensors: 75, unreferenced: 25, pickle: 20, padding: 22, archive: 18 };
        assert_eq!(ledger, expected);
    }

    #[test]
    fn a_packed_storage_is_split_in_proportion() {
        let stretches = [stretch(0, 10, Class::Storage(0))];

        for (reached, tensors) in [(0, 0), (500, 5), (333, 3), (999, 10), (1000, 10), (5000, 10)] {
            let ledger = add_up(&[10], &stretches, &[storage(0, 10, 1000)], &[reached]).unwrap();

            assert_eq!((ledger.tensors, ledger.unreferenced), (tensors, 10 - tensors));
        }
    }

    #[test]
    fn a_packed_storage_of_no_bytes_is_unreferenced() {
        let stretches = [stretch(0, 2, Class::Storage(0))];

        let ledger = add_up(&[2], &stretches, &[storage(0, 2, 0)], &[0]).unwrap();

        assert_eq!(ledger.unreferenced, 2);
    }

    #[test]
    fn parts_that_overlap_or_reach_too_far_are_refused() {
        let overlap = [stretch(0, 10, Class::Archive), stretch(9, 1, Class::Pickle)];
        let too_far = [stretch(5, u64::MAX, Class::Archive)];
        let nobodys = [stretch(0, 1, Class::Storage(0))];

        for (stretches, says) in
            [(&overlap[..], "overlap"), (&too_far, "beyond its end"), (&nobodys, "no storage")]
        {
            let error = add_up(&[10], stretches, &[], &[]).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    fn class() -> impl Strategy<Value = Class> {
        prop_oneof![
            (0..3_u32).prop_map(Class::Storage),
            Just(Class::Pickle),
            Just(Class::Padding),
            Just(Class::Archive)
        ]
    }

    proptest! {
        /// The model has one entry a byte.
        #[test]
        fn every_byte_is_counted_once(
            sizes in proptest::collection::vec(0..50_u64, 1..3),
            parts in proptest::collection::vec((0..3_u32, 0..50_u64, 0..20_u64, class()), 0..6),
        ) {
            let stretches: Vec<Stretch> = parts
                .iter()
                .map(|&(file, start, bytes, class)| Stretch { file, start, bytes, class })
                .collect();
            let storages = [storage(0, 1, 1), storage(0, 1, 1), storage(0, 1, 1)];
            let mut model: Vec<Vec<Option<Class>>> =
                sizes.iter().map(|&size| vec![None; size as usize]).collect();
            let mut is_wrong = false;
            for part in &stretches {
                for at in part.start..part.start + part.bytes {
                    let byte = model.get_mut(part.file as usize).and_then(|file| file.get_mut(at as usize));
                    is_wrong |= byte.is_none_or(|byte| byte.replace(part.class).is_some());
                }
            }

            let ledger = add_up(&sizes, &stretches, &storages, &[1, 1, 0]);

            prop_assert_eq!(ledger.is_err(), is_wrong);
            if let Ok(ledger) = ledger {
                let count = |wanted: &[Option<Class>]| {
                    model.iter().flatten().filter(|class| wanted.contains(class)).count() as u64
                };
                let expected = Ledger {
                    tensors: count(&[Some(Class::Storage(0)), Some(Class::Storage(1))]),
                    unreferenced: count(&[Some(Class::Storage(2))]),
                    pickle: count(&[Some(Class::Pickle)]),
                    padding: count(&[Some(Class::Padding), None]),
                    archive: count(&[Some(Class::Archive)]),
                };
                prop_assert_eq!(ledger, expected);
            }
        }
    }
}
