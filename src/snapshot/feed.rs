//! Passes events from the reader to their columns, on a second thread.
//!
//! The reader makes events one at a time. A worker packs them, a chunk at a time, and shows them to
//! a [`Follow`]er as soon as it is known which list they are in, while the reader goes on.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

use crate::snapshot::events::{CHUNK, Event, Events};

/// An observer that sees the events of each list in order, while they are being read.
pub trait Follow {
    /// About how many events may come, at most.
    fn expect(&mut self, _events: usize) {}

    /// The next events of a list. Their rows follow those shown before, unless a file is very odd.
    fn rows(&mut self, list: u32, rows: Range<usize>, events: &[Event]);
}

/// No observer.
impl Follow for () {
    fn rows(&mut self, _list: u32, _rows: Range<usize>, _events: &[Event]) {}
}

/// Some rows are in a list.
#[derive(Debug, Clone)]
struct Listed {
    list: u32,
    rows: Range<usize>,
}

struct Message {
    events: Vec<Event>,
    listed: Vec<Listed>,
}

/// The reader's end.
pub(super) struct Feed {
    /// Events that have not been sent yet. Full chunks are sent when the next event comes, so that
    /// the last event can still be changed.
    current: Vec<Event>,
    first_row: usize,
    listed: Vec<Listed>,
    /// None once all is sent.
    to_worker: Option<SyncSender<Message>>,
    /// Chunks that the worker is done with: new memory would cost more than all the packing.
    used: Receiver<Vec<Event>>,
}

/// The worker's end.
pub(super) struct Worker<F> {
    from_feed: Receiver<Message>,
    used: std::sync::mpsc::Sender<Vec<Event>>,
    follower: F,
}

/// A file with fewer bytes is read before a thread would have begun. All its events fit the channel,
/// so that the worker can do its part afterwards.
pub(super) const WORTH_A_THREAD: usize = 1 << 18;

/// No event takes fewer bytes than this.
const LEAST_BYTES: usize = 11;

/// How many chunks may wait; a reader that is faster than the worker waits then.
const MAX_WAITING: usize = 8;
const _: () = assert!(WORTH_A_THREAD / LEAST_BYTES / CHUNK < MAX_WAITING);

/// Both ends.
pub(super) fn feed<F: Follow>(follower: F) -> (Feed, Worker<F>) {
    let (to_worker, from_feed) = sync_channel(MAX_WAITING);
    let (to_feed, used) = channel();
    let feed = Feed {
        current: Vec::new(),
        first_row: 0,
        listed: Vec::new(),
        to_worker: Some(to_worker),
        used,
    };
    (feed, Worker { from_feed, used: to_feed, follower })
}

impl Feed {
    /// How many events there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.first_row + self.current.len()
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, event: &Event) {
        if self.current.len() == CHUNK {
            self.send();
        }
        self.current.push(*event);
    }

    /// An event that can still be changed: the last one can, always.
    pub fn get_mut(&mut self, row: usize) -> Option<&mut Event> {
        self.current.get_mut(row.checked_sub(self.first_row)?)
    }

    /// Notes that a list goes on with these rows.
    pub fn list(&mut self, list: u32, rows: Range<usize>) {
        self.listed.push(Listed { list, rows });
    }

    /// Sends what is left: the worker can end.
    pub fn finish(&mut self) {
        self.send();
        self.to_worker = None;
    }

    #[cold]
    fn send(&mut self) {
        let next = self.used.try_recv().unwrap_or_else(|_| Vec::with_capacity(CHUNK));
        let events = std::mem::replace(&mut self.current, next);
        self.first_row += events.len();
        let end = self.first_row;
        let mut listed = Vec::new();
        self.listed.retain_mut(|later| {
            let rows = later.rows.start..later.rows.end.min(end);
            later.rows.start = rows.end;
            if !rows.is_empty() {
                listed.push(Listed { rows, list: later.list });
            }
            !later.rows.is_empty()
        });
        if let Some(to_worker) = &self.to_worker {
            // It fails only if the worker is gone, and then joining it returns the reason.
            let _ = to_worker.send(Message { events, listed });
        }
    }
}

impl<F: Follow> Worker<F> {
    /// Works until the reader is done.
    pub fn run(mut self) -> (Events, F) {
        let mut events = Events::default();
        // The last two chunks, unpacked: lists are nearly always noted while their rows are here.
        let mut last = (0, Vec::new());
        let mut unpacked = Vec::new();
        for Message { events: chunk, listed } in self.from_feed {
            let first_row = events.len();
            events.push_chunk(&chunk);
            for Listed { list, mut rows } in listed {
                while !rows.is_empty() {
                    let within = |first: usize, chunk: &[Event]| {
                        let from =
                            rows.start.checked_sub(first).filter(|&from| from < chunk.len())?;
                        Some(from..chunk.len().min(rows.end - first))
                    };
                    let part = if let Some(part) = within(first_row, &chunk) {
                        &chunk[part]
                    } else if let Some(part) = within(last.0, &last.1) {
                        &last.1[part]
                    } else {
                        unpacked.clear();
                        unpacked.extend(events.iter(rows.start..rows.end.min(rows.start + CHUNK)));
                        &unpacked
                    };
                    let end = rows.start + part.len();
                    self.follower.rows(list, rows.start..end, part);
                    rows.start = end;
                }
            }
            let (_, mut used) = std::mem::replace(&mut last, (first_row, chunk));
            used.clear();
            // It fails only if the reader is done.
            let _ = self.used.send(used);
        }
        (events, self.follower)
    }
}
