"""Which line of a call stack says most about an allocation, and how to say it in a few words.

A stack begins with the allocator and PyTorch's own calls, dozens of lines that are the same for
everybody. What a person wants to read is the innermost line of their own code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from snapviewer._core import Frame, Snapshot
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

FrameKind = Literal[
    "own",  # the user's
    "library",  # of a package that is not PyTorch
    "torch",
    "other",  # Python itself, its standard library, the system, and C++ of anybody's
]

# Paths are compared with forward slashes and in lower case.
_STANDARD = re.compile(r"^<frozen |/lib(64)?/python[23][.\d]*/|python[^/]{0,40}/lib/")
_LIBRARY = re.compile(r"/(site|dist)-packages/")
# Installed, from a checkout, or written by torch.compile.
_TORCH = re.compile(
    r"/(site|dist)-packages/(torch|functorch|triton)/|/pytorch/torch/|/torchinductor_|<eval_with_key>"
)
# A cell of a notebook and a line typed at the prompt are a person's own; other code without a file
# (`<string>`) was made by a library.
_TYPED = re.compile(r"^<(ipython-input|stdin)")
# A backward pass runs on a thread of its own, where no stack has a line of Python.
_AUTOGRAD_NODE = re.compile(r"^torch::autograd::(?:generated::)?(\w+)::apply\(")
_OPERATOR = re.compile(r"^(\w+ )?at::native::")
_RECORDING = re.compile(
    r"^(torch::(unwind|CapturedTraceback|cuda)|c10::cuda::\w*CachingAllocator)\b"
)
_TORCH_NAME = re.compile(r"^([\w:<>*& ]+ )?(torch|at|c10|caffe2)::|^_?THP|^pybind11::")

_OWN, _OTHERS, _AUTOGRAD, _PYTHON, _NATIVE, _CPP, _MACHINERY = range(7)


NO_STACK = "no stack recorded"


def own_frame(frames: Sequence[Frame]) -> Frame | None:
    """Find the innermost frame that the user wrote, or the nearest thing to it.

    That is a library built on PyTorch, then the node of a backward pass, then Python code of
    PyTorch, then one of its operators, then whatever is innermost.

    Args:
        frames: A stack, innermost first.

    Returns:
        The frame, or None if there are no frames.
    """
    best, best_rank = None, _MACHINERY + 1
    for frame in frames:
        rank = _rank(frame)
        if rank < best_rank:
            best, best_rank = frame, rank
            if rank == _OWN:  # most stacks end here, long before their last frame
                break
    return best


def kind_of(frame: Frame) -> FrameKind:
    """Tell whose code a frame is."""
    rank = _rank(frame)
    if rank in (_OWN, _OTHERS):
        return "own" if rank == _OWN else "library"
    if _TORCH.search(_path(frame)) or rank in (_AUTOGRAD, _NATIVE, _MACHINERY):
        return "torch"
    return "torch" if rank == _CPP and _TORCH_NAME.match(frame.name) else "other"


def frame_text(frame: Frame) -> str:
    """Say where a frame is, in a few words: `model.py:77 attention`, or a function of C++."""
    if node := _AUTOGRAD_NODE.match(frame.name):
        return node[1]
    if _is_python(frame.filename):
        return f"{_basename(frame.filename)}:{frame.line} {frame.name}"
    return _without_arguments(frame.name)


def line_of(snapshot: Snapshot, stack: int) -> str:
    """Name the line of the user's own code that a stack leads to."""
    frame = own_frame(snapshot.frames(stack))
    return NO_STACK if frame is None else sanitize(frame_text(frame), MAX_NAME_CHARS) or "??"


def _rank(frame: Frame) -> int:
    """Tell how far a frame is from the user's own code."""
    if not _is_python(frame.filename):
        return _rank_of_cpp(frame.name)
    path = _path(frame)
    if _TORCH.search(path):
        return _PYTHON
    if _LIBRARY.search(path):
        return _OTHERS
    return _PYTHON if _STANDARD.search(path) else _OWN


def _rank_of_cpp(name: str) -> int:
    if _AUTOGRAD_NODE.match(name):
        return _AUTOGRAD
    if _OPERATOR.match(name):
        return _NATIVE
    return _MACHINERY if _RECORDING.match(name) else _CPP


def _path(frame: Frame) -> str:
    return frame.filename.replace("\\", "/").lower()


def _is_python(filename: str) -> bool:
    return filename.endswith(".py") or _TYPED.match(filename) is not None


def _basename(filename: str) -> str:
    return re.split(r"[/\\]", filename)[-1]


def _without_arguments(name: str) -> str:
    """Shorten a function of C++ to its name.

    >>> _without_arguments("void at::native::(anonymous namespace)::f<int>(at::Tensor&) const")
    'at::native::f'
    >>> _without_arguments("torch::autograd::Node::operator()(std::vector<at::Tensor>&&)")
    'torch::autograd::Node::operator'
    """
    name = name.replace("(anonymous namespace)::", "")
    plain = re.split(r"[(<]", name)[0]
    return plain.split()[-1] if plain.split() else name
