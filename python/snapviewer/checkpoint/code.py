"""The code of a TorchScript archive, read without running anything.

# Cost

The weights are not read. Code is unpacked one file at a time, and only what is asked for; no file
of it may unpack to more than `MAX_CODE_BYTES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from snapviewer._core import Checkpoint, SnapshotError

MAX_CODE_BYTES = 4 << 20  # a file of code; the largest of torchvision's models is 0.3 MB
MAX_TOTAL_CODE_BYTES = 16 << 20
_MAX_PICKLE_BYTES = 64 << 20
_TRACED = "traced_inputs.pkl"


@dataclass(frozen=True, slots=True)
class Archive:
    """A TorchScript file: its module tree, and its files of code by the name of what they define.

    >>> Archive.module_of("code/__torch__/torch/nn.py")
    '__torch__.torch.nn'
    """

    checkpoint: Checkpoint
    code: Mapping[str, str]
    """The members of the archive."""

    @staticmethod
    def module_of(member: str) -> str | None:
        """Return the name of the module that a member has the code of."""
        is_code = member.startswith("code/") and member.endswith(".py")
        return member[5:-3].replace("/", ".") if is_code else None

    def source(self, name: str) -> str:
        """Return a file of code.

        Raises:
            SnapshotError: It cannot be read, or is too large.
        """
        raw = self.checkpoint.member(self.code[name], MAX_CODE_BYTES)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise SnapshotError(f"the code of {name[:200]} is not UTF-8") from None

    def traced_inputs(self) -> Checkpoint | None:
        """Return the inputs that the model was traced with; their elements are not in the file."""
        if _TRACED not in self.checkpoint.members:
            return None
        return self.checkpoint.open_member(_TRACED, _MAX_PICKLE_BYTES)


def archive_of(checkpoint: Checkpoint) -> Archive:
    """Find the code of a TorchScript archive.

    Raises:
        SnapshotError: The file is not a TorchScript archive, or has too much code.
    """
    if checkpoint.format != "torchscript":
        raise SnapshotError(f"the file holds no TorchScript code: {checkpoint.path}")
    members = checkpoint.members
    code = {name: member for member in members if (name := Archive.module_of(member)) is not None}
    if sum(members[member] for member in code.values()) > MAX_TOTAL_CODE_BYTES:
        limit = MAX_TOTAL_CODE_BYTES >> 20
        raise SnapshotError(f"the archive has more than {limit} MiB of code: {checkpoint.path}")
    return Archive(checkpoint, code)
