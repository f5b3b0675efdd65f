"""What a TorchScript archive computes: its code is followed, without torch, and not run."""

from snapviewer.model.torchscript.reading import MISFIT, infer_inputs, read_torchscript

__all__ = ["MISFIT", "infer_inputs", "read_torchscript"]
