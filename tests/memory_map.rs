//! Pictures of the allocator's memory, compared with their definition.

use std::sync::Arc;

use proptest::prelude::*;
use snapviewer::allocator::Domain;
use snapviewer::allocator::state::{BlockAt, BlockState, SegmentAt, State};
use snapviewer::raster::{
    BACKGROUND, Canvas, MapRow, Measures, MemoryMap, Shown, SortBy, Style, Theme,
};

/// A block: its bytes, the requested ones, and its state.
type Block = (u64, u64, u8);
/// A segment: pool, whether it is small, stream, the event that it came with, its blocks.
type Segment = (u16, bool, i64, i64, Vec<Block>);

fn segments() -> impl Strategy<Value = Vec<Segment>> {
    let block = (1..40_u64, 0..50_u64, 0..3_u8);
    let blocks = prop::collection::vec(block, 1..8);
    prop::collection::vec((0..2_u16, any::<bool>(), 0..2_i64, -1..5_i64, blocks), 0..6)
}

fn state(segments: &[Segment]) -> State {
    let mut state = State::default();
    let (mut address, mut allocation) = (1000, 0);
    for (pool, is_small, stream, born, blocks) in segments {
        let (start, first) = (address, state.blocks.len());
        for &(size, requested, kind) in blocks {
            let kind =
                [BlockState::Allocated, BlockState::Pending, BlockState::Free][kind as usize];
            let is_free = kind == BlockState::Free;
            state.blocks.push(BlockAt {
                address,
                size,
                requested: if is_free { 0 } else { requested },
                state: kind,
                allocation: (!is_free).then_some(allocation),
            });
            allocation += u32::from(!is_free);
            address += size;
        }
        state.segments.push(SegmentAt {
            address: start,
            size: address - start,
            domain: Domain { pool: *pool, is_small: *is_small, stream: *stream },
            is_expandable: false,
            born: *born,
            blocks: first..state.blocks.len(),
        });
        address += 7;
    }
    state
}

fn measures() -> impl Strategy<Value = Measures> {
    (1..30_usize, 1..100_u64, 1..7_u32, 0..3_u32, 0..6_u32).prop_map(
        |(width, row_bytes, row, gap, heading)| Measures { width, row_bytes, row, gap, heading },
    )
}

fn sorts() -> impl Strategy<Value = SortBy> {
    prop::sample::select(vec![SortBy::Address, SortBy::Size, SortBy::Waste, SortBy::Age])
}

/// The definitions.
struct Model<'a> {
    state: &'a State,
    measures: Measures,
    style: &'a Style,
}

impl Model<'_> {
    fn waste(&self, segment: &SegmentAt) -> u64 {
        let blocks = &self.state.blocks[segment.blocks.clone()];
        blocks.iter().map(|one| one.size.saturating_sub(one.requested)).sum()
    }

    /// Every row from the top.
    fn rows(&self, sort: SortBy) -> Vec<MapRow> {
        let mut all: Vec<usize> = (0..self.state.segments.len()).collect();
        let number = |place: &usize| {
            let one = &self.state.segments[*place];
            match sort {
                SortBy::Address => 0,
                SortBy::Size => -(one.size as i64),
                SortBy::Waste => -(self.waste(one) as i64),
                SortBy::Age => one.born,
            }
        };
        // They are in the order of addresses, and sorting is stable.
        all.sort_by_key(number);
        all.sort_by_key(|place| {
            let Domain { pool, is_small, stream } = self.state.segments[*place].domain;
            (pool, is_small, stream)
        });
        let (mut rows, mut top, mut headings) = (Vec::new(), 0, 0);
        for (index, &place) in all.iter().enumerate() {
            let domain = |place: usize| self.state.segments[place].domain;
            if index == 0 || domain(all[index - 1]) != domain(place) {
                rows.push(MapRow { top, shown: Shown::Heading(headings) });
                top += u64::from(self.measures.heading);
                headings += 1;
            }
            let mut part = 0;
            while part * self.row_bytes() < self.state.segments[place].size {
                rows.push(MapRow { top, shown: Shown::Segment(place, part) });
                top += u64::from(self.measures.row + self.measures.gap);
                part += 1;
            }
        }
        rows
    }

    fn row_bytes(&self) -> u64 {
        self.measures.row_bytes.max(self.measures.width as u64)
    }

    /// The bytes of a segment that a pixel of a row stands for.
    fn bytes(&self, part: u64, x: usize) -> std::ops::Range<u64> {
        let edge = |x: usize| {
            part * self.row_bytes() + x as u64 * self.row_bytes() / self.measures.width as u64
        };
        edge(x)..edge(x + 1)
    }

    /// The block of a pixel, and whether it is slack: that of which it has the most bytes.
    fn block(&self, place: usize, part: u64, x: usize) -> Option<(usize, bool)> {
        let segment = &self.state.segments[place];
        let (mut best, mut most) = (None, 0);
        for block in segment.blocks.clone() {
            let one = &self.state.blocks[block];
            for is_slack in [false, true] {
                let count = self
                    .bytes(part, x)
                    .map(|byte| segment.address + byte)
                    .filter(|&byte| byte >= one.address && byte < one.address + one.size)
                    .filter(|&byte| {
                        let is_used = byte < one.address + one.requested;
                        is_slack == (one.state != BlockState::Free && !is_used)
                    })
                    .count();
                if count > most {
                    (best, most) = (Some((block, is_slack)), count);
                }
            }
        }
        best
    }

    /// The colour and the allocation of a pixel, without a selection.
    fn pixel(&self, row: Option<MapRow>, x: usize, y: u64) -> (u32, u32) {
        let nothing = (self.style.background, BACKGROUND);
        let Some(MapRow { top, shown: Shown::Segment(place, part) }) = row else { return nothing };
        let line = y - top;
        let tall = u64::from(self.measures.row);
        let Some((block, is_slack)) = self.block(place, part, x).filter(|_| line < tall) else {
            return nothing;
        };
        let same = |x: usize| self.block(place, part, x).is_some_and(|(other, _)| other == block);
        let goes_on = x + 1 < self.measures.width && same(x + 1);
        let is_edge = x > 0 && !same(x - 1) && goes_on;
        let one = &self.state.blocks[block];
        let mut color = one.allocation.map_or(self.style.free, |it| self.style.colors[it as usize]);
        if is_edge {
            color = mixed(color, self.style.background, 2);
        }
        let is_gap = (x as u64 + line) % 6 >= 3;
        if is_slack {
            let is_thin = 3 * (tall - line) > tall + 2;
            color = if is_thin { self.style.free } else { color };
        } else if one.state == BlockState::Pending && is_gap {
            color = mixed(color, self.style.background, 3);
        }
        (color, one.allocation.unwrap_or(BACKGROUND))
    }
}

