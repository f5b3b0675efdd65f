"""What a TorchScript archive computes: its code is followed, without torch, and not run."""

from snapviewer.model.torchscript.reading import infer_inputs, read_torchscript

__all__ = ["infer_inputs", "read_torchscript"]
