//! The rules of PyTorch's caching allocator: rounding, the size of new segments, splitting.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The smallest block, and what sizes are rounded to.
pub const MIN_BLOCK: u64 = 512;

/// The largest block of the small pool.
pub const MAX_SMALL: u64 = 1 << 20;

/// The size of a segment of the small pool, and of a page of an expandable one.
pub const SMALL_SEGMENT: u64 = 2 << 20;

/// Requests from here on get a segment of their own size.
const MIN_LARGE: u64 = 10 << 20;

/// What the size of such a segment is rounded to.
const ROUND_LARGE: u64 = 2 << 20;

/// Requests from here on begin at a multiple of [`Rules::align`].
const MIN_ALIGNED: u64 = 2 << 20;

/// Divisions of powers of two are set for 1 MiB, 2 MiB, … 32 GiB.
const INTERVALS: usize = 16;

/// Which of several free blocks of the best size the allocator takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Ties {
    /// The one with the lowest address: up to torch 2.11.
    #[default]
    Address,
    /// The one in the oldest segment, then the lowest address: later releases.
    Segment,
}

/// The settings of an allocator, and what follows from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// `roundup_power2_divisions`, by the power of two from 1 MiB on; 0 and 1 mean none.
    pub divisions: [u64; INTERVALS],
    /// `max_split_size`: blocks from here on are not split.
    pub max_split: u64,
    /// `max_non_split_rounding`: by how much a block may be larger than a request that must not split
    /// it.
    pub max_unsplit_rest: u64,
    /// `expandable_segments`.
    pub is_expandable: bool,
    /// `garbage_collection_threshold`; 0 means never.
    pub collect_above: f64,
    /// The size of a segment for requests below 10 MiB, and of a page of an expandable one.
    pub large_segment: u64,
    /// Bytes that a fork of the allocator adds to every request.
    pub padding: u64,
    /// What a fork aligns the addresses of large requests in expandable segments to; 0 for none.
    pub align: u64,
    /// Which of equal blocks is taken.
    pub ties: Ties,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            divisions: [0; INTERVALS],
            max_split: u64::MAX,
            max_unsplit_rest: 20 << 20,
            is_expandable: false,
            collect_above: 0.0,
            large_segment: 20 << 20,
            padding: 0,
            align: 0,
            ties: Ties::Address,
        }
    }
}

impl Rules {
    /// Those of the fork for Ascend NPUs: 32 bytes behind every request, and in expandable segments
    /// requests of 2 MiB and more at multiples of 16 KiB, if the block has room for it.
    #[must_use]
    pub fn of_npu(&self) -> Self {
        Self { padding: 32, align: 16 << 10, ..self.clone() }
    }

    /// Reads the settings that a snapshot contains, by dotted name. What is missing has its default.
    #[must_use]
    pub fn of(settings: &[(String, Value)]) -> Self {
        let mut rules = Self::default();
        for (name, value) in settings {
            match name.as_str() {
                "max_split_size" => {
                    // -1 stands for no limit.
                    rules.max_split = value.as_u64().filter(|&size| size > 0).unwrap_or(u64::MAX);
                }
                "expandable_segments" => rules.is_expandable = value.as_bool() == Some(true),
                "garbage_collection_threshold" => {
                    rules.collect_above = value.as_f64().unwrap_or(0.0);
                }
                "large_segment_size" => {
                    let size = value.as_u64().filter(|&size| size >= SMALL_SEGMENT);
                    rules.large_segment = size.unwrap_or(rules.large_segment);
                }
                _ => rules.set_division(name, value),
            }
        }
        rules
    }

    /// `roundup_power2_divisions.N` is for sizes from N MiB on, N a power of two.
    fn set_division(&mut self, name: &str, value: &Value) {
        let interval = name.strip_prefix("roundup_power2_divisions.");
        let interval = interval.and_then(|text| text.parse::<u64>().ok());
        let interval = interval.and_then(u64::checked_ilog2).map(|place| place as usize);
        if let (Some(place), Some(count)) = (interval, value.as_u64())
            && place < INTERVALS
        {
            self.divisions[place] = count;
        }
    }

    /// The size of the block for a request, before the rest of a found block is considered.
    #[must_use]
    #[inline]
    pub fn round(&self, requested: u64) -> u64 {
        let size = requested.saturating_add(self.padding);
        if size < MIN_BLOCK {
            return MIN_BLOCK;
        }
        let place = (size.ilog2() as usize).saturating_sub(20).min(INTERVALS - 1);
        let divisions = self.divisions[place];
        if divisions > 1 && size > MIN_BLOCK.saturating_mul(divisions) {
            if size.is_power_of_two() {
                return size;
            }
            let step = (1_u64 << size.ilog2()) >> divisions.ilog2();
            return size.checked_next_multiple_of(step.max(1)).unwrap_or(u64::MAX);
        }
        size.checked_next_multiple_of(MIN_BLOCK).unwrap_or(u64::MAX)
    }

    /// The size of a new segment for a block of this size.
    #[must_use]
    pub fn segment_size(&self, rounded: u64) -> u64 {
        if rounded <= MAX_SMALL {
            SMALL_SEGMENT
        } else if rounded < MIN_LARGE {
            self.large_segment
        } else {
            rounded.checked_next_multiple_of(ROUND_LARGE).unwrap_or(u64::MAX)
        }
    }

    /// The bytes that an expandable segment grows by.
    #[must_use]
    pub fn page(&self, is_small: bool) -> u64 {
        if is_small { SMALL_SEGMENT } else { self.large_segment }
    }

    /// Whether a block of this size may serve a rounded request that fits.
    #[must_use]
    #[inline]
    pub fn may_serve(&self, block: u64, rounded: u64) -> bool {
        if rounded < self.max_split {
            block < self.max_split
        } else {
            block < rounded.saturating_add(self.max_unsplit_rest)
        }
    }

    /// Where a rounded request begins in the free block that it takes.
    #[must_use]
    #[inline]
    pub fn begins(&self, block: u64, size: u64, rounded: u64) -> u64 {
        if self.align == 0 || !self.is_expandable || rounded < MIN_ALIGNED {
            return block;
        }
        let at = block.checked_next_multiple_of(self.align).unwrap_or(block);
        let has_room = (at - block).checked_add(rounded).is_some_and(|needed| needed <= size);
        if has_room { at } else { block }
    }

    /// The size of the block that a rounded request takes from a free one: all of it, or a part.
    #[must_use]
    #[inline]
    pub fn taken(&self, block: u64, rounded: u64, is_small: bool) -> u64 {
        let rest = block - rounded;
        let splits = if is_small || self.is_expandable {
            rest >= MIN_BLOCK
        } else {
            rest > MAX_SMALL && rounded < self.max_split
        };
        if splits { rounded } else { block }
    }
}
