//! Keeps a forked process from waiting for threads that it does not have.
//!
//! A fork copies one thread, and the locks that the others hold, SQLite's own included. So while nothing
//! uses a database, a fork is harmless; a child that was forked in the middle of a query gets an error.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Result};

/// How many threads use a database, and of which process.
static ACTIVE: AtomicU32 = AtomicU32::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Marks this thread as one that uses a database, until it is dropped.
pub(crate) struct Active(());

impl Active {
    /// Fails in a process that was forked while another thread used a database.
    pub(crate) fn new() -> Result<Self> {
        let (now, before) = (std::process::id(), PROCESS.load(Ordering::Acquire));
        if before != now {
            if before != 0 && ACTIVE.load(Ordering::Acquire) > 0 {
                return Err(Error::bundle(
                    "this process was forked while another thread was reading or writing a bundle; \
                     start it with the method 'spawn' instead",
                ));
            }
            PROCESS.store(now, Ordering::Release);
        }
        ACTIVE.fetch_add(1, Ordering::AcqRel);
        Ok(Self(()))
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        ACTIVE.fetch_sub(1, Ordering::AcqRel);
    }
}