fn mixed(one: u32, other: u32, quarters: u32) -> u32 {
    let mut bytes = one.to_le_bytes();
    for (byte, other) in bytes.iter_mut().zip(other.to_le_bytes()).take(3) {
        *byte = (u32::from(*byte / 4) * (4 - quarters) + u32::from(other / 4) * quarters) as u8;
    }
    u32::from_le_bytes(bytes)
}

fn style(selected: Option<u32>) -> Style {
    let colors: Vec<u32> = (0..64).map(|one: u32| 0xff00_0000 | (one * 0x0003_0507)).collect();
    Style::new(Theme::Light, Arc::from(colors), selected)
}

proptest! {
    #[test]
    fn a_map_is_what_its_definition_draws(
        segments in segments(), measures in measures(), sort in sorts(), top in 0..40_u64
    ) {
        let (state, style, height) = (state(&segments), style(None), 60);
        let model = Model { state: &state, measures, style: &style };
        let rows = model.rows(sort);

        let map = MemoryMap::new(&state, sort, measures);
        let picture = map.draw(&state, &style, top, height, Canvas::default());

        let ends = |place: usize| rows.get(place + 1).map_or(map.height(), |next| next.top);
        let ids = picture.ids();
        for y in 0..height {
            let from_top = top + y as u64;
            let is_there = |place: &usize| (rows[*place].top..ends(*place)).contains(&from_top);
            let row = (0..rows.len()).find(is_there).map(|place| rows[place]);
            for x in 0..measures.width {
                let (color, id) = model.pixel(row, x, from_top);
                let drawn = u32::from_le_bytes(picture.canvas.pixels[y * measures.width + x]);
                prop_assert_eq!(drawn, color, "pixel {} {}", x, y);
                prop_assert_eq!(ids[x * height + height - 1 - y], id, "id {} {}", x, y);
                let found = map.at(&state, x, from_top);
                let owner = found.and_then(|(_, block)| state.blocks[block].allocation);
                prop_assert_eq!(owner.unwrap_or(BACKGROUND), id, "block at {} {}", x, y);
            }
        }
    }

    #[test]
    fn the_rows_in_view_are_those_of_the_whole(
        segments in segments(), measures in measures(), sort in sorts(), top in 0..60_u64,
        height in 1..40_u64
    ) {
        let (state, style) = (state(&segments), style(None));
        let model = Model { state: &state, measures, style: &style };
        let map = MemoryMap::new(&state, sort, measures);
        let all = model.rows(sort);

        let rows = map.rows(top..top + height);

        let ends = |place: usize| all.get(place + 1).map_or(map.height(), |next| next.top);
        let expected: Vec<MapRow> = (0..all.len())
            .filter(|&place| all[place].top < top + height && ends(place) > top)
            .map(|place| all[place])
            .collect();
        // A heading without height is nowhere.
        let seen: Vec<MapRow> = rows.into_iter().filter(|row| expected.contains(row)).collect();
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn a_selection_changes_only_what_is_around_its_block(
        segments in segments(), measures in measures(), chosen in 0..20_u32
    ) {
        let state = state(&segments);
        let map = MemoryMap::new(&state, SortBy::Address, measures);
        let plain = map.draw(&state, &style(None), 0, 200, Canvas::default());

        let marked = map.draw(&state, &style(Some(chosen)), 0, 200, Canvas::default());

        prop_assert_eq!(plain.ids(), marked.ids());
        let is_there = state.blocks.iter().any(|block| block.allocation == Some(chosen));
        prop_assert_eq!(map.top_of(&state, chosen).is_some(), is_there);
        if !is_there {
            prop_assert_eq!(&plain.canvas.pixels, &marked.canvas.pixels);
        }
    }
}

#[test]
fn the_largest_possible_segment_is_laid_out() {
    let block = BlockAt {
        address: 0,
        size: u64::MAX,
        requested: 0,
        state: BlockState::Free,
        allocation: None,
    };
    let domain = Domain { pool: 1, is_small: false, stream: 0 };
    let segment = SegmentAt {
        address: 0,
        size: u64::MAX,
        domain,
        is_expandable: false,
        born: -1,
        blocks: 0..1,
    };
    let state = State { segments: vec![segment], blocks: vec![block], unplaced: Vec::new() };
    let measures = Measures { width: 10, row_bytes: 1, row: 4, gap: 1, heading: 9 };

    let map = MemoryMap::new(&state, SortBy::Waste, measures);

    assert_eq!(map.rows(9..19).len(), 2, "only what is in view");
    assert_eq!(map.at(&state, 3, 1 << 40), Some((0, 0)));
}
