from __future__ import annotations

from pathlib import Path

import pytest

from snapviewer.capture.gpus import UnknownGpuError, find_gpu, known_gpus


def test_the_gpus_that_people_have_are_known() -> None:
    assert [*known_gpus()] == [
        "t4-16gb",
        "v100-16gb",
        "v100-32gb",
        "a10g-24gb",
        "a100-40gb",
        "a100-80gb",
        "l4-24gb",
        "l40s-48gb",
        "h100-80gb",
        "h200-141gb",
        "b200-180gb",
        "rtx3090-24gb",
        "rtx4090-24gb",
        "rtx5090-32gb",
    ]
    for key, gpu in known_gpus().items():
        nominal = int(key.rpartition("-")[2].removesuffix("gb"))
        assert 0.9 < gpu.memory_bytes / (nominal * 1024**3) <= 1.0


def test_a_gpu_is_found_by_the_beginning_of_its_key() -> None:
    assert find_gpu("H100").key == "h100-80gb"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("a100", "a100 has several sizes: a100-40gb, a100-80gb"),
        ("a100-40", "unknown GPU: a100-40; did you mean a100-40gb?"),
        ("banana", "unknown GPU: banana; known ones: t4-16gb"),
    ],
)
def test_an_unknown_gpu_is_named(name: str, sentence: str) -> None:
    with pytest.raises(UnknownGpuError) as raised:
        find_gpu(name)

    assert str(raised.value).startswith(sentence)


def test_a_file_describes_a_gpu(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[mine]\nmemory_bytes = 1073741824\ncapability = "9.0"\n')

    gpu = find_gpu(str(path))

    assert (gpu.key, gpu.usable_bytes, gpu.capability) == ("mine", 1 << 30, "9.0")
    assert gpu.with_capacity(5).usable_bytes == 5


@pytest.mark.parametrize(
    "text",
    ["memory_bytes = 'x'", "memory_bytes = -1", "memory = 3", "[", "", "memory_bytes = true",
     "memory_bytes = 9\ncapability = '9'", "\xff"],
)  # fmt: skip
def test_a_file_that_describes_none_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(text.encode("latin-1"))

    with pytest.raises(UnknownGpuError, match=r"mine\.toml does not describe a GPU"):
        find_gpu(str(path))
