"""Which way to run a model takes the fewest joules, of those that were tried.

The runs as they are (with their threads, batch, layout and dtype) are compared with runs that
differ in one of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from snapviewer.model.energy import Energy
from snapviewer.model.inference.batches import Batches
from snapviewer.model.inference.timing import Timing, ratio
from snapviewer.model.inference.trials import DtypeRun, Layouts, ThreadRun
from snapviewer.model.quantity import Quantity, Status, unavailable
from snapviewer.text.units import count_of

_AS_RUN = "as run"
_OTHERWISE = "its energy was found in another way than that of the runs as they are"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A way to run the model; time and energy are those of an example.

    `name` is what differs from the runs as they are. `spread` is the median absolute deviation of
    the times, relative to their median; `saving` the energy against the runs as they are.
    """

    name: str
    threads: int
    batch: int
    layout: str
    dtype: str
    runs: int
    time: Quantity
    spread: Quantity
    energy: Quantity
    saving: Quantity

    @property
    def is_as_run(self) -> bool:
        """Whether these are the runs as they are."""
        return self.name == _AS_RUN


@dataclass(frozen=True, slots=True)
class Patterns:
    """The ways that were tried, the runs as they are first.

    `best` is the name of the one with the fewest joules; it is the runs as they are unless another
    saves more than the spread of the times. `untried` are ways that were not tried or cannot be
    compared, and why.
    """

    tried: tuple[Pattern, ...]
    best: str | None
    untried: tuple[tuple[str, str], ...]


def patterns_of(
    energy: Energy,
    time: Timing,
    *,
    threads: int,
    dtype: str,
    thread_runs: Sequence[ThreadRun],
    layouts: Layouts | None,
    batches: Batches | None,
    dtype_run: DtypeRun | None,
    untried: Mapping[str, str],
) -> Patterns:
    """Compare the energy of an example in all ways that were tried.

    Args:
        energy: That of the runs as they are.
        time: Their times.
        threads: Their number of threads.
        dtype: The dtype that they compute in.
        thread_runs: Runs with other numbers of threads.
        layouts: Runs with channels_last.
        batches: Runs with other batches.
        dtype_run: Runs in another dtype.
        untried: Ways that were not tried, and why.
    """
    batch = batches.as_given if batches else 1
    as_it_is = _Way(_AS_RUN, time, energy.energy, threads, batch, dtype=dtype)
    ways = [as_it_is, *_others(as_it_is, thread_runs, layouts, batches, dtype_run)]
    tried = tuple(_pattern(way, as_it_is) for way in ways)
    others = _incomparable(tried, energy.energy.status)
    return Patterns(tried, _best(tried), (*untried.items(), *others))


class _Way(NamedTuple):
    """Runs, and the settings that they had; `energy` is that of a run with a whole batch."""

    name: str
    time: Timing
    energy: Quantity
    threads: int
    batch: int
    layout: str = "contiguous"
    dtype: str = "float32"


def _others(
    base: _Way,
    thread_runs: Sequence[ThreadRun],
    layouts: Layouts | None,
    batches: Batches | None,
    dtype_run: DtypeRun | None,
) -> Iterator[_Way]:
    """Yield the ways that differ from the runs as they are."""

    def way(name: str, time: Timing, energy: Quantity, **settings: Any) -> _Way:
        return base._replace(name=name, time=time, energy=energy, **settings)

    for run in thread_runs:
        if run.threads != base.threads:
            name = count_of(run.threads, "thread")
            yield way(name, run.time, run.energy, threads=run.threads)
    if layouts is not None:
        last = "channels_last"
        yield way(last, layouts.energy_runs, layouts.energy, layout=last)
    for one in batches.runs if batches else ():
        if one.size != base.batch:
            yield way(f"batch of {one.size}", one.time, one.energy, batch=one.size)
    if dtype_run is not None:
        dtype = dtype_run.dtype
        yield way(dtype, dtype_run.time, dtype_run.energy, dtype=dtype)


def _pattern(way: _Way, base: _Way) -> Pattern:
    time, energy = _per_example(way.time.median, way), _per_example(way.energy, way)
    usual = _per_example(base.energy, base)
    if way.energy.status != base.energy.status:
        saving = unavailable("%", _OTHERWISE)
    elif energy.value is None or not usual.value:
        saving = unavailable("%", way.energy.source)
    else:
        percent = 100 * (1 - energy.value / usual.value)
        saving = Quantity(percent, "%", "computed", "1 − energy / energy as run")
    return Pattern(
        name=way.name,
        threads=way.threads,
        batch=way.batch,
        layout=way.layout,
        dtype=way.dtype,
        runs=way.time.runs,
        time=time,
        spread=ratio(way.time.deviation, way.time.median, "%", "deviation / median", 100),
        energy=energy,
        saving=saving,
    )


def _per_example(whole: Quantity, way: _Way) -> Quantity:
    if whole.value is None:
        return whole
    return replace(whole, value=whole.value / way.batch)


def _best(tried: Sequence[Pattern]) -> str | None:
    """Return the way with the fewest joules, if its saving is more than the times vary."""
    base = tried[0]
    if base.energy.value is None:
        return None
    best = max(tried, key=lambda pattern: pattern.saving.value or 0.0)
    spread = (base.spread.value or 0.0) + (best.spread.value or 0.0)
    return best.name if (best.saving.value or 0.0) > spread else base.name


def _incomparable(tried: Sequence[Pattern], status: Status) -> Iterator[tuple[str, str]]:
    for pattern in tried:
        if pattern.energy.value is None:
            yield pattern.name, pattern.energy.source
        elif pattern.energy.status != status:
            yield pattern.name, _OTHERWISE
