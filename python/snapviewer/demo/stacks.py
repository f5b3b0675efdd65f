"""The call stacks of the demo: frames as PyTorch captures them, innermost first.

A frame is one dict for the whole snapshot, however many stacks hold it. A `Stack` is only a
template: the recorder copies it, because in a real file every captured event has its own list.
"""

from __future__ import annotations

from typing import TypeAlias

from .recorder import Frames

Stack = Frames

SITE = "/opt/venv/lib/python3.12/site-packages/torch"
USER = "/home/ada/minigpt"
MODULE = f"{SITE}/nn/modules/module.py"
ALLOCATOR = "c10::cuda::CUDACachingAllocator::Native"
ANONYMOUS = "at::(anonymous namespace)"

_Part: TypeAlias = list[tuple[str, str, int]]


def _native(*frames: str) -> _Part:
    """Make frames of C++, which have no lines: `function`, or `function @ file`."""
    split = (frame.partition(" @ ") for frame in frames)
    return [(function, file.strip() if at else "??", 0) for function, at, file in split]


_CAPTURE = _native(
    "torch::unwind::unwind()",
    "torch::CapturedTraceback::gather(bool, bool, bool)",
    "torch::cuda::(anonymous namespace)::gather_with_cpp() @ memory_snapshot.cpp",
)
_MALLOC = _CAPTURE + _native(
    f"{ALLOCATOR}::DeviceCachingAllocator::malloc(unsigned long, CUstream_st*)"
    " @ CUDACachingAllocator.cpp",
    f"{ALLOCATOR}::NativeCachingAllocator::malloc(void**, signed char, unsigned long, "
    "CUstream_st*) @ ",
    f"{ALLOCATOR}::NativeCachingAllocator::allocate(unsigned long) @ ",
)
# How an operator makes its outputs: the first, the second and the third one.
_OUTPUTS = [
    _native(
        "at::detail::empty_generic(c10::ArrayRef<long>, c10::Allocator*, c10::DispatchKeySet, "
        "c10::ScalarType, std::optional<c10::MemoryFormat>)",
        "at::detail::empty_cuda(c10::ArrayRef<long>, c10::ScalarType, "
        "std::optional<c10::Device>, std::optional<c10::MemoryFormat>)",
    ),
    _native(
        "at::detail::empty_strided_generic(c10::ArrayRef<long>, c10::ArrayRef<long>, "
        "c10::Allocator*, c10::DispatchKeySet, c10::ScalarType)",
        "at::detail::empty_strided_cuda(c10::ArrayRef<long>, c10::ArrayRef<long>, "
        "c10::ScalarType, std::optional<c10::Device>)",
        "at::native::empty_like(at::Tensor const&, std::optional<c10::ScalarType>)",
    ),
    _native(
        "at::native::resize_bytes_cuda(c10::StorageImpl*, unsigned long)",
        "at::native::resize_cuda_(at::Tensor const&, c10::ArrayRef<long>, "
        "std::optional<c10::MemoryFormat>)",
        "at::_ops::resize_::call(at::Tensor const&, c10::ArrayRef<c10::SymInt>)",
        "at::native::resize_output(at::Tensor const&, c10::ArrayRef<long>)",
    ),
]
_EMPTY = _OUTPUTS[0]
_FREE = _CAPTURE + _native(
    f"{ALLOCATOR}::DeviceCachingAllocator::free({ALLOCATOR}::(anonymous namespace)::Block*)"
    " @ CUDACachingAllocator.cpp",
    "c10::intrusive_ptr<c10::StorageImpl>::reset_not_null_(c10::StorageImpl*) @ ",
    "c10::TensorImpl::~TensorImpl() @ TensorImpl.cpp",
)
_DEALLOC = _native(
    "THPVariable_clear(THPVariable*) @ python_variable.cpp",
    "THPVariable_dealloc(_object*) @ python_variable.cpp",
    "subtype_dealloc",
)
_ENGINE = _native(
    "torch::autograd::Node::operator()(std::vector<at::Tensor>&&)",
    "torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&, "
    "torch::autograd::Node*, torch::autograd::InputBuffer&)",
    "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)",
    "torch::autograd::Engine::thread_init(int, std::shared_ptr<ReadyQueue> const&, bool)",
    "torch::autograd::python::PythonEngine::thread_init(int, bool)",
    "execute_native_thread_routine @ thread.o",
    "start_thread @ pthread_create.c",
    "__clone3",
)
_EVAL = ("_PyEval_EvalFrameDefault", "??", 0)
_CALL_MODULE = [
    _EVAL,
    ("_call_impl", MODULE, 1790),
    _EVAL,
    ("_wrapped_call_impl", MODULE, 1779),
    *_native("slot_tp_call"),
]
_START = _native("PyEval_EvalCode", "Py_RunMain", "__libc_start_main", "_start")

