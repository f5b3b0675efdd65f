//! The orders in which allocations can be stacked, from the bottom.

use crate::lifetimes::Lifetimes;
use crate::named::named;

named! {
    /// A stacking order; equal allocations are in the order of allocation.
    pub enum Order {
        /// Older ones below.
        #[default]
        Allocation = "allocation",
        /// Allocations of one call stack together; the stacks that hold most for longest below.
        Stack = "stack",
        /// Large ones below.
        Size = "size",
        /// Those that live for more events below.
        Lifetime = "lifetime",
        /// By memory pool.
        Pool = "pool",
        /// By stream.
        Stream = "stream",
        /// By what they are for.
        Category = "category",
    }
}

/// A stacking order that is not the one of allocation.
#[derive(Debug)]
pub(super) struct Permutation {
    /// The position of each allocation.
    pub positions: Vec<u32>,
    /// The allocation at each position.
    pub allocations: Vec<u32>,
}

impl Permutation {
    /// Sorts the allocations; None if they are in that order.
    pub fn new(lives: &Lifetimes, order: Order, categories: &[u8]) -> Option<Self> {
        let all = &lives.allocations;
        let mut keyed: Vec<(u64, u32)> = match order {
            Order::Allocation => return None,
            Order::Stack => {
                let ranks = stack_ranks(lives);
                with_index(all.stack.iter().map(|&stack| u64::from(ranks[stack as usize])))
            }
            Order::Size => with_index(all.size.iter().map(|&size| !size)),
            Order::Lifetime => {
                let lives = all.free_event.iter().zip(&all.alloc_event);
                with_index(lives.map(|(&free, &alloc)| !((free - alloc) as u64)))
            }
            // 0, which is not known, comes last: what comes and goes is on top.
            Order::Pool => with_index(all.pool.iter().map(|&pool| u64::from(pool.wrapping_sub(1)))),
            // The sign bit turned over sorts as the signed number does.
            Order::Stream => with_index(all.stream.iter().map(|&stream| stream as u64 ^ (1 << 63))),
            Order::Category => with_index(categories.iter().map(|&category| u64::from(category))),
        };
        keyed.sort_unstable();
        let allocations: Vec<u32> = keyed.into_iter().map(|(_, index)| index).collect();
        let mut positions = vec![0; allocations.len()];
        for (position, &allocation) in allocations.iter().enumerate() {
            positions[allocation as usize] = position as u32;
        }
        Some(Self { positions, allocations })
    }

    /// A column, with each allocation's value at its position.
    pub fn apply<T: Copy>(&self, column: &[T]) -> Vec<T> {
        self.allocations.iter().map(|&which| column[which as usize]).collect()
    }
}

fn with_index(keys: impl Iterator<Item = u64>) -> Vec<(u64, u32)> {
    keys.zip(0..).collect()
}

/// The place of each stack: by the bytes that it holds, times the events for which it holds them, so
/// that what is there all the time is a calm floor and what comes and goes is on top; then by its id.
fn stack_ranks(lives: &Lifetimes) -> Vec<u32> {
    let all = &lives.allocations;
    let stacks = all.stack.iter().max().map_or(0, |&stack| stack as usize + 1);
    let mut held = vec![0_u128; stacks];
    for index in 0..all.len() {
        let events = (all.free_event[index] - all.alloc_event[index]) as u128;
        held[all.stack[index] as usize] += events * u128::from(all.size[index]);
    }
    let mut sorted: Vec<u32> = (0..stacks as u32).collect();
    sorted.sort_by_key(|&stack| std::cmp::Reverse(held[stack as usize]));
    let mut ranks = vec![0; stacks];
    for (rank, &stack) in (0..).zip(&sorted) {
        ranks[stack as usize] = rank;
    }
    ranks
}
