//! The replay of a device's allocator in `allocations.json`.
//!
//! Block sizes are a packed column; segments, growths, releases and failed requests are lists of
//! numbers, of which there are few. Curves and states follow from them.
//!
//! # Invariants
//!
//! [`restore`] returns what [`store`] was given. What a stranger wrote is refused if an event, stack, pool
//! or sum is out of range; segments may overlap, as in a snapshot, where states can cope with it too.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::allocator::oom::Facts;
use crate::allocator::rules::SMALL_SEGMENT;
use crate::allocator::{
    Cause, Contradictions, Domain, Extent, Growth, Oom, Release, ReleaseCause, Replay, Rules,
};
use crate::bundle::document::damaged;
use crate::error::Result;
use crate::lifetimes::{BEFORE, Lifetimes};
use crate::store::pack::{self, Form};

/// Pool, small, stream.
type StoredDomain = (u16, bool, i64);

/// What a bundle has of a [`Replay`].
#[derive(Serialize, Deserialize)]
pub(super) struct StoredReplay<'a> {
    rules: Rules,
    has_settings: bool,
    uncertain_blocks: u64,
    pending_at_start: Vec<u32>,
    placements: u64,
    as_recorded: u64,
    contradictions: Contradictions,
    first_contradiction: Option<usize>,
    /// Bytes of each allocation's block beyond the requested ones; see [`slack`].
    #[serde(borrow)]
    slack: Cow<'a, str>,
    /// Address, size, domain, expandable, born, died.
    extents: Vec<(u64, u64, StoredDomain, bool, i64, i64)>,
    /// Search, event, `alloc`, stack, rounded, grown, domain, free, largest, outside, cause.
    #[allow(clippy::type_complexity)] // A row of a table.
    growths: Vec<(usize, usize, usize, u32, u64, u64, StoredDomain, u64, u64, u64, usize)>,
    /// Event, events, bytes, cause.
    releases: Vec<(usize, usize, u64, usize)>,
    ooms: Vec<Facts>,
}

/// The difference of a block's size and the requested one: of damaged files it may be negative.
fn slack(block: u64, requested: u64) -> u64 {
    pack::zigzag(block.wrapping_sub(requested))
}

fn domain(of: Domain) -> StoredDomain {
    (of.pool, of.is_small, of.stream)
}

/// Describes a replay.
pub(super) fn store(lifetimes: &Lifetimes, replay: &Replay) -> StoredReplay<'static> {
    let requested = &lifetimes.allocations.size;
    let slacks = replay.block_size.iter().zip(requested).map(|(&one, &size)| slack(one, size));
    let cause = |one: Cause| Cause::NAMES.iter().position(|(_, each)| *each == one).unwrap_or(0);
    let why = |one: ReleaseCause| {
        ReleaseCause::NAMES.iter().position(|(_, each)| *each == one).unwrap_or(0)
    };
    StoredReplay {
        rules: replay.rules.clone(),
        has_settings: replay.has_settings,
        uncertain_blocks: replay.uncertain_blocks,
        pending_at_start: replay.pending_at_start.clone(),
        placements: replay.placements,
        as_recorded: replay.as_recorded,
        contradictions: replay.contradictions.clone(),
        first_contradiction: replay.first_contradiction,
        slack: STANDARD.encode(pack::pack(slacks, Form::Plain)).into(),
        extents: replay
            .extents
            .iter()
            .map(|one| {
                let is_expandable = one.is_expandable;
                (one.address, one.size, domain(one.domain), is_expandable, one.born, one.died)
            })
            .collect(),
        growths: replay
            .growths
            .iter()
            .map(|one| {
                let place = domain(one.domain);
                let sizes = (one.free_bytes, one.largest_bytes, one.outside_bytes);
                let (rounded, grown) = (one.rounded_bytes, one.grown_bytes);
                let (searched, event, alloc) = (one.searched_event, one.event, one.alloc_event);
                let (free, largest, outside) = sizes;
                let (stack, why) = (one.stack, cause(one.cause));
                (searched, event, alloc, stack, rounded, grown, place, free, largest, outside, why)
            })
            .collect(),
        releases: replay
            .releases
            .iter()
            .map(|one| (one.event, one.events, one.bytes, why(one.cause)))
            .collect(),
        ooms: replay.ooms.iter().map(|oom| (**oom).clone()).collect(),
    }
}

/// What a device has, with which a stored replay must agree.
struct Device<'a> {
    lifetimes: &'a Lifetimes,
    events: usize,
    stacks: u32,
}