# Where in the user's code a phase of the training starts.
CALLERS = {
    "train": [("train_step", f"{USER}/train.py", 71), ("main", f"{USER}/train.py", 138)],
    "evaluate": [("evaluate", f"{USER}/train.py", 96), ("main", f"{USER}/train.py", 149)],
    "generate": [("generate", f"{USER}/sample.py", 33), ("main", f"{USER}/train.py", 152)],
    "capture": [
        ("make_graphed_callables", f"{SITE}/cuda/graphs.py", 412),
        ("main", f"{USER}/train.py", 121),
    ],
}
_OUTER = [("<module>", f"{USER}/train.py", 171)]

# The user's module around an operator: the lines from the operator out to the model.
_BLOCK = {
    "attention": [("forward", f"{USER}/model.py", 97)],
    "mlp": [("forward", f"{USER}/model.py", 98)],
}
MODULES = {
    "ln": [
        ("layer_norm", f"{SITE}/nn/functional.py", 2905),
        ("forward", f"{SITE}/nn/modules/normalization.py", 217),
    ],
    "linear": [("forward", f"{SITE}/nn/modules/linear.py", 125)],
    "dropout": [
        ("dropout", f"{SITE}/nn/functional.py", 1425),
        ("forward", f"{SITE}/nn/modules/dropout.py", 70),
    ],
    "sdpa": [],
    "gelu": [("forward", f"{SITE}/nn/modules/activation.py", 734)],
    "embedding": [
        ("embedding", f"{SITE}/nn/functional.py", 2551),
        ("forward", f"{SITE}/nn/modules/sparse.py", 190),
    ],
    "loss": [("cross_entropy", f"{SITE}/nn/functional.py", 3462)],
    "plain": [],
}


class Stacks:
    """Builds stacks out of frames that are shared by the whole snapshot."""

    def __init__(self, *, compiled: bool) -> None:
        self.compiled = compiled
        self._frames: dict[tuple[str, str, int], dict[str, str | int]] = {}

    def of(self, *parts: _Part) -> Stack:
        """Make a stack of some runs of frames, innermost first."""
        return [self._frame(frame) for part in parts for frame in part]

    def _frame(self, frame: tuple[str, str, int]) -> dict[str, str | int]:
        known = self._frames.get(frame)
        if known is None:
            name, filename, line = frame
            # Real files share no text between frames: each has strings of its own.
            known = {"name": _fresh(name), "filename": _fresh(filename), "line": line}
            self._frames[frame] = known
        return known

    def forward(
        self,
        op: str,
        module: str,
        line: int,
        caller: str,
        *,
        inner: str = "",
        stage: int = 0,
        output: int = 0,
    ) -> Stack:
        """Build the stack of an operator that `model.py` calls in a block, or outside of them.

        Args:
            op: The operator's ATen name.
            module: The key in `MODULES` of what calls it.
            line: The line of the user's `forward` that it is called from.
            caller: The key in `CALLERS` of the phase.
            inner: "mlp" or "attention" in a transformer block, "block" between them, "" outside.
            stage: Which of the model's three loops over blocks.
            output: Which of the operator's outputs this is.
        """
        user = [("forward", f"{USER}/model.py", line)]
        library = MODULES[module]
        made = _OUTPUTS[output % len(_OUTPUTS)]
        parts = [_MALLOC, made, _operator(op), _binding(op), library]
        if library:
            parts.append(_CALL_MODULE)
        parts.append(user)
        if inner in ("mlp", "attention"):
            parts += [_CALL_MODULE, _BLOCK[inner]]
        if inner:
            parts += [_CALL_MODULE, [("forward", f"{USER}/model.py", 156 + 3 * stage)]]
        parts += [_CALL_MODULE, CALLERS[caller], _OUTER, _START]
        return self.of(*parts)

    def backward(self, op: str, node: str, *, output: int = 0) -> Stack:
        """An operator that a node of the autograd graph runs on the engine's own thread."""
        apply = _native(f"torch::autograd::generated::{node}::apply(std::vector<at::Tensor>&&)")
        made = _OUTPUTS[output % len(_OUTPUTS)]
        return self.of(_MALLOC, made, _operator(op), apply, _ENGINE)

    def python(self, op: str, frames: _Part, caller: str) -> Stack:
        """An operator called from Python code that is no module."""
        return self.of(
            _MALLOC, _EMPTY, _operator(op), _binding(op), frames, CALLERS[caller], _OUTER, _START
        )

    def inductor(
        self, graph: str, line: int, caller: str, *, region: int, is_backward: bool
    ) -> Stack:
        """A buffer that code generated by torch.compile allocates on a line of its own.

        Every graph break before `region` adds the frames of the function that resumes after it.
        """
        generated = [("call", f"/tmp/torchinductor_ada/{graph[:3]}/{graph}.py", line)]
        direction = _COMPILED_BACKWARD if is_backward else _COMPILED_FORWARD
        around = _ENGINE if is_backward else [*_CALL_MODULE, *CALLERS[caller], *_OUTER, *_START]
        resumed = [
            frame
            for break_ in range(0 if is_backward else region, 0, -1)
            for frame in (
                (f"torch_dynamo_resume_in_forward_at_{157 + break_}", f"{USER}/model.py", 157),
                *_CALL_MODULE,
            )
        ]
        return self.of(_MALLOC, _EMPTY, _EMPTY_STRIDED, generated, direction, resumed, around)

    def freed_by_engine(self) -> Stack:
        """The free of something that the autograd graph held."""
        release = _native("torch::autograd::SavedVariable::reset_data()")
        return self.of(_FREE, release, _ENGINE)

    def freed_in(self, name: str, filename: str, line: int, caller: str) -> Stack:
        """The free of a tensor whose last Python reference went away."""
        here = [(name, filename, line)]
        return self.of(_FREE, _DEALLOC, here, CALLERS[caller], _OUTER, _START)


