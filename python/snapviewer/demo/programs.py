"""What one step of training a small transformer allocates and frees, as a list of operations.

A program is made once for each shape of batch and then run many times, which keeps the
simulation quick and its steps alike. Tensors are named by strings; those that outlive the step
(`grad.*`, `adam.*`) are freed by a later program or never.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from .model import FREE, RECORD_STREAM, Model, Op, Phase
from .stacks import SITE, USER, Stack, Stacks

COMPILED_REGIONS = 4  # graph breaks divide the compiled model into so many graphs
MODEL_STAGES = 3  # the model loops over its blocks in three places
ADAMW = f"{SITE}/optim/adamw.py"


@dataclass
class ProgramBuilder:
    """Writes the phases of one step for batches of one shape."""

    model: Model
    stacks: Stacks
    _: KW_ONLY
    batch: int
    sequence: int
    caller: str = "train"
    variant: int = 0
    lanes: int = 1

    def __post_init__(self) -> None:
        self.tokens = self.batch * self.sequence
        self.ops: list[Op] = []
        self._is_backward = False
        self._region = self._layer = self._line = self._output = 0
        self._last_call: tuple[object, ...] = ()
        self._cache: dict[tuple[object, ...], Stack] = {}
        self._engine_free = self.stacks.freed_by_engine()
        self._python_free = self.stacks.freed_in("forward", f"{USER}/model.py", 118, self.caller)

    # ---- operations

    def alloc(self, tensor: str, size: int, stack: Stack, lane: int = 0) -> None:
        self.ops.append(Op(tensor, size, stack, lane))

    def free(self, *tensors: str) -> None:
        stack = self._engine_free if self._is_backward else self._python_free
        self.ops.extend(Op(tensor, FREE, stack) for tensor in tensors)

    def fwd(self, tensor: str, size: int, op: str, module: str, line: int, inner: str = "") -> None:
        """Allocate in the forward pass; compiled code does it on a line of its own."""
        stage = self._layer * MODEL_STAGES // self.model.layers if inner else 0
        output = self._output_number(op, module, line)
        if self.stacks.compiled:
            self.alloc(tensor, size, self._inductor())
            return
        key = (op, module, line, inner, stage, output)
        stack = self._cache.get(key)
        if stack is None:
            stack = self._cache[key] = self.stacks.forward(
                op, module, line, self.caller, inner=inner, stage=stage, output=output
            )
        self.alloc(tensor, size, stack)

    def bwd(self, tensor: str, size: int, op: str, node: str) -> None:
        """Allocate in the backward pass."""
        output = self._output_number(op, node)
        if self.stacks.compiled:
            self.alloc(tensor, size, self._inductor())
            return
        key = (op, node, output)
        stack = self._cache.get(key)
        if stack is None:
            stack = self._cache[key] = self.stacks.backward(op, node, output=output)
        self.alloc(tensor, size, stack)

    def _output_number(self, *call: object) -> int:
        """Allocations one after another for the same call are its first, second, … output."""
        self._output = self._output + 1 if call == self._last_call else 0
        self._last_call = call
        return self._output

    def _inductor(self) -> Stack:
        self._line += 1 + self._line % 4
        direction = "b" if self._is_backward else "f"
        graph = f"c{self.variant:02d}{self._region}{direction}{self.caller[:3]}kq7x2m5"
        return self.stacks.inductor(
            graph, 90 + self._line, self.caller, region=self._region,
            is_backward=self._is_backward,
        )  # fmt: skip

    def take(self, name: str | None) -> Phase:
        """End a phase: everything since the last one."""
        ops, self.ops = self.ops, []
        context = (f"{self._region}/", str(self.variant)) if self.stacks.compiled else None
        return Phase(name, context, ops)

    # ---- phases

    def forward(self, *, keep: bool) -> list[Phase]:
        """The forward pass; `keep` holds what the backward pass will need."""
        t, h, v = self.tokens, self.model.hidden, self.model.vocabulary
        phases: list[Phase] = []
        self.fwd("tok", t * h * 4, "embedding", "embedding", 148)
        self.fwd("pos", self.sequence * h * 4, "embedding", "embedding", 149)
        self.fwd("x0", t * h * 4, "add_Tensor", "plain", 150)
        self.free("tok", "pos")
        for layer in range(self.model.layers):
            self._layer = layer
            self._forward_layer(layer, keep=keep)
            region = (layer + 1) * COMPILED_REGIONS // self.model.layers
            if self.stacks.compiled and region != self._region:
                phases.append(self.take("forward"))
                self._region = min(region, COMPILED_REGIONS - 1)
        last = f"x{self.model.layers}"
        self.fwd("lnf", t * h * 4, "native_layer_norm", "ln", 168)
        self.fwd("lnf.stats", t * 8, "native_layer_norm", "ln", 168)
        self.fwd("lnf16", t * h * 2, "_to_copy", "linear", 169)
        self.fwd("wte16", v * h * 2, "_to_copy", "linear", 169)
        self.fwd("logits", t * v * 2, "mm", "linear", 169)
        self.free("lnf")
        self.fwd("logits32", t * v * 4, "_to_copy", "loss", 172)
        self.free("logits")
        self.fwd("logp", t * v * 4, "_log_softmax", "loss", 172)
        self.free("logits32")
        self.fwd("loss", 4, "nll_loss_forward", "loss", 172)
        self.fwd("weight", 4, "nll_loss_forward", "loss", 172)
        if not keep:
            self.free("logp", "wte16", "lnf16", "lnf.stats", last, "weight", "loss")
        return [*phases, self.take("forward")]

    def _forward_layer(self, layer: int, *, keep: bool) -> None:
        t, h = self.tokens, self.model.hidden
        heads = max(1, h // 64)
        p, x = f"h{layer}.", f"x{layer}"
        before = len(self.ops)
        self._forward_norm(p + "ln1", 96)
        self._forward_linear(p + "qkv", 3, 41, "attention", norm=p + "ln1")
        self.fwd(p + "attn", t * h * 2, "_flash_attention_forward", "sdpa", 47, "attention")
        self.fwd(
            p + "lse", self.batch * heads * self.sequence * 4,
            "_flash_attention_forward", "sdpa", 47, "attention",
        )  # fmt: skip
        self.fwd(p + "rng", 16, "_flash_attention_forward", "sdpa", 47, "attention")
        self.fwd(p + "proj.w16", h * h * 2, "_to_copy", "linear", 51, "attention")
        self.fwd(p + "proj", t * h * 2, "addmm", "linear", 51, "attention")
        self.fwd(p + "drop1", t * h * 2, "native_dropout", "dropout", 52, "attention")
        self.fwd(p + "mask1", t * h, "native_dropout", "dropout", 52, "attention")
        self.free(p + "proj")
        self.fwd(p + "mid", t * h * 4, "add_Tensor", "plain", 97, "block")
        self.free(p + "drop1")
        self._forward_norm(p + "ln2", 98)
        self._forward_linear(p + "fc1", 4, 71, "mlp", norm=p + "ln2")
        self.fwd(p + "gelu", t * 4 * h * 2, "gelu", "gelu", 72, "mlp")
        self.fwd(p + "fc2.w16", 4 * h * h * 2, "_to_copy", "linear", 73, "mlp")
        self.fwd(p + "fc2", t * h * 2, "addmm", "linear", 73, "mlp")
        self.fwd(p + "drop2", t * h * 2, "native_dropout", "dropout", 74, "mlp")
        self.fwd(p + "mask2", t * h, "native_dropout", "dropout", 74, "mlp")
        self.free(p + "fc2")
        self.fwd(f"x{layer + 1}", t * h * 4, "add_Tensor", "plain", 98, "block")
        self.free(p + "drop2")
        if not keep:
            freed = {op.tensor for op in self.ops[before:] if op.size == FREE}
            made = [op.tensor for op in self.ops[before:] if op.size != FREE]
            self.free(*(name for name in made if name not in freed and name != f"x{layer + 1}"), x)

    def _forward_norm(self, name: str, line: int) -> None:
        op, t = "native_layer_norm", self.tokens
        for part, size in (("", t * self.model.hidden * 4), (".mean", t * 4), (".rstd", t * 4)):
            self.fwd(name + part, size, op, "ln", line, "block")

    def _forward_linear(self, name: str, width: int, line: int, inner: str, *, norm: str) -> None:
        """A linear layer in bfloat16 on what a norm made, `width` times as wide as the model."""
        t, h = self.tokens, self.model.hidden
        self.fwd(f"{norm}.16", t * h * 2, "_to_copy", "linear", line, inner)
        self.fwd(f"{name}.w16", width * h * h * 2, "_to_copy", "linear", line, inner)
        self.free(norm)
        self.fwd(name, t * width * h * 2, "addmm", "linear", line, inner)

    def backward(self) -> list[Phase]:
        """The backward pass: gradients appear, activations go."""
        self._is_backward = True
        self._line = 0
        t, h, v = self.tokens, self.model.hidden, self.model.vocabulary
        phases: list[Phase] = []
        self.bwd("g.loss", 4, "ones_like", "NllLossBackward0")
        self.bwd("g.logp", t * v * 4, "nll_loss_backward", "NllLossBackward0")
        self.free("g.loss", "weight")
        self.bwd("g.logits32", t * v * 4, "_log_softmax_backward_data", "LogSoftmaxBackward0")
        self.free("g.logp", "logp")
        self.bwd("g.logits", t * v * 2, "_to_copy", "ToCopyBackward0")
        self.free("g.logits32")
        self.bwd("g.lnf16", t * h * 2, "mm", "MmBackward0")
        self.bwd("g.wte16", v * h * 2, "mm", "MmBackward0")
        self.free("g.logits", "wte16", "lnf16")
        self.bwd("grad.wte", v * h * 4, "_to_copy", "ToCopyBackward0")
        self.free("g.wte16")
        self.bwd("g.lnf", t * h * 4, "_to_copy", "ToCopyBackward0")
        self.free("g.lnf16")
        layers = self.model.layers
        self.bwd(f"g{layers}", t * h * 4, "native_layer_norm_backward", "NativeLayerNormBackward0")
        for part in ("w", "b"):
            self.bwd(
                f"grad.lnf.{part}", h * 4, "native_layer_norm_backward", "NativeLayerNormBackward0"
            )
        self.free("g.lnf", "lnf.stats", f"x{layers}")
        for layer in reversed(range(layers)):
            self._backward_layer(layer)
            region = layer * COMPILED_REGIONS // layers
            if self.stacks.compiled and region != self._region:
                phases.append(self.take("backward"))
                self._region = region
        self.bwd("grad.wpe", 1024 * h * 4, "embedding_dense_backward", "EmbeddingBackward0")
        self.bwd("g.wte", v * h * 4, "embedding_dense_backward", "EmbeddingBackward0")
        self.free("g0", "g.wte", "x0")
        phases.append(self.take("backward"))
        self._is_backward = False
        self._region = 0
        return phases

    def _backward_layer(self, layer: int) -> None:
        t, h = self.tokens, self.model.hidden
        p = f"h{layer}."
        grad = f"g{layer + 1}"
        self.bwd(p + "g.drop2", t * h * 2, "native_dropout_backward", "NativeDropoutBackward0")
        self.free(p + "mask2")
        self._backward_linear(p + "fc2", p + "g.drop2", p + "gelu", h, 4 * h)
        self.bwd(p + "g.fc1", t * 4 * h * 2, "gelu_backward", "GeluBackward0")
        self.free(p + "g.fc2.in", p + "fc1")
        self._backward_linear(p + "fc1", p + "g.fc1", p + "ln2.16", 4 * h, h)
        self._backward_norm(p, "ln2", p + "g.fc1.in")
        self.bwd(p + "g.mid", t * h * 4, "add_Tensor", "AddBackward0")
        self.free(grad, p + "g.ln2", p + "mid")
        self.bwd(p + "g.drop1", t * h * 2, "native_dropout_backward", "NativeDropoutBackward0")
        self.free(p + "mask1")
        self._backward_linear(p + "proj", p + "g.drop1", p + "attn", h, h)
        node = "ScaledDotProductFlashAttentionBackward0"
        self.bwd(p + "g.qkv", t * 3 * h * 2, "_flash_attention_backward", node)
        self.bwd(p + "g.delta", t * 4, "_flash_attention_backward", node)
        self.free(p + "g.delta", p + "g.proj.in", p + "lse", p + "rng", p + "qkv")
        self._backward_linear(p + "qkv", p + "g.qkv", p + "ln1.16", 3 * h, h)
        self._backward_norm(p, "ln1", p + "g.qkv.in")
        self.bwd(f"g{layer}", t * h * 4, "add_Tensor", "AddBackward0")
        self.free(p + "g.mid", p + "g.ln1")
        if layer:
            self.free(f"x{layer}")
        if self.lanes > 1:
            self._reduce_bucket(layer)

    def _backward_linear(self, name: str, grad: str, saved: str, out: int, inp: int) -> None:
        """Gradients of a linear layer in bfloat16, and their copies in float32."""
        self.bwd(f"{name}.g16", out * inp * 2, "mm", "AddmmBackward0")
        self.bwd(f"{name}.gb16", out * 2, "sum_dim_IntList", "AddmmBackward0")
        prefix, _, part = name.partition(".")
        self.bwd(f"{prefix}.g.{part}.in", self.tokens * inp * 2, "mm", "AddmmBackward0")
        self.free(grad, saved, f"{name}.w16")
        self.bwd(f"grad.{name}.w", out * inp * 4, "_to_copy", "ToCopyBackward0")
        self.bwd(f"grad.{name}.b", out * 4, "_to_copy", "ToCopyBackward0")
        self.free(f"{name}.g16", f"{name}.gb16")

    def _backward_norm(self, p: str, norm: str, grad: str) -> None:
        t, h = self.tokens, self.model.hidden
        node = "NativeLayerNormBackward0"
        self.bwd(p + norm + ".g32", t * h * 4, "_to_copy", "ToCopyBackward0")
        self.free(grad)
        self.bwd(p + "g." + norm, t * h * 4, "native_layer_norm_backward", node)
        self.bwd(f"grad.{p}{norm}.w", h * 4, "native_layer_norm_backward", node)
        self.bwd(f"grad.{p}{norm}.b", h * 4, "native_layer_norm_backward", node)
        self.free(p + norm + ".g32", p + norm + ".mean", p + norm + ".rstd")

    def _reduce_bucket(self, layer: int) -> None:
        """Average a layer's gradients over the workers, on a stream of its own."""
        h = self.model.hidden
        lane = 1 + (layer + self.variant) % (self.lanes - 1)
        flat, result = f"bucket{layer}", f"reduced{layer}"
        key = ("bucket",)
        stack = self._cache.get(key) or self.stacks.backward("flatten_dense_tensors", "ReduceHook")
        self._cache[key] = stack
        self.alloc(flat, 12 * h * h * 2, stack)
        self.alloc(result, 12 * h * h * 2, stack, lane)
        self.ops.append(Op(flat, RECORD_STREAM, stack))
        self.ops.append(Op(result, RECORD_STREAM, stack))
        self.free(flat, result)

    def clip(self) -> Phase:
        """Gradient clipping: one norm for each parameter, then one for all."""
        path = f"{SITE}/nn/utils/clip_grad.py"
        each = self.stacks.python("_foreach_norm", [("_get_total_norm", path, 96)], self.caller)
        total = self.stacks.python("linalg_vector_norm", [("_get_total_norm", path, 104)],
                                   self.caller)  # fmt: skip
        done = self.stacks.freed_in("clip_grad_norm_", path, 220, self.caller)
        names = [name for name, _ in self.model.parameters()]
        self.ops += [Op(f"norm.{name}", 4, each) for name in names]
        self.ops.append(Op("norm.stacked", 4 * len(names), total))
        self.ops.append(Op("norm", 4, total))
        self.ops += [Op(f"norm.{name}", FREE, done) for name in names]
        self.ops += [Op("norm.stacked", FREE, done), Op("norm", FREE, done)]
        return self._plain("clip_grad_norm_")

    def optimizer(self, *, is_first: bool) -> Phase:
        """AdamW: its state appears in the first step; each step needs a copy of all weights."""
        state = [self.stacks.python("zeros_like", [("_init_group", ADAMW, line)], self.caller)
                 for line in (135, 139)]  # fmt: skip
        frames = [("_multi_tensor_adamw", ADAMW, 612), ("adamw", ADAMW, 701), ("step", ADAMW, 221)]
        root = self.stacks.python("_foreach_sqrt", frames, self.caller)
        done = self.stacks.freed_in("_multi_tensor_adamw", ADAMW, 640, self.caller)
        parameters = self.model.parameters()
        if is_first:
            for name, count in parameters:
                self.ops.append(Op(f"adam.{name}.m", count * 4, state[0]))
                self.ops.append(Op(f"adam.{name}.v", count * 4, state[1]))
        self.ops += [Op(f"sqrt.{name}", count * 4, root) for name, count in parameters]
        self.ops += [Op(f"sqrt.{name}", FREE, done) for name, _ in parameters]
        return self._plain("Optimizer.step#AdamW.step")

    def zero_grad(self) -> Phase:
        """Drop all gradients."""
        done = self.stacks.freed_in("zero_grad", f"{SITE}/optim/optimizer.py", 1020, self.caller)
        self.ops += [Op(f"grad.{name}", FREE, done) for name, _ in self.model.parameters()]
        return self._plain("Optimizer.zero_grad#AdamW.zero_grad")

    def generate(self, tokens: int) -> Phase:
        """Sampling with a key-value cache, which grows by concatenation, token by token."""
        h, prompt = self.model.hidden, 37
        cat = [self.stacks.forward("cat", "plain", line, "generate", inner="attention")
               for line in (56, 57)]  # fmt: skip
        logits = self.stacks.forward("mm", "linear", 169, "generate")
        done = self.stacks.freed_in("forward", f"{USER}/model.py", 58, "generate")
        for token in range(tokens):
            size = (prompt + token) * h * 2
            for layer in range(self.model.layers):
                for kind, stack in zip("kv", cat, strict=True):
                    self.ops.append(Op(f"cache{layer}.{kind}{token}", size, stack))
                    if token:
                        self.ops.append(Op(f"cache{layer}.{kind}{token - 1}", FREE, done))
            self.ops.append(Op("next", self.model.vocabulary * 2, logits))
            self.ops.append(Op("next", FREE, done))
        self.ops += [
            Op(f"cache{layer}.{kind}{tokens - 1}", FREE, done)
            for layer in range(self.model.layers)
            for kind in "kv"
        ]
        return self._plain("generate")

    def _plain(self, name: str) -> Phase:
        ops, self.ops = self.ops, []
        return Phase(name, None, ops)
