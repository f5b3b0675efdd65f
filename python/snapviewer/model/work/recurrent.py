"""Recurrent layers and cells.

Each weight matrix meets each time step of each sequence once, so the multiply-adds are the steps
times the elements of all the matrices: layers, directions and projections come by themselves.
The gates cost, per hidden unit and step: LSTM 13 (four sums, three sigmoids, two tanh, three
products, a sum), GRU 10, plain 2.
"""

from __future__ import annotations

from snapviewer.model.graph import TensorSpec
from snapviewer.model.work.registry import Call, Uncounted, Work, register
from snapviewer.model.work.sizes import NotKnownError, elements_of, whole_shape

LSTM_GATES, GRU_GATES, PLAIN_GATES = 4, 3, 1
_GATE_FLOPS = {LSTM_GATES: 13, GRU_GATES: 10, PLAIN_GATES: 2}
_PACKED = "data batch_sizes hx params"


def _layer(call: Call, steps_of: str, weights: list[TensorSpec], gates: int) -> Work | Uncounted:
    shape = call.shape(steps_of)
    steps = elements_of(call.tensor(steps_of)) // max(shape[-1], 1)
    matrices = [whole_shape(spec) for spec in weights if len(spec.shape) == 2]
    if not matrices:
        return Uncounted("its weights are packed, and their shapes not in the graph")
    macs = steps * sum(rows * columns for rows, columns in matrices)
    # Two matrices of a layer have a row per gate and hidden unit; a third one, of projections, has
    # the hidden units as its columns.
    has_projections = len(matrices) % 3 == 0 and all(
        matrices[index][0] == gates * matrices[index + 2][1] for index in range(0, len(matrices), 3)
    )
    firsts = matrices[:: 3 if has_projections else 2]
    units = sum(rows // gates for rows, _ in firsts)
    return call.work(macs=macs, other_flops=steps * units * _GATE_FLOPS[gates])


def _register_layer(op: str, gates: int) -> None:
    @register(op, "input hx params", kind="Recurrent")
    def _formula(call: Call) -> Work | Uncounted:
        # The overload for packed sequences has `batch_sizes` before the state and the weights.
        packed = call.with_parameters(_PACKED)
        if isinstance(packed.value("params"), tuple) and packed.is_given("data"):
            return _layer(packed, "data", packed.tensors("params"), gates)
        return _layer(call, "input", call.tensors("params"), gates)


for _op, _gates in (
    ("aten::lstm", LSTM_GATES),
    ("aten::gru", GRU_GATES),
    ("aten::rnn_tanh", PLAIN_GATES),
    ("aten::rnn_relu", PLAIN_GATES),
    ("aten::quantized_lstm", LSTM_GATES),
    ("aten::quantized_gru", GRU_GATES),
    ("aten::_lstm_mps", LSTM_GATES),
):
    _register_layer(_op, _gates)


def _register_cell(ops: tuple[str, ...], gates: int) -> None:
    @register(ops, "input hx w_ih w_hh", kind="Recurrent")
    def _formula(call: Call) -> Work | Uncounted:
        weights = [*call.tensors("w_ih"), *call.tensors("w_hh")]
        return _layer(call, "input", weights, gates)


_register_cell(
    ("aten::lstm_cell", "aten::quantized_lstm_cell", "quantized::quantized_lstm_cell_dynamic"),
    LSTM_GATES,
)
_register_cell(
    ("aten::gru_cell", "aten::quantized_gru_cell", "quantized::quantized_gru_cell_dynamic"),
    GRU_GATES,
)
_register_cell(
    (
        "aten::rnn_tanh_cell",
        "aten::rnn_relu_cell",
        "aten::quantized_rnn_tanh_cell",
        "aten::quantized_rnn_relu_cell",
        "quantized::quantized_rnn_tanh_cell_dynamic",
        "quantized::quantized_rnn_relu_cell_dynamic",
    ),
    PLAIN_GATES,
)


@register("aten::mkldnn_rnn_layer", "input weight0 weight1 weight2 weight3", kind="Recurrent")
def _mkldnn_layer(call: Call) -> Work | Uncounted:
    weights = [call.tensor("weight0"), call.tensor("weight1")]
    return _layer(call, "input", weights, LSTM_GATES)


_MODES = {0: PLAIN_GATES, 1: PLAIN_GATES, 2: LSTM_GATES, 3: GRU_GATES}


@register("aten::_cudnn_rnn", "input weight weight_stride0 weight_buf hx cx mode", kind="Recurrent")
def _cudnn_layer(call: Call) -> Work | Uncounted:
    return _by_mode(call)


@register("aten::miopen_rnn", "input weight weight_stride0 hx cx mode", kind="Recurrent")
def _miopen_layer(call: Call) -> Work | Uncounted:
    return _by_mode(call)


def _by_mode(call: Call) -> Work | Uncounted:
    gates = _MODES.get(call.integer("mode"))
    if gates is None:
        raise NotKnownError("its mode is not known")
    return _layer(call, "input", call.tensors("weight"), gates)


@register("aten::_thnn_fused_lstm_cell", "input_gates hidden_gates cx", kind="Recurrent")
def _fused_lstm_gates(call: Call) -> Work:
    return call.work(other_flops=_GATE_FLOPS[LSTM_GATES] * call.elements("cx"))


@register("aten::_thnn_fused_gru_cell", "input_gates hidden_gates hx", kind="Recurrent")
def _fused_gru_gates(call: Call) -> Work:
    return call.work(other_flops=_GATE_FLOPS[GRU_GATES] * call.elements("hx"))
