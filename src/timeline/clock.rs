//! Wall-clock time as an axis.
//!
//! The recorded times may stand still or run backwards; the clock does not run backwards. A program
//! that waits for minutes between two events leaves nothing to see but the wait: the clock can cut
//! such gaps short, and records where.

use std::ops::Range;

/// When events happened, in microseconds since the first one.
#[derive(Debug)]
pub struct Clock {
    /// The Unix time of the first event.
    pub start_us: u64,
    /// Of each event, on this clock.
    pub at_us: Vec<u64>,
    /// Where it was cut short.
    pub gaps: Vec<Gap>,
}

/// A long time without events that was cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last event before it.
    pub after: usize,
    /// When it begins, on this clock.
    pub from_us: u64,
    /// How long it is on this clock.
    pub shown_us: u64,
    /// How long it was.
    pub real_us: u64,
}

/// A gap that is cut short takes at most this part of the axis.
const GAP_PART: f64 = 0.02;

/// A gap that is less than this many times as long as a cut one would be stays as it is.
const CUT_FROM: u64 = 4;

impl Clock {
    /// The clock of some recorded times; None if there are none.
    #[must_use]
    pub fn new(times: &[u64], cut_gaps: bool) -> Option<Self> {
        // An event without a time has that of the one before it.
        let start_us = *times.iter().find(|&&time| time != 0)?;
        let mut now = start_us;
        let at_us: Vec<u64> = times
            .iter()
            .map(|&time| {
                now = now.max(time);
                now - start_us
            })
            .collect();
        let plain = Self { start_us, at_us, gaps: Vec::new() };
        Some(if cut_gaps { plain.cut() } else { plain })
    }

    /// From the first event to the last.
    #[must_use]
    pub fn length_us(&self) -> u64 {
        self.at_us.last().copied().unwrap_or(0)
    }

    /// Cuts the gaps that would take several times their part of the axis. (Those that take little more
    /// are no reason to bend it.)
    fn cut(mut self) -> Self {
        let longest = self.longest_gap();
        let mut cut = 0;
        let mut before = 0;
        for event in 0..self.at_us.len() {
            let real = self.at_us[event];
            let gap = real - before;
            if gap / CUT_FROM > longest {
                let from_us = before - cut;
                let after = event - 1;
                self.gaps.push(Gap { after, from_us, shown_us: longest, real_us: gap });
                cut += gap - longest;
            }
            before = real;
            self.at_us[event] = real - cut;
        }
        self
    }

    /// The longest gap that takes no more than its part of what is left when longer ones are cut.
    fn longest_gap(&self) -> u64 {
        let gaps = || self.at_us.windows(2).map(|pair| pair[1] - pair[0]);
        let mut longest = u64::MAX;
        // Each round only cuts more; it ends where the lengths fit, or at nothing.
        for _ in 0..64 {
            let length: u64 = gaps().map(|gap| gap.min(longest)).sum();
            let next = ((length as f64 * GAP_PART) as u64).max(1);
            if next >= longest {
                break;
            }
            longest = next;
        }
        longest
    }

    /// The time since the first event that this clock shows as `us`.
    #[must_use]
    pub fn real_us(&self, us: f64) -> f64 {
        let mut more = 0.0;
        for gap in &self.gaps {
            let inside = us - gap.from_us as f64;
            if inside <= 0.0 {
                break;
            }
            let (shown, real) = (gap.shown_us as f64, gap.real_us as f64);
            more += (inside / shown).min(1.0) * (real - shown);
        }
        us + more
    }

    /// The events whose states a stretch of time shows: from the last one at or before its beginning
    /// on, up to those before its end.
    #[must_use]
    pub fn events(&self, from_us: i64, to_us: i64) -> Range<usize> {
        // A stretch that begins before the first event begins with that.
        let until =
            |us: i64| self.at_us.partition_point(|&at| i64::try_from(at).is_ok_and(|at| at < us));
        let first = until(from_us.saturating_add(1)).max(1) - 1;
        first..until(to_us).max(first + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_stands_still_where_the_recorded_time_runs_backwards() {
        let clock = Clock::new(&[1000, 1010, 1005, 1020], false).unwrap();

        assert_eq!((clock.start_us, clock.at_us), (1000, vec![0, 10, 10, 20]));
    }

    #[test]
    fn a_long_wait_takes_two_percent_of_the_axis_and_is_listed() {
        let busy = (100..=1100).map(|event| event * 10);
        let times: Vec<u64> = busy.clone().chain(busy.map(|time| time + 60_000_000)).collect();

        let clock = Clock::new(&times, true).unwrap();

        let [gap] = clock.gaps[..] else { panic!("{:?}", clock.gaps) };
        assert_eq!((gap.after, gap.from_us, gap.real_us), (1000, 10_000, 60_000_000 - 10_000));
        assert!((gap.shown_us as f64) <= GAP_PART * clock.length_us() as f64 + 1.0);
        assert_eq!(clock.length_us(), 20_000 + gap.shown_us);
        assert_eq!(clock.real_us(5_000.0) as u64, 5_000, "before the gap");
        assert_eq!(clock.real_us(clock.length_us() as f64) as u64, 60_010_000, "after it");
    }

    #[test]
    fn a_stretch_of_time_shows_the_state_before_it_and_its_events() {
        let clock = Clock::new(&[100, 110, 110, 120], false).unwrap();

        assert_eq!(clock.events(0, 5), 0..1);
        assert_eq!(clock.events(5, 10), 0..1, "nothing happens here");
        assert_eq!(clock.events(5, 11), 0..3);
        assert_eq!(clock.events(10, 15), 2..3, "the last of two at a time");
        assert_eq!(clock.events(20, 25), 3..4);
        assert_eq!(clock.events(-5, 5), 0..1, "it begins before the first event");
    }
}
