"""The graph of a live module, from one run that needs neither memory nor time if possible.

A module runs on the meta device if it can, with fake tensors if that fails, and for real if that
fails too. The run is in eval mode and on a copy that shares the weights, so it does not change the
module, unless a real run writes into its own parameters. It is also in inference mode: operations
then appear as they were called, a `lstm` or a `linear` and not the many steps that gradients need.
"""

from __future__ import annotations

from snapviewer.model.live.record import Way, record

__all__ = ["Way", "record"]
