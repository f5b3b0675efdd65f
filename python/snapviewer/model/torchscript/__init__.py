"""What a TorchScript archive computes, followed in its code without torch and without running it."""

from snapviewer.model.torchscript.reading import infer_inputs, read_torchscript

__all__ = ["infer_inputs", "read_torchscript"]
