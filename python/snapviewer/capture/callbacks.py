"""Callbacks that record a training loop of transformers or Lightning, and mark its epochs.

`Trainer(…, callbacks=[snapviewer.trainer_callback("snap.pickle")])`
"""

from __future__ import annotations

import atexit
import os
from typing import Any

from .api import start_recording
from .recorder import Recorder


class _Run:
    """A recording from the beginning of training to its end, or to that of the process."""

    def __init__(self, output: str | os.PathLike[str], options: dict[str, Any]) -> None:
        self._output, self._options = output, options
        self.recorder: Recorder | None = None

    def begin(self, model: Any) -> None:
        self.recorder = start_recording(self._output, model=model, **self._options)
        # Trainer has no event for an error.
        atexit.register(self.end, "error")

    def begin_epoch(self, epoch: int) -> None:
        if self.recorder and self.recorder.marks:
            self.recorder.marks.epoch = epoch
            self.recorder.marks.write()

    def end(self, cause: str) -> None:
        atexit.unregister(self.end)
        if self.recorder and not self.recorder.is_closed:
            self.recorder.dump(cause, is_last=cause == "end")
            self.recorder.close()


def trainer_callback(output: str | os.PathLike[str], **options: Any) -> Any:
    """Return a callback for transformers' `Trainer` that records its training.

    Args:
        output: The snapshot: .pickle, or .pickle.gz.
        options: `every`, `max_entries`, `stacks` and `marks`, as `record` has them.
    """
    from transformers import TrainerCallback

    run = _Run(output, options)

    class Callback(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_train_begin(
            self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
        ) -> None:
            run.begin(model)

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            run.begin_epoch(int(state.epoch or 0))

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            run.end("end")

    return Callback()


def lightning_callback(output: str | os.PathLike[str], **options: Any) -> Any:
    """Return a callback for Lightning's `Trainer` that records its training.

    Args:
        output: The snapshot: .pickle, or .pickle.gz.
        options: `every`, `max_entries`, `stacks` and `marks`, as `record` has them.
    """
    try:
        from lightning.pytorch import Callback as Base
    except ImportError:
        from pytorch_lightning import Callback as Base

    run = _Run(output, options)

    class Callback(Base):  # type: ignore[misc, valid-type, unused-ignore]
        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            run.begin(pl_module)

        def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
            run.begin_epoch(trainer.current_epoch)

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            run.end("error")

        def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
            run.end("end")

    return Callback()
