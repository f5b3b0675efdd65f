"""Recurrent layers and cells."""

from __future__ import annotations

from collections.abc import Sequence

from snapviewer.model.graph import TensorSpec
from snapviewer.model.shapes.dimensions import ShapeError, multiply, tensors_in, whole
from snapviewer.model.shapes.registry import Output, shape_function


def _layer(input: TensorSpec, rest: Sequence[object], *, is_packed: bool) -> Output:  # noqa: A002
    """Return the outputs of a layer.

    Args:
        input: The sequence.
        rest: hx, params, has_biases, num_layers, dropout, train, bidirectional, …; for packed
            batches, with their sizes before them.
        is_packed: Whether batches are packed.
    """
    state, *_, both_ways = (*rest, *([None] * 8))[is_packed : is_packed + 7]
    states = [state] if isinstance(state, TensorSpec) else tensors_in(state)
    if not states or not states[0].shape:
        raise ShapeError("the hidden state is unknown")
    width = multiply((states[0].shape[-1], 2 if both_ways is True else 1))
    return (TensorSpec((*input.shape[:-1], width), input.dtype), *states)


@shape_function("lstm quantized_lstm")
def _lstm(input: TensorSpec, *rest: object, **named: object) -> Output:  # noqa: A002
    found = _layer(input, rest, is_packed=bool(rest) and isinstance(rest[0], TensorSpec))
    if not isinstance(found, tuple) or len(found) != 3:
        raise ShapeError("the hidden state is unknown")
    return found


@shape_function("gru rnn_tanh rnn_relu")
def _gru(input: TensorSpec, second: TensorSpec, *rest: object) -> Output:  # noqa: A002
    is_packed = bool(rest) and isinstance(rest[0], TensorSpec)
    return _layer(input, (second, *rest), is_packed=is_packed)


@shape_function("lstm_cell")
def _lstm_cell(input: TensorSpec, hx: object, *rest: object) -> Output:  # noqa: A002
    states = tensors_in(hx)
    if len(states) != 2:
        raise ShapeError("a cell has two states")
    return tuple(states)


@shape_function("gru_cell rnn_tanh_cell rnn_relu_cell")
def _cell(input: TensorSpec, hx: TensorSpec, *rest: object) -> Output:  # noqa: A002
    return hx


@shape_function("_pack_padded_sequence")
def _pack(input: TensorSpec, lengths: TensorSpec, batch_first: object) -> Output:  # noqa: A002
    return (TensorSpec((None, *input.shape[2:]), input.dtype), TensorSpec((None,), "int64"))


@shape_function("_pad_packed_sequence")
def _unpack(data: TensorSpec, batch_sizes: TensorSpec, *rest: object) -> Output:
    padded = TensorSpec((None, None, *data.shape[1:]), data.dtype)
    return (padded, TensorSpec((None,), "int64"))


@shape_function("mkldnn_rnn_layer")
def _mkldnn_rnn(input: TensorSpec, *weights: object) -> Output:  # noqa: A002
    hidden = weights[4] if len(weights) > 4 else None
    if not isinstance(hidden, TensorSpec) or not hidden.shape:
        raise ShapeError("the hidden state is unknown")
    out = TensorSpec((*input.shape[:-1], whole(hidden.shape[-1])), input.dtype)
    return (out, hidden, hidden, TensorSpec((None,), "uint8"))
