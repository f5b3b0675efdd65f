"""The graph of a file that `torch.export.save` wrote, from its JSON: without torch or weights."""

from snapviewer.model.pt2.program import read_pt2

__all__ = ["read_pt2"]
