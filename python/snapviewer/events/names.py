"""What the name of an event says: a component, a phase, a step, the beginning or end of a stage.

Names are compared in lower case with `_` between words: `Model Loaded` is `model_loaded`. What no
rule knows is kept as it is, and listed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal[
    "component", "kv-cache", "phase", "stage-start", "stage-end", "step", "failure", "other"
]

# In the order in which a run passes through them.
PHASES = (
    "init",
    "model_loaded",
    "forward_pass",
    "before_generate",
    "after_decode",
    "inference_end",
    "total_generation",
)
# From here on a run generates: peaks of these and of what follows them are the generation's.
GENERATION_BEGINS = ("before_generate", "generate_start")

_SEPARATORS = re.compile(r"[\s\-.]+")
_STEP = re.compile(r"step_?(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Role:
    """What an event is about: the component, phase or stage, or the number of a step."""

    kind: Kind
    subject: str

    @property
    def number(self) -> int:
        """The number of a step."""
        return int(self.subject)


def normal(name: str) -> str:
    """Return a name in the form in which names are compared.

    >>> normal("Model Loaded"), normal("t5-encode  start")
    ('model_loaded', 't5_encode_start')
    """
    word = name.strip().lower()
    # Most names are words already, and looking for what separates them would take most of the time.
    return word if word.isidentifier() else _SEPARATORS.sub("_", word)


def role_of(name: str, model_name: str | None = None) -> Role:
    """Tell what an event is about.

    Args:
        name: What the log calls it.
        model_name: The model that the log names with it, if any: who was loaded, if the event
            itself does not say.

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
