//! Everything that repeats is stored once: strings, frames, stacks.
//!
//! Ids are given out in order of first appearance, so they are the same in every run. Id 0 is the
//! empty string and the empty stack. Hashing is seeded at random: a file cannot be made to collide.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Strings, each stored once.
#[derive(Debug)]
pub struct Strings {
    text: String,
    ends: Vec<usize>,
    index: HashTable<u32>,
    hasher: RandomState,
}

impl Default for Strings {
    fn default() -> Self {
        let mut strings = Self {
            text: String::new(),
            ends: Vec::new(),
            index: HashTable::new(),
            hasher: RandomState::default(),
        };
        strings.intern("");
        strings
    }
}

impl Strings {
    /// The id of a string, new or known.
    pub fn intern(&mut self, text: &str) -> u32 {
        let hash = self.hasher.hash_one(text);
        if let Some(&id) = self.index.find(hash, |&id| self.get(id) == text) {
            return id;
        }
        let id = self.ends.len() as u32;
        self.text.push_str(text);
        self.ends.push(self.text.len());
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        self.index.insert_unique(hash, id, |&id| hasher.hash_one(slice(text, ends, id)));
        id
    }

    /// The string with this id.
    #[must_use]
    pub fn get(&self, id: u32) -> &str {
        slice(&self.text, &self.ends, id)
    }

    /// How many there are.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // The empty string is always there.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
}

fn slice<'a>(text: &'a str, ends: &[usize], id: u32) -> &'a str {
    let id = id as usize;
    let from = if id == 0 { 0 } else { ends[id - 1] };
    &text[from..ends[id]]
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
#[derive(Debug)]
pub struct Stacks {
    /// Every distinct frame.
    frames: Vec<Frame>,
    frame_index: HashTable<u32>,
    /// The stacks one after the other, as frame ids, innermost first.
    items: Vec<u32>,
    ends: Vec<usize>,
    stack_index: HashTable<u32>,
    hasher: RandomState,
}

impl Default for Stacks {
    fn default() -> Self {
        let mut stacks = Self {
            frames: Vec::new(),
            frame_index: HashTable::new(),
            items: Vec::new(),
            ends: Vec::new(),
            stack_index: HashTable::new(),
            hasher: RandomState::default(),
        };
        stacks.intern(&[]);
        stacks
    }
}

impl Stacks {
    /// The id of a frame, new or known.
    pub fn intern_frame(&mut self, frame: Frame) -> u32 {
        let hash = self.hasher.hash_one(frame);
        let (frames, hasher) = (&self.frames, &self.hasher);
        if let Some(&id) = self.frame_index.find(hash, |&id| frames[id as usize] == frame) {
            return id;
        }
        let id = self.frames.len() as u32;
        self.frame_index.insert_unique(hash, id, |&id| hasher.hash_one(frames[id as usize]));
        self.frames.push(frame);
        id
    }

    /// The id of a stack of frames, new or known.
    pub fn intern(&mut self, frames: &[u32]) -> u32 {
        let hash = self.hasher.hash_one(frames);
        if let Some(&id) = self.stack_index.find(hash, |&id| self.get(id) == frames) {
            return id;
        }
        let id = self.ends.len() as u32;
        self.items.extend_from_slice(frames);
        self.ends.push(self.items.len());
        let (items, ends, hasher) = (&self.items, &self.ends, &self.hasher);
        self.stack_index.insert_unique(hash, id, |&id| hasher.hash_one(stack(items, ends, id)));
        id
    }

    /// The frame ids of a stack, innermost first.
    #[must_use]
    pub fn get(&self, id: u32) -> &[u32] {
        stack(&self.items, &self.ends, id)
    }

    /// A frame.
    #[must_use]
    pub fn frame(&self, id: u32) -> Frame {
        self.frames[id as usize]
    }

    /// Every frame, by id.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// How many stacks there are.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // The empty stack is always there.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
}

fn stack<'a>(items: &'a [u32], ends: &[usize], id: u32) -> &'a [u32] {
    let id = id as usize;
    let from = if id == 0 { 0 } else { ends[id - 1] };
    &items[from..ends[id]]
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
