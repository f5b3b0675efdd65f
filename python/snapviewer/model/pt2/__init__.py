"""The graph of a file of `torch.export.save`, from its JSON, without torch and weights."""

from snapviewer.model.pt2.program import read_pt2

__all__ = ["read_pt2"]
