//! The highest moments, and what must go to get below a limit.
//!
//! Two peaks are distinct if memory fell between them by at least a twentieth of the highest one.
//!
//! # Cost
//!
//! One pass over the totals for the peaks; one pass over events and allocations for each group that
//! must go.

use super::groups::{self, Group};
use super::keys::Keys;
use crate::lifetimes::{BEFORE, Lifetimes};

/// A moment that is higher than those around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peak {
    /// The first event with that much; -1 is before the first.
    pub event: i64,
    /// Live bytes.
    pub bytes: u64,
}

/// The distinct peaks, the highest first; of equals the first.
#[must_use]
pub fn peaks(lives: &Lifetimes) -> Vec<Peak> {
    let fall = (lives.peak_bytes / 20).max(1);
    let mut found = Vec::new();
    let mut high = Peak { event: BEFORE, bytes: lives.initial_bytes };
    let mut low = lives.initial_bytes;
    let mut is_rising = true;
    for (&bytes, event) in lives.totals.iter().zip(0..) {
        if is_rising {
            // An event wins a tie with the state before, as it does for the device's peak.
            if bytes > high.bytes || (bytes == high.bytes && high.event == BEFORE) {
                high = Peak { event, bytes };
            } else if high.bytes - bytes >= fall {
                found.push(high);
                (is_rising, low) = (false, bytes);
            }
        } else if bytes < low {
            low = bytes;
        } else if bytes - low >= fall {
            (is_rising, high) = (true, Peak { event, bytes });
        }
    }
    if is_rising && high.bytes > 0 {
        found.push(high);
    }
    found.sort_by_key(|peak| (std::cmp::Reverse(peak.bytes), peak.event));
    found
}

/// What must go to get below a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cut {
    /// The groups, in the order in which they were chosen, each with what it holds at the moment that
    /// was then the highest.
    pub groups: Vec<(i64, Group)>,
    /// The highest moment that is left.
    pub left: Option<Peak>,
}

/// Takes away the group that holds most at the highest moment, until all moments are at or below a
/// limit. The first moment is the peak, so no fewer groups can do there.
#[must_use]
pub fn cut(lives: &Lifetimes, keys: &Keys, limit: u64) -> Cut {
    let all = &lives.allocations;
    let mut kept = vec![true; all.len()];
    let mut is_gone = vec![false; keys.count];
    let mut totals = lives.totals.clone();
    let mut initial = lives.initial_bytes;
    let mut cut = Cut::default();
    loop {
        let highest = highest(initial, &totals);
        if highest.bytes <= limit {
            cut.left = Some(highest);
            return cut;
        }
        let alive = groups::alive(lives, keys, highest.event, Some(&kept));
        let mut over = highest.bytes - limit;
        for group in alive.groups {
            is_gone[group.id as usize] = true;
            cut.groups.push((highest.event, group));
            over = over.saturating_sub(group.bytes);
            if over == 0 {
                break;
            }
        }
        let mut changes = vec![0_i64; totals.len() + 1];
        for which in 0..all.len() {
            if kept[which] && is_gone[keys.ids[which] as usize] {
                kept[which] = false;
                let (size, free) = (all.size[which], all.free_event[which].max(0) as usize);
                match usize::try_from(all.alloc_event[which]) {
                    Ok(event) => changes[event] -= size as i64,
                    Err(_) => {
                        initial -= size;
                        changes[0] -= size as i64;
                    }
                }
                changes[free] += size as i64;
            }
        }
        let mut change = 0_i64;
        for (total, &step) in totals.iter_mut().zip(&changes) {
            change += step;
            *total = total.wrapping_add_signed(change);
        }
    }
}

fn highest(initial: u64, totals: &[u64]) -> Peak {
    let mut best = Peak { event: BEFORE, bytes: initial };
    for (&bytes, event) in totals.iter().zip(0..) {
        if bytes > best.bytes || (bytes == best.bytes && best.event == BEFORE) {
            best = Peak { event, bytes };
        }
    }
    best
}
