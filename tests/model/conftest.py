"""A saved network and its analysis, for the tests of promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from snapviewer.model import ModelAnalysis


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from support.promised_model import save_network  # it needs torch

    return save_network(tmp_path_factory.mktemp("promises") / "network.pt")


@pytest.fixture(scope="module")
def analysis(network: Path) -> ModelAnalysis:
    from support.promised_model import analyzed

    return analyzed(network)
