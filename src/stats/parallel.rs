//! Many tasks on several threads, with the progress told and the cancelling heard on the caller's.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::error::Result;
use crate::progress::Progress;

/// How often the caller's thread looks how far the others are.
const LOOK: Duration = Duration::from_millis(20);

/// Does tasks `0..tasks`, each on one of the threads, and returns what each thread has gathered.
///
/// Which thread does which task is left to chance, so the result must not depend on it. Stops at the
/// first error. With one thread it is the caller's.
pub(super) fn spread<S: Send>(
    tasks: u64,
    threads: usize,
    progress: &Progress<'_>,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, u64) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    if threads <= 1 {
        let mut state = start();
        for task in 0..tasks {
            work(&mut state, task)?;
            progress.at(task + 1, tasks)?;
        }
        return Ok(vec![state]);
    }
    let (next, done, is_over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let run = || {
        let mut state = start();
        while !is_over.load(Ordering::Relaxed) {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                break;
            }
            if let Err(error) = work(&mut state, task) {
                is_over.store(true, Ordering::Relaxed);
                return Err(error);
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(state)
    };
    std::thread::scope(|scope| {
        let (over, waits) = mpsc::channel::<()>();
        let run = &run;
        let workers: Vec<_> = (0..threads)
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
            heard = progress.at(done.load(Ordering::Relaxed), tasks);
        }
        is_over.fetch_or(heard.is_err(), Ordering::Relaxed);
        let joined = workers.into_iter().map(|worker| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let states = joined.collect::<Vec<_>>().into_iter().collect::<Result<Vec<S>>>();
        heard?;
        states
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn every_task_is_done_once_on_any_number_of_threads() {
        for threads in 1..5 {
            let add = |seen: &mut Vec<u64>, task| {
                seen.push(task);
                Ok(())
            };

            let states = spread(100, threads, &Progress::none(), Vec::new, add).unwrap();

            let mut seen: Vec<u64> = states.concat();
            seen.sort_unstable();
            assert_eq!(seen, (0..100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_of_any_thread_is_the_result() {
        for threads in [1, 3] {
            let fail = |(): &mut (), task| match task {
                7 => Err(Error::argument("seven")),
                _ => Ok(()),
            };

            let result = spread(100, threads, &Progress::none(), || (), fail);

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

            let result = spread(u64::MAX, threads, &Progress::new(&|_, _| false), || (), wait);

            assert!(matches!(result, Err(Error::Cancelled)));
        }
    }
}