impl Device<'_> {
    fn domain(&self, (pool, is_small, stream): StoredDomain) -> Option<Domain> {
        let is_known = usize::from(pool) <= self.lifetimes.pools.len();
        is_known.then_some(Domain { pool, is_small, stream })
    }

    fn blocks(&self, packed: &str) -> Result<Vec<u64>> {
        let requested = &self.lifetimes.allocations.size;
        let packed = STANDARD.decode(packed).map_err(|_| damaged("a column is not base64"))?;
        let mut sizes = requested.iter();
        let mut sum = 0_u64;
        let too_large = "its blocks add up to more than 64 bits can hold";
        pack::unpack_as(&packed, requested.len(), too_large, |value| {
            let size = sizes.next()?.wrapping_add(pack::unzigzag(value));
            sum = sum.checked_add(size)?;
            Some(size)
        })
        .map_err(damaged)
    }

    fn extents(&self, stored: &StoredReplay<'_>) -> Option<Vec<Extent>> {
        let events = self.events as i64;
        let (mut sum, mut last) = (0_u64, (BEFORE, 0));
        let one = |&(address, size, place, is_expandable, born, died): &(_, u64, _, _, _, _)| {
            sum = sum.checked_add(size)?;
            u64::checked_add(address, size)?;
            let is_in_order = std::mem::replace(&mut last, (born, address)) <= last;
            let is_possible = is_in_order && (born..=events).contains(&died) && size > 0;
            let domain = self.domain(place)?;
            is_possible.then_some(Extent { address, size, domain, is_expandable, born, died })
        };
        stored.extents.iter().map(one).collect()
    }

    fn growths(&self, stored: &StoredReplay<'_>) -> Option<Vec<Growth>> {
        stored
            .growths
            .iter()
            .map(
                |&(
                    searched,
                    event,
                    alloc,
                    stack,
                    rounded,
                    grown,
                    place,
                    free,
                    largest,
                    outside,
                    cause,
                )| {
                    let is_in_order = searched <= event && event < alloc && alloc < self.events;
                    let is_possible = is_in_order && stack < self.stacks;
                    let domain = self.domain(place).filter(|_| is_possible)?;
                    Some(Growth {
                        searched_event: searched,
                        event,
                        alloc_event: alloc,
                        stack,
                        rounded_bytes: rounded,
                        grown_bytes: grown,
                        domain,
                        free_bytes: free,
                        largest_bytes: largest,
                        outside_bytes: outside,
                        cause: Cause::NAMES.get(cause)?.1,
                    })
                },
            )
            .collect()
    }

    fn releases(&self, stored: &StoredReplay<'_>) -> Option<Vec<Release>> {
        let one = |&(event, events, bytes, cause): &(usize, usize, u64, usize)| {
            let end = event.checked_add(events).filter(|&end| end <= self.events);
            let cause = ReleaseCause::NAMES.get(cause).filter(|_| end.is_some())?.1;
            Some(Release { event, events, bytes, cause })
        };
        stored.releases.iter().map(one).collect()
    }

    fn ooms(&self, stored: &StoredReplay<'_>) -> Option<Vec<Oom>> {
        let one = |facts: &Facts| {
            let live = self.lifetimes.totals.get(facts.event);
            let domains = [Some(facts.domain), facts.other.map(|(other, _)| other)];
            let are_known =
                domains.into_iter().flatten().all(|one| self.domain(domain(one)).is_some());
            let is_possible =
                live == Some(&facts.live_bytes) && facts.stack < self.stacks && are_known;
            // The verdict follows.
            is_possible.then(|| Oom::judged(facts.clone()))
        };
        stored.ooms.iter().map(one).collect()
    }
}

/// Checks what a bundle has, and completes it.
pub(super) fn restore(
    stored: StoredReplay<'_>,
    lifetimes: &Lifetimes,
    stacks: u32,
) -> Result<Replay> {
    let events = lifetimes.totals.len();
    let device = Device { lifetimes, events, stacks };
    let block_size = device.blocks(&stored.slack)?;
    let lists = (
        device.extents(&stored),
        device.growths(&stored),
        device.releases(&stored),
        device.ooms(&stored),
    );
    let (Some(extents), Some(growths), Some(releases), Some(ooms)) = lists else {
        return Err(damaged("its segments are out of range or order"));
    };
    let pending = &stored.pending_at_start;
    let are_older = pending
        .last()
        .is_none_or(|&last| lifetimes.allocations.alloc_event.get(last as usize) == Some(&BEFORE));
    let is_possible = pending.is_sorted_by(|one, next| one < next)
        && are_older
        && stored.as_recorded <= stored.placements
        && stored.first_contradiction.is_none_or(|first| first <= events)
        && stored.contradictions.checked_total().is_some()
        && stored.rules.large_segment >= SMALL_SEGMENT;
    if !is_possible {
        return Err(damaged("its replay of the allocator is not possible"));
    }
    Ok(Replay {
        rules: stored.rules,
        has_settings: stored.has_settings,
        block_size,
        uncertain_blocks: stored.uncertain_blocks,
        pending_at_start: stored.pending_at_start,
        extents,
        growths,
        releases,
        ooms,
        placements: stored.placements,
        as_recorded: stored.as_recorded,
        contradictions: stored.contradictions,
        first_contradiction: stored.first_contradiction,
    })
}
