"""Recurrent layers and cells."""

from __future__ import annotations

from snapviewer.model.graph import TensorSpec
from snapviewer.model.shapes.dimensions import ShapeError, Size, multiply, tensors_in, whole
from snapviewer.model.shapes.registry import Output, shape_function


def _sequence(spec: TensorSpec, width: Size, directions: int, dtype: str = "") -> TensorSpec:
    return TensorSpec((*spec.shape[:-1], multiply((width, directions))), dtype or spec.dtype)


@shape_function("lstm")
def _lstm(
    input: TensorSpec,  # noqa: A002
    second: object,
    third: object,
    fourth: object,
    fifth: object,
    num_layers: object = None,
    dropout: object = None,
    train: object = None,
    bidirectional: object = False,
    batch_first: object = False,
) -> Output:
    # lstm(input, hx, params, has_biases, num_layers, …), or with the sizes of packed batches
    # lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional).
    is_packed = isinstance(second, TensorSpec)
    states = tensors_in(third if is_packed else second)
    if len(states) != 2 or len(states[0].shape) < 2:
        raise ShapeError("the hidden state is not known")
    hidden, cell = states
    both_ways = bidirectional if is_packed else train
    return (_sequence(input, hidden.shape[-1], 2 if both_ways is True else 1), hidden, cell)


@shape_function("gru", "rnn_tanh", "rnn_relu")
def _gru(
    input: TensorSpec,  # noqa: A002
    second: TensorSpec,
    third: object,
    fourth: object,
    fifth: object,
    num_layers: object = None,
    dropout: object = None,
    train: object = None,
    bidirectional: object = False,
) -> Output:
    is_packed = isinstance(third, TensorSpec)
    hidden = third if isinstance(third, TensorSpec) else second
    if not hidden.shape:
        raise ShapeError("the hidden state is not known")
    both_ways = bidirectional if is_packed else train
    return (_sequence(input, hidden.shape[-1], 2 if both_ways is True else 1), hidden)


@shape_function("quantized_lstm")
def _quantized_lstm(
    input: TensorSpec,  # noqa: A002
    hx: object,
    params: object,
    has_biases: object,
    num_layers: object,
    dropout: object,
    train: object,
    bidirectional: object,
    *rest: object,
    **named: object,
) -> Output:
    return _lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional)


@shape_function("lstm_cell")
def _lstm_cell(input: TensorSpec, hx: object, *rest: object) -> Output:  # noqa: A002
    states = tensors_in(hx)
    if len(states) != 2:
        raise ShapeError("a cell has two states")
    return tuple(states)


@shape_function("gru_cell", "rnn_tanh_cell", "rnn_relu_cell")
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
        raise ShapeError("the hidden state is not known")
    out = TensorSpec((*input.shape[:-1], whole(hidden.shape[-1])), input.dtype)
    return (out, hidden, hidden, TensorSpec((None,), "uint8"))
