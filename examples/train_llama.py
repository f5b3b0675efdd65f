"""Trains a Llama of transformers on random tokens, without downloading anything.

Try `snapviewer predict examples/train_llama.py --gpu h100`. `--layers`, `--width`, `--batch` and
`--context` set its size.
"""

from __future__ import annotations

import argparse

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def main() -> None:
    """Train for some steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in {"layers": 16, "width": 2048, "context": 2048, "batch": 4}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    config = LlamaConfig(
        hidden_size=options.width,
        intermediate_size=4 * options.width,
        num_hidden_layers=options.layers,
        num_attention_heads=options.width // 64,
        max_position_embeddings=options.context,
    )
    model = LlamaForCausalLM(config).to("cuda", torch.bfloat16)
    model.gradient_checkpointing_enable()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(10):
        tokens = torch.randint(config.vocab_size, (options.batch, options.context), device="cuda")
        loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step + 1}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
