"""Read, check, draw and convert PyTorch CUDA memory snapshots; look into checkpoints.

>>> import snapviewer
>>> snap = snapviewer.load("snap.pickle")            # doctest: +SKIP
>>> [(dev.index, dev.peak_bytes) for dev in snap.devices]  # doctest: +SKIP
[(0, 68194387972)]
>>> checkpoint = snapviewer.read_checkpoint("model.pth")   # doctest: +SKIP
>>> [(tensor.name, tensor.shape) for tensor in checkpoint.tensors]  # doctest: +SKIP
[('0.weight', (3, 2)), ('0.bias', (3,))]

The native module is loaded when the first of these names is used. `snapviewer.events` does without
it, and so runs where nothing was built or installed.
"""

from snapviewer._lazy import TYPE_CHECKING, lazy_names

__version__ = "0.1.0"

__all__: list[str]

if TYPE_CHECKING:
    from snapviewer._core import Allocations as Allocations
    from snapviewer._core import Allocator as Allocator
    from snapviewer._core import Block as Block
    from snapviewer._core import CancelledError as CancelledError
    from snapviewer._core import Categories as Categories
    from snapviewer._core import Checkpoint as Checkpoint
    from snapviewer._core import Clock as Clock
    from snapviewer._core import Curves as Curves
    from snapviewer._core import Cut as Cut
    from snapviewer._core import Device as Device
    from snapviewer._core import Domain as Domain
    from snapviewer._core import Event as Event
    from snapviewer._core import Frame as Frame
    from snapviewer._core import Group as Group
    from snapviewer._core import Groups as Groups
    from snapviewer._core import Growth as Growth
    from snapviewer._core import Icicle as Icicle
    from snapviewer._core import Image as Image
    from snapviewer._core import Keys as Keys
    from snapviewer._core import Leak as Leak
    from snapviewer._core import Leaks as Leaks
    from snapviewer._core import MemoryMap as MemoryMap
    from snapviewer._core import Oom as Oom
    from snapviewer._core import Peak as Peak
    from snapviewer._core import Pending as Pending
    from snapviewer._core import Pin as Pin
    from snapviewer._core import Profile as Profile
    from snapviewer._core import Release as Release
    from snapviewer._core import Screen as Screen
    from snapviewer._core import Snapshot as Snapshot
    from snapviewer._core import SnapshotError as SnapshotError
    from snapviewer._core import State as State
    from snapviewer._core import Step as Step
    from snapviewer._core import Steps as Steps
    from snapviewer._core import Timeline as Timeline
    from snapviewer._core import Tree as Tree
    from snapviewer._core import TreeNode as TreeNode
    from snapviewer._core import WhatIf as WhatIf
    from snapviewer._core import convert as convert
    from snapviewer._core import load as load
    from snapviewer._core import query as query
    from snapviewer._core import read_checkpoint as read_checkpoint
    from snapviewer._core import read_profile as read_profile
    from snapviewer._core import whatif as whatif
    from snapviewer.capture.api import record as record
    from snapviewer.capture.callbacks import lightning_callback as lightning_callback
    from snapviewer.capture.callbacks import trainer_callback as trainer_callback
    from snapviewer.snapshot.difference import Difference as Difference
    from snapviewer.snapshot.difference import diff as diff
else:
    __all__, __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "_core": "Allocations Allocator Block CancelledError Categories Checkpoint Clock "
            "Curves Cut Device Domain Event Frame Group Groups Growth Icicle Image Keys Leak Leaks "
            "MemoryMap Oom Peak Pending Pin Profile Release Screen Snapshot SnapshotError State "
            "Step Steps Timeline Tree TreeNode WhatIf convert load query read_checkpoint "
            "read_profile whatif",
            "capture.api": "record",
            "capture.callbacks": "lightning_callback trainer_callback",
            "snapshot.difference": "Difference diff",
        },
    )
    __all__ += ["__version__"]
