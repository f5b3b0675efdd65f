//! The replay of the allocator for each device of a recording, made at the first use.

use std::sync::{Arc, OnceLock};

use super::{Content, Recording};
use crate::allocator::curves::Curves;
use crate::allocator::state::{State, States};
use crate::allocator::{self, Replay};
use crate::error::{Error, Result};

/// A replay, and what follows from it.
#[derive(Debug)]
pub struct Replayed {
    /// The replay itself.
    pub replay: Replay,
    curves: OnceLock<Curves>,
    states: OnceLock<States>,
}

impl Recording {
    /// Replays the allocator for one device.
    pub fn replayed(&self, which: usize) -> Result<Arc<Replayed>> {
        if let Some(found) = self.replays[which].get() {
            return Ok(Arc::clone(found));
        }
        let replay = match &self.content {
            Content::Snapshot(snapshot) => allocator::replay(snapshot, which, &self.devices[which]),
            Content::Bundle(_) => {
                return Err(Error::bundle("it has no segments; open the original snapshot")
                    .in_file(&self.path));
            }
        };
        let new = Replayed { replay, curves: OnceLock::new(), states: OnceLock::new() };
        Ok(Arc::clone(self.replays[which].get_or_init(|| Arc::new(new))))
    }

    /// The curves of allocated, active and reserved memory.
    pub fn curves<'a>(&self, which: usize, replayed: &'a Replayed) -> &'a Curves {
        let lifetimes = &self.devices[which];
        replayed.curves.get_or_init(|| Curves::of(lifetimes, &replayed.replay))
    }

    /// The segments and blocks after an event.
    #[must_use]
    pub fn state(&self, which: usize, replayed: &Replayed, event: i64) -> State {
        let lifetimes = &self.devices[which];
        let states = replayed.states.get_or_init(|| States::new(lifetimes));
        states.state(lifetimes, &replayed.replay, event)
    }
}
