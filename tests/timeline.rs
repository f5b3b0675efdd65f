//! The stack of live allocations at every moment, compared with its definition.

use std::cmp::Reverse;
use std::sync::Arc;

use proptest::prelude::*;
use snapviewer::lifetimes::{Allocation, BEFORE, Lifetimes, NO_STACK, peak_of};
use snapviewer::timeline::{LEAF, LiveStack, NO_LEAF, NO_MOMENT, Order, Rows, Timeline};

const ORDERS: [Order; 7] = [
    Order::Allocation,
    Order::Stack,
    Order::Size,
    Order::Lifetime,
    Order::Pool,
    Order::Stream,
    Order::Category,
];

/// An allocation: events since the one before it, events that it lives, bytes, stack, pool, stream,
/// and how many events before its end the free was requested.
type Made = (i64, i64, u64, u32, u16, i64, i64);

fn made() -> impl Strategy<Value = Made> {
    (0..3_i64, 0..40_i64, 0..50_u64, 0..4_u32, 0..3_u16, -1..3_i64, 0..4_i64)
}

/// A device with these allocations, the first few of them older than the recording.
fn device(older: usize, made: &[Made]) -> Lifetimes {
    let mut lives = Lifetimes::default();
    let mut alloc_event = BEFORE;
    let mut rows = Vec::new();
    for (number, &(since, lived, size, stack, pool, stream, pending)) in made.iter().enumerate() {
        alloc_event += if number < older { 0 } else { since + i64::from(number == older) };
        rows.push((alloc_event, alloc_event + 1 + lived, size, stack, pool, stream, pending));
    }
    let events = (alloc_event + 20).max(0);
    for (alloc_event, free_event, size, stack, pool, stream, pending) in rows {
        let free_event = free_event.min(events);
        lives.allocations.push(&Allocation {
            address: 0,
            size,
            stream,
            alloc_event,
            free_event,
            free_requested: if pending == 0 {
                BEFORE
            } else {
                (free_event - pending).max(alloc_event + 1)
            },
            stack,
            free_stack: NO_STACK,
            flags: 0,
            pool,
            category: (size % 5) as u8,
        });
    }
    let everything = vec![true; made.len()];
    let model = Model { lives: &lives, shown: &everything, order: Order::Allocation };
    let totals = (0..events as u32).map(|event| model.height(event + 1)).collect();
    let initial_bytes = model.height(0);
    Lifetimes { totals, initial_bytes, ..lives }
}

/// The definitions.
struct Model<'a> {
    lives: &'a Lifetimes,
    shown: &'a [bool],
    order: Order,
}

impl Model<'_> {
    fn is_alive(&self, which: usize, moment: u32) -> bool {
        let one = self.lives.allocations.get(which);
        one.alloc_event < i64::from(moment) && i64::from(moment) <= one.free_event
    }

    /// The allocations from the bottom to the top, alive or not.
    fn sorted(&self) -> Vec<usize> {
        let all = &self.lives.allocations;
        let lived = |which: usize| all.free_event[which] - all.alloc_event[which];
        let held = |stack: u32| -> i64 {
            let of_stack = (0..all.len()).filter(|&which| all.stack[which] == stack);
            of_stack.map(|which| lived(which) * all.size[which] as i64).sum()
        };
        let held: Vec<i64> = (0..4).map(held).collect();
        let mut sorted: Vec<usize> = (0..all.len()).collect();
        sorted.sort_by_key(|&which| match self.order {
            Order::Allocation => (Reverse(0), 0),
            Order::Stack => (Reverse(held[all.stack[which] as usize]), all.stack[which].into()),
            Order::Size => (Reverse(all.size[which] as i64), 0),
            Order::Lifetime => (Reverse(lived(which)), 0),
            Order::Pool => {
                (Reverse(0), if all.pool[which] == 0 { 99 } else { all.pool[which].into() })
            }
            Order::Stream => (Reverse(0), all.stream[which]),
            Order::Category => (Reverse(0), all.category[which].into()),
        });
        sorted
    }

    /// What is alive and shown, with its position and the byte where it begins.
    fn stack(&self, sorted: &[usize], moment: u32) -> Vec<(usize, u32, u64)> {
        let mut base = 0;
        let mut stack = Vec::new();
        for (position, &which) in sorted.iter().enumerate() {
            if self.shown[which] && self.is_alive(which, moment) {
                stack.push((position, which as u32, base));
                base += self.lives.allocations.size[which];
            }
        }
        stack
    }

    fn height(&self, moment: u32) -> u64 {
        let alive = (0..self.shown.len()).filter(|&which| self.is_alive(which, moment));
        alive
            .filter(|&which| self.shown[which])
            .map(|which| self.lives.allocations.size[which])
            .sum()
    }

    /// What is seen in each row of pixels. A leaf that is thinner than half a row is its heaviest.
    fn column(
        &self,
        stack: &[(usize, u32, u64)],
        bytes: (u64, u64),
        rows: u64,
    ) -> Vec<Option<u32>> {
        let size = |which: u32| self.lives.allocations.size[which as usize];
        let range = bytes.1 - bytes.0;
        let seen = |row: u64| {
            let centre = bytes.0 + (2 * row + 1) * range / (2 * rows);
            let &(position, which, _) = stack
                .iter()
                .find(|&&(_, which, base)| (base..base + size(which)).contains(&centre))?;
            let leaf: Vec<u32> = stack
                .iter()
                .filter(|one| one.0 / LEAF == position / LEAF)
                .map(|one| one.1)
                .collect();
            let is_thin = leaf.iter().map(|&which| size(which)).sum::<u64>() <= range / (2 * rows);
            let heaviest = leaf.into_iter().rev().max_by_key(|&which| size(which));
            if is_thin { heaviest } else { Some(which) }
        };
        (0..rows).map(seen).collect()
    }
}

