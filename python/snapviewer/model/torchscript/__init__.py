"""The graph of a TorchScript archive, by abstract interpretation of its code without torch."""

from snapviewer.model.torchscript.reader import MISFIT, read_torchscript

__all__ = ["MISFIT", "read_torchscript"]
