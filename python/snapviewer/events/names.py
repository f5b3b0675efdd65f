"""The roles of events by their names: component, phase, step, beginning or end of a stage.

Names are compared in lower case with `_` between words: `Model Loaded` is `model_loaded`. Events
that no rule knows have the role `other`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal[
    "component", "kv-cache", "phase", "stage-start", "stage-end", "step", "failure", "other"
]

Use: TypeAlias = Literal["encoder", "core", "decoder"]

# In the order of a run.
PHASES = (
    "init",
    "model_loaded",
    "forward_pass",
    "before_generate",
    "after_decode",
    "inference_end",
    "total_generation",
)
# Peaks from these events on belong to the generation.
GENERATION_BEGINS = ("before_generate", "generate_start")

# Components that logs of video models always have; a missing one is reported.
EXPECTED = ("t5", "vae", "dit")
# The names of what is summed up because a report has no room for it.
OTHER_COMPONENTS, OTHERS = "other_components", "others"

_ENCODERS = ("t5", "clip", "text", "encoder", "tokenizer", "embedder")
_DECODERS = ("vae", "decoder", "vocoder", "upsampler")

_SEPARATORS = re.compile(r"[\s\-.]+")
_STEP = re.compile(r"step_?(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Role:
    """What an event is about; `subject` is the component, phase, stage or number of the step."""

    kind: Kind
    subject: str

    @property
    def number(self) -> int:
        """The number of a step."""
        return int(self.subject)


def normal(name: str) -> str:
    """Return a name in the form that is compared.

    >>> normal("Model Loaded"), normal("t5-encode  start")
    ('model_loaded', 't5_encode_start')
    """
    word = name.strip().lower()
    # Most names have no separators, and looking for them would take most of the time.
    return word if word.isidentifier() else _SEPARATORS.sub("_", word)


def role_of(name: str, model_name: str | None = None) -> Role:
    """Return what an event is about.

    Args:
        name: Of the event.
        model_name: Of the model that the event names, if any: what was loaded, if the event's name
            does not say.

    >>> [role_of(name).kind for name in ("t5_loaded", "step_12", "vae_decode_end", "checkpoint")]
    ['component', 'step', 'stage-end', 'other']
    """
    word = normal(name)
    if found := _STEP.fullmatch(word):
        return Role("step", str(int(found[1])))
    if word in ("error", "oom", "out_of_memory"):
        return Role("failure", word)
    if word in PHASES:
        return Role("phase", word)
    if word in ("load", "loaded") and model_name:
        return Role("component", normal(model_name))
    if word == "kv_cache" or word.endswith("_kv_cache"):
        owner = word.removesuffix("kv_cache").rstrip("_")
        return Role("kv-cache", owner or normal(model_name or ""))
    for ending, kind in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending):
            return Role(kind, word.removesuffix(ending))
    return Role("other", word)


_ENDINGS: tuple[tuple[str, Kind], ...] = (
    ("_loaded", "component"),
    ("_start", "stage-start"),
    ("_end", "stage-end"),
)


def is_component(name: str) -> bool:
    """Return whether a name is that of a part of a model rather than of a whole one.

    >>> is_component("t5"), is_component("wan2_1_t2v")
    (True, False)
    """
    return name in (*EXPECTED, "clip", "unet", "transformer") or name.endswith("coder")


def use_of(component: str) -> Use:
    """Return when a component works: before the steps, in them, or after them.

    >>> [use_of(name) for name in ("t5", "dit", "vae", "image_encoder")]
    ['encoder', 'core', 'decoder', 'encoder']
    """
    if any(word in component for word in _DECODERS):
        return "decoder"
    if any(word in component for word in _ENCODERS):
        return "encoder"
    return "core"
