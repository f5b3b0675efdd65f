"""Every published snapshot we have gives the answers of the slow, obvious model."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from support import oracle, program
from support.oracle import SNAPSHOTS, DeviceModel

FILES = sorted(SNAPSHOTS.glob("*.pickle"))
NAMES = [path.stem for path in FILES] or ["absent"]
TRIMMED = "TRIMMED-mini"
TRIMMED_DIFFERENCE_BYTES = 402_719_744


@lru_cache(maxsize=1)
def _models(name: str) -> dict[int, DeviceModel]:
    return {m.device: m for m in oracle.describe(oracle.load_plain(_source(name)))}


def _source(name: str) -> Path:
    if not FILES:
        pytest.skip(f"{SNAPSHOTS} is absent")
    return SNAPSHOTS / f"{name}.pickle"


@pytest.mark.parametrize("name", NAMES)
def test_the_model_itself_reconciles_with_every_real_file(name: str) -> None:
    _source(name)

    off = [m.difference_bytes for m in _models(name).values() if not m.reconciles]

    assert off == ([TRIMMED_DIFFERENCE_BYTES] if name == TRIMMED else [])


@pytest.mark.parametrize("name", NAMES)
def test_a_real_file_reads_as_the_model_says(name: str) -> None:
    import snapviewer

    snapshot = snapviewer.load(_source(name))

    _assert_as_modelled(snapshot, _models(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_summary_of_a_real_file_is_what_the_model_says(name: str) -> None:
    ran = program.run("info", _source(name), "--json")

    assert ran.code == 0, ran.err
    _assert_summary(json.loads(ran.out), _models(name))


@pytest.mark.parametrize("output", ["out.zip", "out"])
@pytest.mark.parametrize("name", NAMES)
def test_a_bundle_of_a_real_file_gives_the_same_answers(
    name: str, output: str, tmp_path: Path
) -> None:
    import snapviewer

    bundle = tmp_path / output
    ran = program.run("convert", "-i", _source(name), "-o", bundle)
    assert ran.code == 0, ran.err

    snapshot = snapviewer.load(bundle)
    info = program.run("info", bundle, "--json")

    assert bundle.is_dir() == (output == "out")
    _assert_as_modelled(snapshot, _models(name))
    assert info.code == 0, info.err
    _assert_summary(json.loads(info.out), _models(name))


def _assert_as_modelled(snapshot: Any, models: dict[int, DeviceModel]) -> None:
    """Compares every answer for every device, and the allocations one by one."""
    devices = {device.index: device for device in snapshot.devices}
    assert sorted(devices) == sorted(models)
    for index, model in models.items():
        device = devices[index]
        answers = oracle.product_answers(device)
        expected = oracle.expected_answers(model)
        assert oracle.first_difference(answers.pop("totals"), expected.pop("totals")) is None
        assert answers == expected
        assert device.reserved_peak_bytes == model.reserved_peak_bytes
        assert device.reconciles == model.reconciles
        assert bool(device.warnings) >= (not model.reconciles), "what is off is stated"
        ours = oracle.product_allocations(snapshot, device)
        assert oracle.first_difference(ours, oracle.comparable(model.allocations)) is None


def _assert_summary(info: dict[str, Any], models: dict[int, DeviceModel]) -> None:
    """Compares the summary that other programs build on."""
    assert set(info) >= {"file", "format", "devices"}
    devices = {device["device"]: device for device in info["devices"]}
    assert sorted(devices) == sorted(models)
    for index, model in models.items():
        summary = dict(devices[index])
        warnings = summary.pop("warnings")
        expected = {
            "device": model.device,
            "events": model.events,
            "allocations": len(model.allocations),
            "peak_bytes": model.peak_bytes,
            "peak_event": model.peak_event,
            "final_bytes": model.final_bytes,
            "reserved_peak_bytes": model.reserved_peak_bytes,
            "oom_events": len(model.oom_events),
            "reconciles": model.reconciles,
        }
        assert {key: summary.get(key) for key in expected} == expected
        assert isinstance(warnings, list)
        assert bool(warnings) >= (not model.reconciles), "what is off is stated"
