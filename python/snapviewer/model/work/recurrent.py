"""Recurrent layers and cells.

Each time step of each sequence is multiplied by each weight matrix once, so the multiply-adds are
the steps times the elements of all matrices, which includes layers, directions and projections.
The gates cost, per hidden unit and step: LSTM 13 (four sums, three sigmoids, two tanh, three
products, a sum), GRU 10, plain 2.
"""

from __future__ import annotations

from snapviewer.model.graph import TensorSpec
from snapviewer.model.work.registry import (
    Call,
    Formula,
    Uncounted,
    Work,
    per_element_of,
    register,
)
from snapviewer.model.work.sizes import NotKnownError, elements_of, whole_shape

LSTM_GATES, GRU_GATES, PLAIN_GATES = 4, 3, 1
_GATE_FLOPS = {LSTM_GATES: 13, GRU_GATES: 10, PLAIN_GATES: 2}
_PACKED = "data batch_sizes hx params"


def _layer(call: Call, steps_of: str, weights: list[TensorSpec], gates: int) -> Work | Uncounted:
    shape = call.shape(steps_of)
    steps = elements_of(call.tensor(steps_of)) // max(shape[-1], 1)
    matrices = [whole_shape(spec) for spec in weights if len(spec.shape) == 2]
    if not matrices:
        return Uncounted("its weights are packed, and their shapes are not in the graph")
    macs = steps * sum(rows * columns for rows, columns in matrices)
    # Two matrices of a layer have a row per gate and hidden unit; a third one, for projections, has
    # a column per hidden unit.
    has_projections = len(matrices) % 3 == 0 and all(
        matrices[index][0] == gates * matrices[index + 2][1] for index in range(0, len(matrices), 3)
    )
    firsts = matrices[:: 3 if has_projections else 2]
    units = sum(rows // gates for rows, _ in firsts)
    return call.work(macs=macs, other_flops=steps * units * _GATE_FLOPS[gates])


def _sequence(gates: int) -> Formula:
    def formula(call: Call) -> Work | Uncounted:
        # The overload for packed sequences has `batch_sizes` before the state and the weights.
        packed = call.with_parameters(_PACKED)
        if isinstance(packed.value("params"), tuple) and packed.is_given("data"):
            return _layer(packed, "data", packed.tensors("params"), gates)
        return _layer(call, "input", call.tensors("params"), gates)

    return formula


def _cell(gates: int) -> Formula:
    def formula(call: Call) -> Work | Uncounted:
        weights = [*call.tensors("w_ih"), *call.tensors("w_hh")]
        return _layer(call, "input", weights, gates)

    return formula


for _gates, _layers, _cells in (
    (LSTM_GATES, "lstm quantized_lstm _lstm_mps", "lstm_cell"),
    (GRU_GATES, "gru quantized_gru", "gru_cell"),
    (PLAIN_GATES, "rnn_tanh rnn_relu", "rnn_tanh_cell rnn_relu_cell"),
):
    register(_layers, "input hx params", kind="Recurrent")(_sequence(_gates))
    for _name in _cells.split():
        register(
            f"{_name} quantized_{_name} quantized::quantized_{_name}_dynamic",
            "input hx w_ih w_hh",
            kind="Recurrent",
        )(_cell(_gates))


@register("mkldnn_rnn_layer", "input weight0 weight1 weight2 weight3", kind="Recurrent")
def _mkldnn_layer(call: Call) -> Work | Uncounted:
    weights = [call.tensor("weight0"), call.tensor("weight1")]
    return _layer(call, "input", weights, LSTM_GATES)


_MODES = {0: PLAIN_GATES, 1: PLAIN_GATES, 2: LSTM_GATES, 3: GRU_GATES}


def _by_mode(call: Call) -> Work | Uncounted:
    gates = _MODES.get(call.integer("mode"))
    if gates is None:
        raise NotKnownError("its mode is unknown")
    return _layer(call, "input", call.tensors("weight"), gates)


for _op, _parameters, _formula in (
    ("_cudnn_rnn", "input weight weight_stride0 weight_buf hx cx mode", _by_mode),
    ("miopen_rnn", "input weight weight_stride0 hx cx mode", _by_mode),
    (
        "_thnn_fused_lstm_cell",
        "input_gates hidden_gates cx",
        per_element_of("cx", _GATE_FLOPS[LSTM_GATES]),
    ),
    (
        "_thnn_fused_gru_cell",
        "input_gates hidden_gates hx",
        per_element_of("hx", _GATE_FLOPS[GRU_GATES]),
    ),
):
    register(_op, _parameters, kind="Recurrent")(_formula)
