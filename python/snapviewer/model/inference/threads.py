"""What more threads bring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from snapviewer.model.inference.running import Runner, thread_count
from snapviewer.model.inference.timing import Timing, ratio, timing_of
from snapviewer.model.quantity import Quantity

_MOST_REPEATS = 5


@dataclass(frozen=True, slots=True)
class ThreadRun:
    """The time with a number of threads, and what they bring.

    `speed_up` is against one thread, from the fastest runs, which other programs disturbed the
    least; `efficiency` is what of each thread's time that leaves.
    """

    threads: int
    time: Timing
    speed_up: Quantity
    efficiency: Quantity


def counts_up_to(most: int) -> tuple[int, ...]:
    """Return the numbers of threads to try: all of a few, else powers of two and the most.

    >>> counts_up_to(3), counts_up_to(12)
    ((1, 2, 3), (1, 2, 4, 8, 12))
    """
    if most <= 4:
        return tuple(range(1, max(most, 1) + 1))
    powers = (2**power for power in range(most.bit_length()))
    return (*(count for count in powers if count < most), most)


def thread_runs(
    runner: Runner,
    most: int,
    *,
    repeats: int,
    is_over: Callable[[int, int], bool],
) -> tuple[ThreadRun, ...]:
    """Run with 1 to `most` threads; torch has as many as before afterwards.

    Args:
        runner: What to run.
        most: The largest number of threads.
        repeats: How many runs with each number, at most.
        is_over: Tells whether the time for some runs is over, from how many there were and how
            long they took in nanoseconds.
    """
    found: list[ThreadRun] = []
    for count in counts_up_to(most):
        with thread_count(count):
            runner.timed_ns()  # the first starts threads
            times_ns: list[int] = []
            while len(times_ns) < min(repeats, _MOST_REPEATS):
                times_ns.append(runner.timed_ns())
                if is_over(len(times_ns), sum(times_ns)):
                    break
        word = "thread" if count == 1 else "threads"
        time = timing_of(times_ns, f"clock around the run with {count} {word}")
        one = found[0].time.fastest if found else time.fastest
        speed_up = ratio(one, time.fastest, "×", "fastest with 1 thread / fastest with these")
        efficiency = ratio(
            speed_up, Quantity(float(count), "1", "computed", ""), "%", "speed-up / threads", 100
        )
        found.append(ThreadRun(count, time, speed_up, efficiency))
    return tuple(found)
