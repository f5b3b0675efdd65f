//! The memo: what later opcodes refer back to.

use super::{Handle, Value};

/// What has been stored under each memo number.
#[derive(Debug, Default)]
pub struct Memo {
    slots: Vec<Slot>,
    /// Values that do not fit a slot: numbers, which no pickler memoizes, and ids beyond 2²⁸.
    others: Vec<Value>,
}

/// A value in 4 bytes (there are two or three for each event): a kind in the upper 4 bits, and an id.
/// 0 is empty, 1 a string, 2 a place in `others`; a handle's kind follows from 3 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot(u32);

const ID_BITS: u32 = 28;
const MAX_ID: u32 = (1 << ID_BITS) - 1;
const EMPTY: Slot = Slot(0);
const TEXT: u32 = 1 << ID_BITS;
const OTHER: u32 = 2 << ID_BITS;
const FIRST_KIND: u32 = 3;

const _: () = assert!(size_of::<Value>() == 16);

impl Memo {
    /// Room for what a trace of this many bytes needs, so that it need not grow by copying. Room that
    /// is not used costs nothing.
    pub(super) fn for_input(bytes: usize) -> Self {
        Self { slots: Vec::with_capacity(bytes / 40), others: Vec::new() }
    }

    /// The value under a number, if there is one.
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Option<Value> {
        let slot = *self.slots.get(index)?;
        let id = slot.0 & MAX_ID;
        match slot.0 >> ID_BITS {
            0 => None,
            1 => Some(Value::Text(id)),
            2 => Some(self.others[id as usize]),
            kind => Some(Value::Object(Handle { kind: (kind - FIRST_KIND) as u8, id })),
        }
    }

    /// Stores a value under the next number.
    #[inline]
    pub fn push(&mut self, value: Value) {
        let slot = self.slot(value);
        self.slots.push(slot);
    }

    /// How many numbers have been given out.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    fn slot(&mut self, value: Value) -> Slot {
        match value {
            Value::Text(id) if id <= MAX_ID => Slot(TEXT | id),
            Value::Object(Handle { kind, id }) if id <= MAX_ID && kind <= Handle::MAX_KIND => {
                Slot((u32::from(kind) + FIRST_KIND) << ID_BITS | id)
            }
            other => {
                self.others.push(other);
                // A file that memoizes 2²⁸ numbers has over 500 MB of nothing else.
                Slot(OTHER | (self.others.len() as u32 - 1) & MAX_ID)
            }
        }
    }

    /// Stores a value under a number; returns whether that number was taken.
    pub(super) fn put(&mut self, index: usize, value: Value) -> bool {
        if self.slots.len() <= index {
            self.slots.resize(index + 1, EMPTY);
        }
        let was_taken = self.slots[index] != EMPTY;
        self.slots[index] = self.slot(value);
        was_taken
    }
}
