//! Everything that repeats is stored once: strings, frames, stacks.
//!
//! Ids are given out in order of first appearance, so they are the same in every run. Id 0 is the
//! empty string and the empty stack. Hashing is seeded at random: a file cannot be made to collide.

use std::hash::{BuildHasher, Hash};
use std::ops::{Index, Range};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Strings, each stored once.
pub type Strings = Interner<String>;

/// Pieces one after the other.
pub trait Pieces: Default + Index<Range<usize>, Output: Hash + Eq> {
    /// Adds a piece; returns where it ends.
    fn add(&mut self, piece: &Self::Output) -> usize;
}

impl Pieces for String {
    fn add(&mut self, piece: &str) -> usize {
        self.push_str(piece);
        self.len()
    }
}

impl Pieces for Vec<u32> {
    fn add(&mut self, piece: &[u32]) -> usize {
        self.extend_from_slice(piece);
        self.len()
    }
}

/// Pieces, each stored once.
#[derive(Debug)]
pub struct Interner<P> {
    pieces: P,
    ends: Vec<usize>,
    index: HashTable<u32>,
    hasher: RandomState,
}

impl<P: Pieces> Default for Interner<P> {
    fn default() -> Self {
        let (pieces, hasher) = (P::default(), RandomState::default());
        let mut all = Self { pieces, ends: Vec::new(), index: HashTable::new(), hasher };
        all.intern(&P::default()[0..0]);
        all
    }
}

impl<P: Pieces> Interner<P> {
    /// The id of a piece, new or known.
    pub fn intern(&mut self, piece: &P::Output) -> u32 {
        let hash = self.hasher.hash_one(piece);
        if let Some(&id) = self.index.find(hash, |&id| self.get(id) == piece) {
            return id;
        }
        let id = self.ends.len() as u32;
        self.ends.push(self.pieces.add(piece));
        let (pieces, ends, hasher) = (&self.pieces, &self.ends, &self.hasher);
        self.index.insert_unique(hash, id, |&id| hasher.hash_one(&pieces[range(ends, id)]));
        id
    }

    /// The piece with this id.
    #[must_use]
    pub fn get(&self, id: u32) -> &P::Output {
        &self.pieces[range(&self.ends, id)]
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }
}

fn range(ends: &[usize], id: u32) -> Range<usize> {
    let id = id as usize;
    let from = if id == 0 { 0 } else { ends[id - 1] };
    from..ends[id]
}

/// One line of a call stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Frame {
    /// The function, a string id.
    pub name: u32,
    /// The file, a string id.
    pub filename: u32,
    /// The line; 0 in C++ frames.
    pub line: u64,
    /// What `torch.fx` knows of it, as string ids: op, name, target, original trace. 0 where absent.
    pub fx: [u32; 4],
}

/// Frames, and stacks of them, each stored once.
#[derive(Debug, Default)]
pub struct Stacks {
    frames: Table<Frame>,
    /// Frame ids, innermost first.
    stacks: Interner<Vec<u32>>,
}

impl Stacks {
    /// The id of a frame, new or known.
    pub fn intern_frame(&mut self, frame: Frame) -> u32 {
        self.frames.intern(&frame)
    }

    /// The id of a stack of frames, new or known.
    pub fn intern(&mut self, frames: &[u32]) -> u32 {
        self.stacks.intern(frames)
    }

    /// The frame ids of a stack, innermost first.
    #[must_use]
    pub fn get(&self, id: u32) -> &[u32] {
        self.stacks.get(id)
    }

    /// A frame.
    #[must_use]
    pub fn frame(&self, id: u32) -> Frame {
        *self.frames.get(id)
    }

    /// Every frame, by id.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        self.frames.items()
    }

    /// How many stacks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stacks.len()
    }
}

/// Small values that many events share, numbered by first appearance.
#[derive(Debug, Clone)]
pub struct Table<T> {
    items: Vec<T>,
    index: hashbrown::HashMap<T, u32, RandomState>,
    last: u32,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { items: Vec::new(), index: hashbrown::HashMap::default(), last: 0 }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Table<T> {
    /// The id of a value, new or known.
    pub fn intern(&mut self, item: &T) -> u32 {
        // Most events have what the one before had.
        if self.items.get(self.last as usize) != Some(item) {
            let next = self.items.len() as u32;
            self.last = *self.index.entry(item.clone()).or_insert(next);
            if self.last == next {
                self.items.push(item.clone());
            }
        }
        self.last
    }

    /// The value with this id.
    #[must_use]
    pub fn get(&self, id: u32) -> &T {
        &self.items[id as usize]
    }

    /// All values, by id.
    #[must_use]
    pub fn items(&self) -> &[T] {
        &self.items
    }
}
