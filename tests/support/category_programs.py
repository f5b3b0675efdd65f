"""Programs whose allocations are known: `category_programs.py NAME OUTPUT`, on the null device.

Each trains or runs a model. What is a parameter, a gradient or a state of the optimizer is noted by
its address when it is seen: parameters before the first step and after the last, gradients when
they are stored, states after each step. The output is a pickle of PyTorch's snapshot with these
notes.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

STEPS = 4
Loss = Callable[[], torch.Tensor]


class Truth:
    """What was seen: when, at which address, and what it is."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, str]] = []
        self.model_us = 0  # when the model was made
        self.steps_us: list[int] = []  # when each step ended

    def note(self, tensors: Iterable[Any], what: str) -> None:
        now = time.time_ns() // 1000
        for tensor in tensors:
            if isinstance(tensor, torch.Tensor) and tensor.is_cuda:
                self.seen.append((now, tensor.untyped_storage().data_ptr(), what))

    def model(self, model: nn.Module) -> None:
        parameters = list(model.parameters())
        self.note([*parameters, *model.buffers()], "parameter")
        for parameter in parameters:
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(
                    lambda one: self.note([one.grad], "gradient")
                )
        time.sleep(0.002)
        self.model_us = time.time_ns() // 1000
        time.sleep(0.002)

    def optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        def after(one: Any, *_: Any) -> None:
            states = [value for state in one.state.values() for value in state.values()]
            self.note(states, "optimizer_state")

        optimizer.register_step_post_hook(after)


TRUTH = Truth()


def train(
    model: nn.Module,
    loss: Loss,
    optimizer: Callable[[Iterable[Any]], torch.optim.Optimizer],
    *,
    steps: int = STEPS,
    accumulate: int = 1,
    clip: bool = False,
    half: torch.dtype | None = None,
) -> None:
    TRUTH.model(model)
    chosen = optimizer([one for one in model.parameters() if one.requires_grad])
    TRUTH.optimizer(chosen)
    for _ in range(steps):
        for _ in range(accumulate):
            with torch.autocast("cuda", dtype=half or torch.bfloat16, enabled=half is not None):
                value = loss()
            (value / accumulate).backward()
            del value
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        chosen.step()
        chosen.zero_grad()
        time.sleep(0.001)
        TRUTH.steps_us.append(time.time_ns() // 1000)
        time.sleep(0.001)
    TRUTH.note([*model.parameters(), *model.buffers()], "parameter")


def adamw(**options: Any) -> Callable[[Iterable[Any]], torch.optim.Optimizer]:
    return lambda parameters: torch.optim.AdamW(parameters, lr=1e-3, **options)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = parts[0] @ parts[1].transpose(-1, -2) / width**0.5
        mask = torch.ones(length, length, device=x.device, dtype=torch.bool).tril()
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        return self.out((weights @ parts[2]).transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, *, width: int = 256, layers: int = 4, is_checkpointed: bool = False) -> None:
        super().__init__()
        self.tokens = nn.Embedding(5000, width)
        self.positions = nn.Parameter(torch.zeros(512, width))
        self.layers = nn.ModuleList(Layer(width, 4) for _ in range(layers))
        self.head = nn.Linear(width, 5000, bias=False)
        self.is_checkpointed = is_checkpointed

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        from torch.utils.checkpoint import checkpoint

        x = self.tokens(tokens) + self.positions[: tokens.shape[1]]
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.is_checkpointed else layer(x)
        return self.head(x)


def _tokens(batch: int = 8, length: int = 128, count: int = 5000) -> torch.Tensor:
    return torch.randint(0, count, (batch, length), device="cuda")


def _gpt_loss(model: nn.Module, batch: int = 8) -> Loss:
    def loss() -> torch.Tensor:
        tokens = _tokens(batch)
        return F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())

    return loss


def gpt_adamw_foreach() -> None:
    model = GPT().cuda()
    train(model, _gpt_loss(model), adamw(foreach=True))


def gpt_adamw_fused() -> None:
    model = GPT().cuda()
    train(model, _gpt_loss(model), adamw(fused=True), clip=True)


def gpt_autocast() -> None:
    model = GPT().cuda()
    train(model, _gpt_loss(model), adamw(), half=torch.bfloat16, clip=True)


def gpt_checkpointing() -> None:
    model = GPT(layers=8, is_checkpointed=True).cuda()
    train(model, _gpt_loss(model, 16), adamw())


