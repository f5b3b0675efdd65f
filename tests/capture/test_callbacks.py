"""Callbacks of transformers and Lightning, with the real libraries on the null device."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

import snapviewer
from snapviewer import _core
from support import recorded
from support.torch_marks import torch_marks

pytestmark = [
    *torch_marks(),
    pytest.mark.slow,
    pytest.mark.skipif(_core.null_device() is None, reason="no null device on this system"),
]

TRAINER = """\
import sys, torch, snapviewer
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
zeros = torch.zeros(16, dtype=torch.long)
tokens = [{"input_ids": zeros, "labels": zeros}] * 8
model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=2, vocab_size=100, n_positions=16))
arguments = TrainingArguments(
    OUTPUT, num_train_epochs=2, per_device_train_batch_size=4, report_to=[], save_strategy="no",
    logging_strategy="no", disable_tqdm=True,
)
trainer = Trainer(model, arguments, train_dataset=tokens,
                  callbacks=[snapviewer.trainer_callback(OUTPUT + "/snap.pickle")])
if FAILS:
    model.transformer.h[1].forward = None
trainer.train()
"""

LIGHTNING = """\
import torch, snapviewer, lightning
class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Linear(64, 1))
    def training_step(self, batch, index):
        if FAILS:
            raise RuntimeError("no")
        return self.layers(batch).square().mean()
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())
trainer = lightning.Trainer(
    accelerator="gpu", devices=1, max_epochs=2, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, default_root_dir=OUTPUT,
    callbacks=[snapviewer.lightning_callback(OUTPUT + "/snap.pickle")],
)
trainer.fit(Net(), torch.utils.data.DataLoader(torch.randn(8, 32), batch_size=4))
"""


def run(source: str, folder: Path, *, fails: bool = False) -> tuple[int, str]:
    script = folder / "train.py"
    script.write_text(f"OUTPUT = {str(folder)!r}\nFAILS = {fails}\n{source}")
    return recorded.run([str(script)], None)


def marks(path: Path) -> set[str]:
    device = snapviewer.load(path).devices[0]
    assert device.reconciles
    return {event.user_metadata or "" for event in device.event_rows(0, 10_000)}


def test_a_trainer_of_transformers_is_recorded_with_its_epochs(tmp_path: Path) -> None:
    code, log = run(TRAINER, tmp_path)

    assert code == 0, log
    found = marks(tmp_path / "snap.pickle")
    assert "step=3 epoch=1 phase=forward module=transformer.h.1.attn.c_attn" in found
    assert snapviewer.load(tmp_path / "snap.pickle").metadata["recorded"]["step"] == 4


def test_a_trainer_that_fails_leaves_a_snapshot(tmp_path: Path) -> None:
    code, log = run(TRAINER, tmp_path, fails=True)

    assert code == 1, log
    assert (tmp_path / "snap_step0_error.pickle").exists()


@pytest.mark.skipif(find_spec("lightning") is None, reason="lightning is not installed")
@pytest.mark.parametrize(
    ("fails", "name"), [(False, "snap.pickle"), (True, "snap_step0_error.pickle")]
)
def test_a_trainer_of_lightning_is_recorded_with_its_epochs(
    fails: bool, name: str, tmp_path: Path
) -> None:
    code, log = run(LIGHTNING, tmp_path, fails=fails)

    assert code == int(fails), log
    found = marks(tmp_path / name)
    if not fails:
        assert "step=3 epoch=1 phase=forward module=layers.1" in found
        assert json.dumps(snapviewer.load(tmp_path / name).metadata["recorded"]["step"]) == "4"
