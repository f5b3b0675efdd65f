//! The replay of the allocator for each device of a recording: made at the first use, or from a bundle.

use std::sync::{Arc, OnceLock};

use super::{Content, Recording};
use crate::allocator::curves::Curves;
use crate::allocator::pending::{self, Pending};
use crate::allocator::state::{State, States};
use crate::allocator::{self, Replay};

/// A replay, and what follows from it.
#[derive(Debug)]
pub struct Replayed {
    /// The replay itself.
    pub replay: Replay,
    curves: OnceLock<Curves>,
    states: OnceLock<States>,
}

impl Replayed {
    pub(super) fn new(replay: Replay) -> Arc<Self> {
        Arc::new(Self { replay, curves: OnceLock::new(), states: OnceLock::new() })
    }
}

impl Recording {
    /// Replays the allocator for one device.
    #[must_use]
    pub fn replayed(&self, which: usize) -> Arc<Replayed> {
        let replay = || match &self.content {
            Content::Snapshot(snapshot) => allocator::replay(snapshot, which, &self.devices[which]),
            // Bundles have theirs from the start.
            Content::Bundle(_) => Replay::default(),
        };
        Arc::clone(self.replays[which].get_or_init(|| Replayed::new(replay())))
    }

    /// The curves of allocated, active and reserved memory.
    pub fn curves<'a>(&self, which: usize, replayed: &'a Replayed) -> &'a Curves {
        let lifetimes = &self.devices[which];
        replayed.curves.get_or_init(|| Curves::of(lifetimes, &replayed.replay))
    }

    /// The frees that waited for other streams.
    #[must_use]
    pub fn pending(&self, which: usize, replayed: &Replayed) -> Vec<Pending> {
        pending::pending(&self.devices[which], &replayed.replay, &self.times(which))
    }

    /// The segments and blocks after an event.
    #[must_use]
    pub fn state(&self, which: usize, replayed: &Replayed, event: i64) -> State {
        let lifetimes = &self.devices[which];
        let states = replayed.states.get_or_init(|| States::new(lifetimes));
        states.state(lifetimes, &replayed.replay, event)
    }
}
