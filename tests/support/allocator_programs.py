"""Random programs for the model of the caching allocator."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from support.allocator_model import (
    DEFAULT_POOL,
    KIB,
    MIB,
    Block,
    Frames,
    Model,
    OutOfMemoryError,
    Settings,
)

SIZES = st.one_of(
    st.sampled_from([1, 512, 513, 100 * KIB, MIB, MIB + 1, 3 * MIB, 10 * MIB, 19 * MIB, 20 * MIB]),
    st.integers(1, MIB),
    st.integers(MIB + 1, 12 * MIB),
    st.integers(9 * MIB, 70 * MIB),
)
POOLS = (DEFAULT_POOL, (0, 1), (3, 0))
STEPS = st.one_of(
    st.tuples(st.just("malloc"), SIZES, st.sampled_from([0, 0, 0, 7]), st.integers(0, 5)),
    st.tuples(st.just("malloc"), SIZES, st.sampled_from([0, 0, 0, 7]), st.integers(0, 5)),
    st.tuples(st.just("free"), st.integers(0, 30)),
    st.tuples(st.just("record_stream"), st.integers(0, 30)),
    st.tuples(st.just("finish"), st.integers(0, 3)),
    st.tuples(st.just("empty_cache")),
    st.tuples(st.just("delete_pool"), st.integers(1, 2)),
)
SETTINGS = st.builds(
    Settings,
    expandable=st.booleans(),
    max_split=st.sampled_from([None, None, 20 * MIB, 32 * MIB]),
    divisions=st.sampled_from([0, 0, 4, 8]),
    capacity=st.sampled_from([None, 100 * MIB, 150 * MIB, 300 * MIB]),
)
PROGRAMS = st.lists(STEPS, min_size=5, max_size=120)


def stack(name: str, line: int = 1) -> Frames:
    """A stack of one frame."""
    return [{"name": name, "filename": "train.py", "line": line}]


def run(settings: Settings, program: list[Any]) -> Model:
    """Run a program on the model."""
    model = Model(settings)
    # A trace without any completed free is taken for one of a recording that left them out.
    model.free(model.malloc(1, stack("warm_up")), stack("free"))
    live: list[Block] = []
    finished = 0
    for what, *numbers in program:
        if what == "malloc":
            size, stream, pool = numbers
            line = stack("forward", size % 3)
            model.complete_deferred(finished, line)
            finished = 0
            pool_id = POOLS[pool] if pool < len(POOLS) else DEFAULT_POOL
            model.dead_pools.discard(pool_id)
            try:
                live.append(model.malloc(size, line, stream, pool_id))
            except OutOfMemoryError:
                # As a program that catches it would.
                for block in live[::2]:
                    model.free(block, stack("give_up"))
                live = live[1::2]
        elif what == "free" and live:
            model.free(live.pop(numbers[0] % len(live)), stack("free"))
        elif what == "record_stream" and live:
            live[numbers[0] % len(live)].used_by_other_stream = True
        elif what == "finish":
            finished += numbers[0]
        elif what == "empty_cache":
            model.empty_cache(stack("empty_cache"))
        elif what == "delete_pool":
            model.dead_pools.add(POOLS[numbers[0]])
    return model