def gpt_accumulation() -> None:
    model = GPT().cuda()
    train(model, _gpt_loss(model, 4), adamw(), accumulate=3)


def gpt_sgd() -> None:
    model = GPT().cuda()
    train(model, _gpt_loss(model), lambda them: torch.optim.SGD(them, lr=0.1))


def gpt_inference() -> None:
    model = GPT(width=512).cuda().eval()
    TRUTH.model(model)
    with torch.no_grad():
        for _ in range(STEPS):
            model(_tokens()).argmax(-1)
            time.sleep(0.001)
            TRUTH.steps_us.append(time.time_ns() // 1000)
    TRUTH.note(model.parameters(), "parameter")


def bert_adamw() -> None:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=4000, hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
        intermediate_size=1024, attn_implementation="eager",
    )  # fmt: skip
    model = BertForMaskedLM(config).cuda()

    def loss() -> torch.Tensor:
        tokens = _tokens(count=4000)
        return model(input_ids=tokens, labels=tokens).loss

    train(model, loss, adamw())


def llama_adafactor() -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=4000, hidden_size=256, intermediate_size=704, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, attn_implementation="sdpa",
    )  # fmt: skip
    model = LlamaForCausalLM(config).to("cuda")

    def loss() -> torch.Tensor:
        tokens = _tokens(count=4000)
        return model(input_ids=tokens, labels=tokens).loss

    train(model, loss, lambda them: torch.optim.Adafactor(them, lr=1e-3))


def t5_adamw() -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=4000, d_model=256, d_kv=64, d_ff=1024, num_layers=3, num_heads=4,
        decoder_start_token_id=0,
    )  # fmt: skip
    model = T5ForConditionalGeneration(config).cuda()

    def loss() -> torch.Tensor:
        tokens = _tokens(count=4000, length=96)
        return model(input_ids=tokens, labels=tokens).loss

    train(model, loss, adamw(foreach=False))


def vit_sgd_momentum() -> None:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=192, num_hidden_layers=4, num_attention_heads=3, intermediate_size=768,
        image_size=112, num_labels=100,
    )  # fmt: skip
    model = ViTForImageClassification(config).cuda()

    def loss() -> torch.Tensor:
        images = torch.randn(16, 3, 112, 112, device="cuda")
        labels = torch.randint(0, 100, (16,), device="cuda")
        return F.cross_entropy(model(pixel_values=images).logits, labels)

    train(model, loss, lambda them: torch.optim.SGD(them, lr=0.1, momentum=0.9))


def _images(model: nn.Module, size: int = 96, batch: int = 16) -> Loss:
    def loss() -> torch.Tensor:
        images = torch.randn(batch, 3, size, size).cuda()
        labels = torch.randint(0, 1000, (batch,)).cuda()
        return F.cross_entropy(model(images), labels)

    return loss


def resnet_sgd_momentum() -> None:
    from torchvision.models import resnet18

    model = resnet18().cuda()
    train(model, _images(model), lambda them: torch.optim.SGD(them, lr=0.1, momentum=0.9))


def convnext_adamw() -> None:
    from torchvision.models import convnext_tiny

    model = convnext_tiny().cuda()
    train(model, _images(model, 64, 8), adamw())


# Held out at first: their first scores led to changes for optimizers that allocate nothing, and for
# two optimizers. `last_…` were added after the last change of the rules.


def held_lora() -> None:
    """Most of the model is frozen."""
    model = GPT(width=384).cuda().requires_grad_(requires_grad=False)
    for layer in model.layers:
        layer.mlp.append(nn.Linear(384, 8, device="cuda")).append(nn.Linear(8, 384, device="cuda"))
    train(model, _gpt_loss(model), adamw())


def held_lstm_rmsprop() -> None:
    model = nn.LSTM(128, 512, num_layers=2).cuda()

    def loss() -> torch.Tensor:
        return model(torch.randn(50, 32, 128, device="cuda"))[0].square().mean()

    train(model, loss, lambda them: torch.optim.RMSprop(them, lr=1e-3, momentum=0.5))


def held_functional() -> None:
    """No modules: tensors and functions."""
    model = nn.ParameterList(torch.randn(1024, 1024, device="cuda") for _ in range(6))
    weights = list(model)

    def loss() -> torch.Tensor:
        x = torch.randn(256, 1024, device="cuda")
        for weight in weights:
            x = torch.tanh(x @ weight)
        return x.square().mean()

    TRUTH.note(weights, "parameter")
    train(model, loss, lambda them: torch.optim.Adam(them, lr=1e-3))