/// Compares the largest of what is alive, and its sums by stack.
fn compare_alive(timeline: &Timeline, moment: u32, alive: impl Iterator<Item = u32>) {
    let all = &timeline.lives().allocations;
    let mut by_size: Vec<u32> = alive.collect();
    by_size.sort_by_key(|&which| (Reverse(all.size[which as usize]), which));
    for limit in [0, 1, 3, by_size.len(), by_size.len() + 1] {
        let largest = &by_size[..limit.min(by_size.len())];
        assert_eq!(timeline.largest_alive(moment, limit), largest);
    }
    let mut shares: Vec<(Reverse<u64>, u32, usize, u32)> = Vec::new();
    for stack in 0..4 {
        let of: Vec<u32> =
            by_size.iter().copied().filter(|&which| all.stack[which as usize] == stack).collect();
        if let Some(&largest) = of.first() {
            let sum = of.iter().map(|&which| all.size[which as usize]).sum();
            shares.push((Reverse(sum), stack, of.len(), largest));
        }
    }
    shares.sort_unstable();
    let found: Vec<_> = timeline
        .alive_by_stack(moment)
        .iter()
        .map(|share| (Reverse(share.bytes), share.stack, share.count, share.largest))
        .collect();
    assert_eq!(found, shares);
}

/// Compares everything that a timeline returns about some moments.
fn compare(lives: Lifetimes, order: Order, filter: Option<Vec<bool>>, moments: &[u32], rows: u64) {
    let shown = filter.clone().unwrap_or_else(|| vec![true; lives.allocations.len()]);
    let lives = Arc::new(lives);
    let timeline = Timeline::new(lives.clone(), order, filter).unwrap();
    let model = Model { lives: &lives, shown: &shown, order };
    let (sorted, all, events) = (model.sorted(), &lives.allocations, lives.totals.len());
    let totals: Vec<u64> = match events {
        0 => vec![model.height(0)],
        _ => (1..=events as u32).map(|moment| model.height(moment)).collect(),
    };
    assert_eq!(timeline.lives(), &*lives);
    assert_eq!(timeline.totals(), totals);
    assert_eq!(timeline.initial_bytes(), model.height(0));
    assert_eq!(timeline.shown(), shown.iter().filter(|&&one| one).count());
    let highest = |from: usize, to: usize| {
        (from..to)
            .max_by_key(|&event| (totals[event], Reverse(event)))
            .map(|event| (event, totals[event]))
    };
    let first_highest = if events == 0 { None } else { highest(0, events) };
    assert_eq!(timeline.peak(), peak_of(model.height(0), first_highest));
    assert_eq!(timeline.highest(0..0), NO_MOMENT);
    assert_eq!(timeline.event(NO_MOMENT), -1);
    for pair in moments.windows(2) {
        let (from, to) = (pair[0] as usize, (pair[1] as usize).min(events));
        if from < to {
            let event = highest(from, to).unwrap().0;
            assert_eq!(timeline.highest(from..to), event as u32 + 1);
            assert_eq!(timeline.event(timeline.moment(event)), event as i64);
        }
    }

    let top = totals.iter().copied().chain([model.height(0)]).max().unwrap().max(2 * rows);
    let bytes = (top / 5, top - top / 7);
    let pixels = Rows::new(&(bytes.0..bytes.1), rows as usize);
    let mut live_stack = LiveStack::new(&timeline);
    let mut column = vec![None; rows as usize];
    for &moment in moments {
        let stack = model.stack(&sorted, moment);
        let expected: Vec<(u32, u64)> =
            stack.iter().map(|&(_, which, base)| (which, base)).collect();
        assert_eq!(timeline.stack(moment), expected);
        let height = model.height(moment);
        for byte in [0, 1, height / 3, height / 2, height.saturating_sub(1), height] {
            let owner = expected
                .iter()
                .find(|&&(which, base)| (base..base + all.size[which as usize]).contains(&byte));
            assert_eq!(timeline.at(moment, byte), owner.map(|one| one.0));
        }

        // The column is drawn anew only from the lowest leaf that has changed.
        let lowest = live_stack.advance(moment);
        if lowest != NO_LEAF {
            let below = pixels.below(live_stack.below(lowest));
            column[below..].fill(None);
            let end =
                live_stack.walk(lowest, &pixels, |rows, which| column[rows].fill(Some(which)));
            assert_eq!(end, pixels.below(height));
        }
        assert_eq!(column, model.column(&stack, bytes, rows), "moment {moment}");
        assert_eq!(pixels.height(), rows as usize);

        let step = all.len().div_ceil(300).max(1);
        for which in (0..all.len()).step_by(step) {
            let place = expected.iter().find(|one| one.0 as usize == which).map(|one| one.1);
            assert_eq!(timeline.offset(which, moment), place);
            let extent =
                place.filter(|_| all.size[which] > 0).map(|base| base..base + all.size[which]);
            assert_eq!(live_stack.extent(which), extent);
        }

        compare_alive(&timeline, moment, expected.iter().map(|one| one.0));

        let mut pending = Vec::new();
        timeline.each_pending(moment, |which| pending.push(which as usize));
        pending.sort_unstable();
        let is_pending = |&which: &usize| {
            let one = all.get(which);
            let (request, free) = (one.free_requested, one.free_event);
            let is_open = request < i64::from(moment) && i64::from(moment) <= free;
            request != BEFORE && free - request > 1 && is_open
        };
        assert_eq!(pending, (0..all.len()).filter(is_pending).collect::<Vec<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_timeline_is_what_its_definition_is(
        older in 0..4_usize,
        made in proptest::collection::vec(made(), 0..120),
        order in proptest::sample::select(&ORDERS[..]),
        filter in proptest::option::of(proptest::collection::vec(any::<bool>(), 120)),
        step in 1..30_usize,
        rows in 1..60_u64,
    ) {
        let lives = device(older, &made);
        let filter = filter.map(|filter| filter[..made.len()].to_vec());
        let moments: Vec<u32> = (0..=lives.totals.len() as u32).step_by(step).collect();
        compare(lives, order, filter, &moments, rows);
    }
}

/// Enough for two sections of the stack: 64 × 64 leaves are one.
#[test]
fn a_timeline_of_many_allocations_is_what_its_definition_is() {
    let count = 2 * 64 * 64 * LEAF / 2 + 5_000;
    let mut lives = Lifetimes::default();
    let mut random = 1_u64;
    for number in 0..count {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let alloc_event = (number / 700) as i64 + BEFORE;
        let lasting = if random >> 60 == 0 { 1_000 } else { (random >> 40) as i64 % 3 };
        lives.allocations.push(&Allocation {
            address: 0,
            size: 1 + (random >> 33) % 900,
            stream: 0,
            alloc_event,
            free_event: alloc_event + 1 + lasting,
            free_requested: BEFORE,
            stack: (random >> 50) as u32 % 4,
            free_stack: NO_STACK,
            flags: 0,
            pool: 0,
            category: (random >> 40) as u8 % 5,
        });
    }
    let events = (count / 700 + 1) as i64;
    for free_event in &mut lives.allocations.free_event {
        *free_event = (*free_event).min(events);
    }
    let everything = vec![true; count];
    let model = Model { lives: &lives, shown: &everything, order: Order::Allocation };
    lives.totals = (1..=events as u32).map(|moment| model.height(moment)).collect();
    lives.initial_bytes =
        Model { lives: &lives, shown: &everything, order: Order::Allocation }.height(0);

    compare(lives.clone(), Order::Allocation, None, &[0, 3, 4, 90, 150, events as u32 - 3], 97);
    compare(lives, Order::Size, None, &[1, 100, events as u32], 40);
}
