//! Many tasks on several threads; progress and cancellation are handled on the caller's.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::error::Result;
use crate::progress::Progress;

/// How often the caller's thread looks how far the others are.
const LOOK: Duration = Duration::from_millis(20);

/// Threads that work together. A single one is the caller's.
pub(super) struct Threads<'a> {
    pub count: usize,
    pub progress: &'a Progress<'a>,
}

impl Threads<'_> {
    /// Does tasks `0..tasks`, each on one of the threads, and returns what each thread has gathered.
    ///
    /// Which thread does which task is left to chance, so the result must not depend on it. Stops at
    /// the first error.
    pub fn spread<S: Send>(
        &self,
        tasks: u64,
        start: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, u64) -> Result<()> + Sync,
    ) -> Result<Vec<S>> {
        if self.count <= 1 {
            let mut state = start();
            for task in 0..tasks {
                work(&mut state, task)?;
                self.progress.at(task + 1, tasks)?;
            }
            return Ok(vec![state]);
        }
        self.run(tasks, |shared| {
            let mut state = start();
            while let Some(task) = shared.next(tasks) {
                work(&mut state, task)?;
                shared.is_done();
            }
            Ok(state)
        })
    }

    /// Does steps `0..steps` in rows: the first row has the steps 0, `rows`, 2 × `rows`, …. Each row is
    /// done in its order by one thread, and what the rows have gathered is returned in theirs, so the
    /// result does not depend on the threads.
    pub fn in_rows<S: Send>(
        &self,
        steps: u64,
        rows: u64,
        start: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, u64) -> Result<()> + Sync,
    ) -> Result<Vec<S>> {
        let steps_of = |row: u64| (row..steps).step_by(rows as usize);
        if self.count <= 1 {
            let (mut states, mut done) = (Vec::new(), 0);
            for row in 0..rows {
                let mut state = start();
                for step in steps_of(row) {
                    work(&mut state, step)?;
                    done += 1;
                    self.progress.at(done, steps)?;
                }
                states.push(state);
            }
            return Ok(states);
        }
        let found = self.run(steps, |shared| {
            let mut found = Vec::new();
            while let Some(row) = shared.next(rows) {
                let mut state = start();
                for step in steps_of(row).take_while(|_| !shared.is_over()) {
                    work(&mut state, step)?;
                    shared.is_done();
                }
                found.push((row, state));
            }
            Ok(found)
        })?;
        let mut found: Vec<_> = found.into_iter().flatten().collect();
        found.sort_unstable_by_key(|&(row, _)| row);
        Ok(found.into_iter().map(|(_, state)| state).collect())
    }

    /// Runs the same on all threads, and reports how much of the total is done.
    fn run<S: Send>(
        &self,
        total: u64,
        run: impl Fn(&Shared) -> Result<S> + Sync,
    ) -> Result<Vec<S>> {
        let shared = Shared::default();
        let run = || run(&shared).inspect_err(|_| shared.is_over.store(true, Ordering::Relaxed));
        std::thread::scope(|scope| {
            let (over, waits) = mpsc::channel::<()>();
            let run = &run;
            let workers: Vec<_> = (0..self.count)
                .map(|_| {
                    let over = over.clone();
                    scope.spawn(move || {
                        // Dropped when the thread ends, however it ends.
                        let _over = over;
                        run()
                    })
                })
                .collect();
            drop(over);
            let mut heard = Ok(());
            while heard.is_ok() && waits.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                heard = self.progress.at(shared.done.load(Ordering::Relaxed), total);
            }
            shared.is_over.fetch_or(heard.is_err(), Ordering::Relaxed);
            let joined = workers.into_iter().map(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            let states = joined.collect::<Vec<_>>().into_iter().collect::<Result<Vec<S>>>();
            heard?;
            states
        })
    }
}

/// The state that the threads share.
#[derive(Default)]
struct Shared {
    next: AtomicU64,
    done: AtomicU64,
    is_over: AtomicBool,
}

impl Shared {
    /// The next piece of work, if there is one and the work was not ended.
    fn next(&self, count: u64) -> Option<u64> {
        let next = || self.next.fetch_add(1, Ordering::Relaxed);
        (!self.is_over()).then(next).filter(|&next| next < count)
    }

    fn is_done(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn on<'a>(count: usize, progress: &'a Progress<'a>) -> Threads<'a> {
        Threads { count, progress }
    }

    #[allow(clippy::unnecessary_wraps)] // As the work of threads, which may fail.
    fn add(seen: &mut Vec<u64>, task: u64) -> Result<()> {
        seen.push(task);
        Ok(())
    }

    #[test]
    fn every_task_is_done_once_on_any_number_of_threads() {
        for threads in 1..5 {
            let states = on(threads, &Progress::none()).spread(100, Vec::new, add).unwrap();

            let mut seen: Vec<u64> = states.concat();
            seen.sort_unstable();
            assert_eq!(seen, (0..100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_row_has_its_steps_in_order_on_any_number_of_threads() {
        for threads in 1..5 {
            let rows = on(threads, &Progress::none()).in_rows(8, 3, Vec::new, add).unwrap();

            assert_eq!(rows, [vec![0, 3, 6], vec![1, 4, 7], vec![2, 5]]);
        }
    }

    #[test]
    fn an_error_of_any_thread_is_the_result() {
        for threads in [1, 3] {
            let fail = |(): &mut (), task| match task {
                7 => Err(Error::argument("seven")),
                _ => Ok(()),
            };

            let result = on(threads, &Progress::none()).spread(100, || (), fail);

            assert_eq!(result.unwrap_err().to_string(), "seven");
        }
    }

    #[test]
    fn cancelling_ends_the_work_on_all_threads() {
        for threads in [1, 2] {
            let wait = |(): &mut (), _| {
                std::thread::sleep(Duration::from_millis(1));
                Ok(())
            };

            let stop = Progress::new(&|_, _| false);
            let result = on(threads, &stop).spread(u64::MAX, || (), wait);
            let rows = on(threads, &stop).in_rows(u64::MAX, 2, || (), wait);

            assert!(matches!(result, Err(Error::Cancelled)));
            assert!(matches!(rows, Err(Error::Cancelled)));
        }
    }
}
