"""The graph of a live module, from one run that costs neither memory nor time where it can.

A module runs on the meta device if it can, with fake tensors if that fails, and for real if that
fails too. The run is in eval mode and on a copy that shares the weights, so nothing of it stays on
the module, unless a real run of the model writes into its own parameters. It is in inference mode
as well: operations then come as they were called, a `lstm` or a `linear` and not the many steps
that gradients would need.
"""

from __future__ import annotations

from snapviewer.model.live.record import Way, record

__all__ = ["Way", "record"]
