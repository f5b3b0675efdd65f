"""The parts of a model that a log names, and how their memory could be saved."""

from __future__ import annotations

from typing import Literal, TypeAlias

Use: TypeAlias = Literal["encoder", "core", "decoder"]

# What the logs of video models name always; if one is missing, the report says so.
EXPECTED = ("t5", "vae", "dit")

# What stands for all that a report has no room for.
OTHER_COMPONENTS, OTHERS = "other_components", "others"

_ENCODERS = ("t5", "clip", "text", "encoder", "tokenizer", "embedder")
_DECODERS = ("vae", "decoder", "vocoder", "upsampler")


def is_component(name: str) -> bool:
    """Tell whether a name is that of a part of a model rather than of a whole one.

    >>> is_component("t5"), is_component("wan2_1_t2v")
    (True, False)
    """
    return name in (*EXPECTED, "clip", "unet", "transformer") or name.endswith("coder")


def use_of(component: str) -> Use:
    """Tell when a component works: before the steps, in them, or after them.

    >>> [use_of(name) for name in ("t5", "dit", "vae", "image_encoder")]
    ['encoder', 'core', 'decoder', 'encoder']
    """
    if any(word in component for word in _DECODERS):
        return "decoder"
    if any(word in component for word in _ENCODERS):
        return "encoder"
    return "core"