def _fresh(text: str) -> str:
    """Make a new string object of the same text (of one character Python has only one)."""
    return text[:1] + text[1:]


def _operator(op: str) -> _Part:
    short = op.partition("_backward")[0]
    return _native(
        f"{ANONYMOUS}::create_out(c10::ArrayRef<long>, c10::ArrayRef<long>, "
        "c10::TensorOptions const&) @ RegisterCUDA_0.cpp",
        f"at::native::{op}_cuda(at::Tensor const&, at::Tensor const&)",
        f"{ANONYMOUS}::{ANONYMOUS}::wrapper_CUDA__{op}(at::Tensor const&) @ RegisterCUDA_0.cpp",
        f"at::_ops::{op}::redispatch(c10::DispatchKeySet, at::Tensor const&)",
        f"torch::autograd::VariableType::(anonymous namespace)::{short}(c10::DispatchKeySet, "
        "at::Tensor const&) @ VariableType_2.cpp",
        f"at::_ops::{op}::call(at::Tensor const&)",
    )


def _binding(op: str) -> _Part:
    variable = f"torch::autograd::THPVariable_{op}(_object*, _object*, _object*)"
    return _native(
        f"{variable} @ python_torch_functions_0.cpp", "cfunction_call", "_PyObject_MakeTpCall"
    )


_EMPTY_STRIDED = [
    *_native(
        "at::native::empty_strided_cuda(c10::ArrayRef<long>, c10::ArrayRef<long>)",
        f"{ANONYMOUS}::{ANONYMOUS}::wrapper_CUDA__empty_strided(c10::ArrayRef<c10::SymInt>)"
        " @ RegisterCUDA_0.cpp",
        "at::_ops::empty_strided::redispatch(c10::DispatchKeySet, c10::ArrayRef<c10::SymInt>)",
        "torch::dynamo::_empty_strided_cuda(_object*, _object*) @ guards.cpp",
        "cfunction_vectorcall_FASTCALL",
    ),
    _EVAL,
]


def _python_frames(*frames: tuple[str, str, int]) -> _Part:
    """Frames of torch's own Python code, with the interpreter's loop between them."""
    return [each for name, path, line in frames for each in ((name, f"{SITE}/{path}", line), _EVAL)]


def _wrappers(**lines: int) -> _Part:
    """Frames of AOTAutograd's wrappers: functions and their lines."""
    path = "_functorch/_aot_autograd/runtime_wrappers.py"
    return [(name, path, line) for name, line in lines.items()]


_COMPILED_COMMON = [
    ("__call__", "_inductor/output_code.py", 613),
    ("run", "_inductor/utils.py", 2962),
    ("call_func_at_runtime_with_args", "_functorch/_aot_autograd/utils.py", 134),
]
_COMPILED_FORWARD = _python_frames(
    *_COMPILED_COMMON,
    *_wrappers(wrapper=558, inner_fn=781, forward=2119),
    ("apply", "autograd/function.py", 581),
    *_wrappers(runtime_wrapper=357),
    ("forward", "_functorch/aot_autograd.py", 1151),
    ("_fn", "_dynamo/eval_frame.py", 1044),
    ("compile_wrapper", "_dynamo/eval_frame.py", 832),
)
_COMPILED_BACKWARD = _python_frames(
    *_COMPILED_COMMON,
    *_wrappers(_backward_impl=2412, impl_fn=2271, backward=2290),
    ("apply", "autograd/function.py", 315),
)
