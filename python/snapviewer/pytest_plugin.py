"""A plugin of pytest: `@pytest.mark.memory(limit="2GiB")` fails a test that holds more GPU memory.

`pytest_plugins = ["snapviewer.pytest_plugin"]` in conftest.py turns it on. Without a GPU,
`snapviewer predict -m pytest` runs such tests on the null device.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from importlib.util import find_spec
from typing import Any

import pytest

from snapviewer.text.units import parse_bytes

_ABOUT = (
    'memory(limit): fail if a GPU holds more bytes during the test than this, such as "2GiB"; '
    "what was allocated before the test counts"
)
_NO_GPU = "there is no GPU; `snapviewer predict -m pytest` runs the test without one"


def pytest_configure(config: pytest.Config) -> None:
    """Describe the mark."""
    config.addinivalue_line("markers", _ABOUT)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run a test, and compare what it held with its limit."""
    mark = item.get_closest_marker("memory")
    if mark is None:
        return (yield)
    limit = _limit(mark)
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    from torch import cuda

    if not cuda.is_available():
        pytest.skip(_NO_GPU)
    cuda.init()
    gc.collect()  # what earlier tests left behind
    devices = range(cuda.device_count())
    for device in devices:
        cuda.reset_peak_memory_stats(device)
    result = yield
    from snapviewer.snapshot.gate import Failure

    peaks = {device: cuda.memory_stats(device)["requested_bytes.all.peak"] for device in devices}
    failed = [
        Failure("over", device, peak, limit).reason
        for device, peak in peaks.items()
        if peak > limit
    ]
    if failed:
        pytest.fail("; ".join(failed), pytrace=False)
    return result


def _limit(mark: pytest.Mark) -> int:
    given = [*mark.args, *mark.kwargs.values()]
    try:
        if len(given) != 1 or not set(mark.kwargs) <= {"limit"}:
            raise ValueError
        return given[0] if isinstance(given[0], int) else parse_bytes(given[0])
    except (ValueError, OverflowError, AttributeError, TypeError):
        pytest.fail('the mark `memory` takes a limit, such as limit="2GiB"', pytrace=False)
