"""The line of a stack that says most is found in stacks as they are recorded."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import snapviewer
from snapviewer.snapshot.frames import frame_text, kind_of, own_frame
from support import hostile

# As PyTorch records them, innermost first; "function | file line".
ALLOCATOR = """
torch::unwind::unwind() | ?? 0
torch::CapturedTraceback::gather(bool, bool, bool) | ?? 0
torch::cuda::(anonymous namespace)::gather_with_cpp() | memory_snapshot.cpp 0
c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long) | 0
at::detail::empty_strided_cuda(c10::ArrayRef<long>, c10::ScalarType) | ?? 0
"""
FORWARD = f"""{ALLOCATOR}
at::native::linear(at::Tensor const&, at::Tensor const&) | ?? 0
torch::autograd::THPVariable_linear(_object*, _object*, _object*) | python_nn_functions.cpp 0
cfunction_call | /usr/local/src/conda/python-3.12.12/Objects/methodobject.c 537
forward | /home/a/.venv/lib/python3.12/site-packages/torch/nn/modules/linear.py 134
_PyEval_EvalFrameDefault | /croot/python-split_1715024085344/Python/bytecodes.c 2706
_call_impl | /home/a/.venv/lib/python3.12/site-packages/torch/nn/modules/module.py 1786
forward | /home/a/project/toy_model.py 77
run | /home/a/project/train.py 49
_run_code | <frozen runpy> 88
"""
BACKWARD = f"""{ALLOCATOR}
at::native::slice_backward(at::Tensor const&, c10::ArrayRef<long>, long) | ?? 0
torch::autograd::generated::SliceBackward0::apply(std::vector<at::Tensor>&&) | ?? 0
torch::autograd::Node::operator()(std::vector<at::Tensor>&&) | 0
execute_native_thread_routine | /opt/conda/gcc/libstdc++-v3/src/c++11/thread.cc 82
"""
ACCUMULATE = f"""{ALLOCATOR}
at::native::new_empty_strided_symint(at::Tensor const&) | ?? 0
torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&) | ?? 0
clone | ?? 0
"""
LIBRARY = f"""{ALLOCATOR}
PyObject_CallFunctionObjArgs | ?? 0
_allocate_kv_cache | /usr/local/lib/python3.10/dist-packages/vllm/worker/cache_engine.py 83
decorate_context | /usr/local/lib/python3.10/dist-packages/torch/utils/_contextlib.py 116
_run | /usr/lib/python3.10/threading.py 953
"""
COMPILED = f"""{ALLOCATOR}
call | /tmp/torchinductor_a/oc/coc6o35wl7af7azzl.py 805
__call__ | /opt/venv/lib/python3.12/site-packages/torch/_inductor/output_code.py 613
forward | <eval_with_key>.12 9
forward | /home/user/src/model.py 157
"""
CHECKOUT = f"""{ALLOCATOR}
forward | /home/a/core/pytorch/torch/nn/modules/module.py 1501
main | /home/a/core/pytorch/t2.py 89
"""
WINDOWS = r"""
deepcopy | C:\Users\A\AppData\Roaming\uv\python\cpython-3.10.19-windows-x86_64-none\lib\copy.py 153
__init__ | C:\research\cezo_fl\gradient_estimators\adam_forward.py 167
"""
TYPED = f"""{ALLOCATOR}
__init__ | <string> 4
<cell line: 3> | <ipython-input-12-8f9a> 3
launch | /usr/lib/python3.12/site-packages/ipykernel/app.py 10
"""
OPERATOR_ONLY = f"""{ALLOCATOR}
void at::native::(anonymous namespace)::fill<float>(at::Tensor&, float) const | ?? 0
start_thread | ./nptl/pthread_create.c 442
"""


def _frames(text: str, directory: Path) -> tuple[snapviewer.Frame, ...]:
    """The frames of a stack that was written to a file and read again."""
    frames = []
    for line in filter(None, text.splitlines()):
        name, _, place = line.rpartition(" | ")
        filename, _, number = place.rpartition(" ")
        frames.append({"name": name, "filename": filename, "line": int(number)})
    snapshot = hostile.small_snapshot()
    for event in snapshot["device_traces"][0]:
        event["frames"] = frames
    path = directory / "snap.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    loaded = snapviewer.load(path)
    return loaded.frames(int(loaded.devices[0].allocations.stack[-1]))


@pytest.mark.parametrize(
    ("stack", "said"),
    [
        (FORWARD, "toy_model.py:77 forward"),
        (BACKWARD, "SliceBackward0"),
        (ACCUMULATE, "AccumulateGrad"),
        (LIBRARY, "cache_engine.py:83 _allocate_kv_cache"),
        (COMPILED, "model.py:157 forward"),
        (CHECKOUT, "t2.py:89 main"),
        (WINDOWS, "adam_forward.py:167 __init__"),
        (TYPED, "<ipython-input-12-8f9a>:3 <cell line: 3>"),
        (OPERATOR_ONLY, "at::native::fill"),
        (ALLOCATOR, "at::detail::empty_strided_cuda"),
    ],
)
def test_the_line_that_says_most_is_found(stack: str, said: str, tmp_path: Path) -> None:
    frame = own_frame(_frames(stack, tmp_path))

    assert frame is not None
    assert frame_text(frame) == said


@pytest.mark.parametrize(
    ("stack", "kinds"),
    [
        (ALLOCATOR, "torch " * 5),
        (FORWARD, "torch " * 7 + "other torch other torch own own other"),
        (BACKWARD, "torch " * 8 + "other"),
        (LIBRARY, "torch " * 5 + "other library torch other"),
        (COMPILED, "torch " * 8 + "own"),
        (CHECKOUT, "torch " * 6 + "own"),
        (WINDOWS, "other own"),
        (TYPED, "torch " * 5 + "other own library"),
        (OPERATOR_ONLY, "torch " * 6 + "other"),
    ],
)
def test_it_is_known_whose_code_a_frame_is(stack: str, kinds: str, tmp_path: Path) -> None:
    frames = _frames(stack, tmp_path)

    assert [kind_of(frame) for frame in frames] == kinds.split()


def test_of_the_users_own_lines_the_innermost_is_taken(tmp_path: Path) -> None:
    frames = _frames("f | a.py 1\ng | b.py 2", tmp_path)

    assert own_frame(frames) == frames[0]


def test_no_frames_have_no_line() -> None:
    assert own_frame(()) is None