def held_bfloat16_model() -> None:
    model = GPT(width=384).cuda().to(torch.bfloat16)
    train(model, _gpt_loss(model), adamw(), clip=True, accumulate=2)


def held_gan() -> None:
    """Two models and two optimizers."""
    maker = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 3072)).cuda()
    judge = nn.Sequential(nn.Linear(3072, 1024), nn.ReLU(), nn.Linear(1024, 1)).cuda()
    both = nn.ModuleList([maker, judge])
    TRUTH.model(both)
    first, second = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())
    TRUTH.optimizer(first)
    TRUTH.optimizer(second)
    for _ in range(STEPS):
        real = torch.randn(64, 3072, device="cuda")
        fake = maker(torch.randn(64, 64, device="cuda"))
        second.zero_grad()
        (judge(real).mean() - judge(fake.detach()).mean()).backward()
        second.step()
        first.zero_grad()
        judge(fake).mean().backward()
        first.step()
        time.sleep(0.001)
        TRUTH.steps_us.append(time.time_ns() // 1000)
    TRUTH.note(both.parameters(), "parameter")


def last_unet_scaler() -> None:
    """Convolutions with skips, half precision and a gradient scaler."""
    down = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in ((3, 64), (64, 128), (128, 256)))
    up = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in ((256, 128), (128, 64), (64, 3)))
    model = nn.ModuleList([down, up]).cuda()
    TRUTH.model(model)
    optimizer = torch.optim.NAdam(model.parameters())
    TRUTH.optimizer(optimizer)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(STEPS):
        x = images = torch.randn(8, 3, 64, 64, device="cuda")
        with torch.autocast("cuda", dtype=torch.float16):
            for layer in (*down, *up):
                x = F.silu(layer(x))
            loss = F.mse_loss(x, images)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        time.sleep(0.001)
        TRUTH.steps_us.append(time.time_ns() // 1000)
    TRUTH.note(model.parameters(), "parameter")


class Lion(torch.optim.Optimizer):
    """An optimizer of the user's own."""

    def step(self, closure: Any = None) -> None:
        with torch.no_grad():
            self._step()

    def _step(self) -> None:
        for group in self.param_groups:
            for one in group["params"]:
                if one.grad is None:
                    continue
                state = self.state[one]
                if "average" not in state:
                    state["average"] = torch.zeros_like(one)
                update = state["average"].mul(0.9).add(one.grad, alpha=0.1).sign_()
                one.add_(update, alpha=-group["lr"])
                state["average"].lerp_(one.grad, 0.01)


def last_transformer_lion() -> None:
    model = nn.Transformer(256, 4, 2, 2, 1024, batch_first=True, device="cuda")

    def loss() -> torch.Tensor:
        source = torch.randn(8, 64, 256, device="cuda")
        return model(source, source.roll(1, 1)).square().mean()

    train(model, loss, lambda them: Lion(them, {"lr": 1e-4}))


def last_evaluation_between_steps() -> None:
    model = GPT(width=320).cuda()
    held = _tokens(16)

    def loss() -> torch.Tensor:
        with torch.no_grad():
            model.eval()(held)
        tokens = _tokens()
        return F.cross_entropy(model.train()(tokens).flatten(0, 1), tokens.flatten())

    train(model, loss, adamw(), accumulate=2)


PROGRAMS = [
    "gpt_adamw_foreach",
    "gpt_adamw_fused",
    "gpt_sgd",
    "gpt_autocast",
    "gpt_checkpointing",
    "gpt_accumulation",
    "gpt_inference",
    "bert_adamw",
    "llama_adafactor",
    "t5_adamw",
    "vit_sgd_momentum",
    "resnet_sgd_momentum",
    "convnext_adamw",
]
LAST = ["last_unet_scaler", "last_transformer_lion", "last_evaluation_between_steps"]
HELD_OUT = ["held_lora", "held_lstm_rmsprop", "held_functional", "held_bfloat16_model", "held_gan"]


def main(name: str, output: str) -> None:
    torch.cuda.memory._record_memory_history(max_entries=1_000_000, stacks="all")
    globals()[name]()
    snapshot = torch.cuda.memory._snapshot()
    truth = {"seen": TRUTH.seen, "model_us": TRUTH.model_us, "steps_us": TRUTH.steps_us}
    with open(output, "wb") as file:
        pickle.dump({"snapshot": snapshot, "truth": truth}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
