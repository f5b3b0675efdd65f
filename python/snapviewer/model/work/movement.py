"""Operations that move or describe tensors: views, copies, new tensors, queries, embeddings.

Views move no bytes. `reshape`, `flatten` and `contiguous` count as views, because whether they
copy depends on strides that a graph does not have. Copies read what they write, and embeddings
read the rows that they write, not the whole table.
"""

from __future__ import annotations

from snapviewer.model.work.registry import Call, Work, in_namespace, register, without_traffic
from snapviewer.model.work.sizes import bits_of, bytes_of, tensors_in

VIEWS = """
    adjoint alias as_strided atleast_1d atleast_2d atleast_3d broadcast_tensors broadcast_to
    chunk conj _conj contiguous data detach diagonal dsplit expand expand_as flatten hsplit imag
    lift lift_fresh lift_fresh_copy linalg_diagonal mH mT matrix_H meshgrid movedim moveaxis
    narrow _neg_view
    numpy_T permute positive ravel real reshape reshape_as _reshape_alias resolve_conj resolve_neg
    select slice split split_with_sizes squeeze swapaxes swapdims t tensor_split transpose unbind
    unflatten unfold unsafe_chunk unsafe_split unsafe_split_with_sizes _unsafe_view unsqueeze view
    view_as view_as_complex view_as_real vsplit values indices _values _indices set_
    requires_grad_ retain_grad _mkldnn_reshape _mkldnn_transpose
    expand_copy view_copy permute_copy transpose_copy slice_copy select_copy unsqueeze_copy
    squeeze_copy split_copy split_with_sizes_copy unbind_copy detach_copy alias_copy t_copy
    as_strided_copy diagonal_copy unfold_copy
"""

COPIES = """
    argwhere as_strided_scatter block_diag cat cartesian_prod channel_shuffle clone col2im
    column_stack combinations concat concatenate constant_pad_nd copy _copy_from cpu cuda diag
    diag_embed diagflat diagonal_scatter dstack fill flip fliplr flipud
    gather hstack im2col index index_copy index_fill index_put _index_put_impl _unsafe_index
    _unsafe_index_put _unsafe_masked_index index_select int_repr masked_scatter masked_select
    max_unpool2d max_unpool3d native_channel_shuffle nonzero nonzero_numpy nonzero_static pad
    pad_sequence pin_memory pixel_shuffle pixel_unshuffle put reflection_pad1d reflection_pad2d
    reflection_pad3d repeat repeat_interleave replication_pad1d replication_pad2d
    replication_pad3d roll rot90 row_stack scatter select_scatter slice_scatter stack _stack take
    take_along_dim tile to to_dense _to_dense to_mkldnn to_padded_tensor to_sparse _to_sparse
    to_sparse_csr _to_copy _to_cpu type_as upsample_nearest1d upsample_nearest2d
    upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d
    _upsample_nearest_exact3d vstack _pack_padded_sequence _pad_packed_sequence _pad_circular
    _pad_enum _cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long
    _cast_Short _autocast_to_full_precision _autocast_to_reduced_precision coalesce
    mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight _lazy_clone resize resize_as
    _nested_tensor_from_mask _nested_from_padded _nested_tensor_from_tensor_list chalf
    _jagged_to_padded_dense_forward _padded_dense_to_jagged_forward _assert_async
    _convert_weight_to_int4pack _convert_weight_to_int4pack_for_cpu
"""

CREATIONS = """
    arange bartlett_window bernoulli binomial blackman_window cauchy empty empty_like
    empty_permuted empty_strided exponential eye fft_fftfreq fft_rfftfreq from_file full full_like
    geometric hamming_window hann_window kaiser_window linspace log_normal logspace multinomial
    new_empty new_empty_strided new_full new_ones new_zeros normal normal_functional ones
    ones_like poisson rand rand_like randint randint_like randn randn_like random randperm range
    scalar_tensor tensor as_tensor tril_indices triu_indices uniform vander zero zeros zeros_like
    _efficientzerotensor _cudnn_init_dropout_state _shape_as_tensor _dim_arange
    _sample_dirichlet _standard_gamma
"""

QUERIES = """
    Bool Complex ComplexImplicit Float FloatImplicit Int IntImplicit ScalarImplicit
    __contains__ __getitem__ _assert_scalar _assert_tensor_metadata _functional_assert_async
    _functional_assert_scalar _fused_sdp_choice _local_scalar_dense _nested_tensor_size
    _nested_tensor_storage_offsets _nested_tensor_strides _set_item _tensor_to_list _unwrap_optional
    _list_to_tensor _is_all_true _is_any_true _linalg_check_errors _use_cudnn_rnn_flatten_weight
    _version append clear cudnn_is_acceptable device dense_dim dict dim element_size extend
    format get get_device grad has_torch_function insert is_coalesced is_complex is_conj
    is_contiguous is_floating_point is_grad_enabled is_inference is_leaf is_neg is_nonzero is_pinned
    is_same_size is_set_to is_signed item items keys len list numel pop q_per_channel_axis
    q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme record_stream
    remove result_type promote_types setdefault size sparse_dim storage_offset str stride
    sym_constrain_range sym_constrain_range_for_size sym_is_contiguous sym_numel sym_size
    sym_storage_offset sym_stride update wait warn equal output_nr _unpack_dual
    _has_compatible_shallow_copy_type _nnz
"""

_PRIM_QUERIES = """
    BroadcastMKLDNNTensors CallFunction CallMethod Constant ConstantChunk ConstantMKLDNNTensor
    CreateObject DictConstruct GetAttr If Uninitialized ListConstruct ListUnpack Loop NumToTensor
    Print RaiseException SetAttr TupleConstruct TupleIndex TupleSlice TupleUnpack data device
    dtype fork is_cpu is_cuda is_meta is_mkldnn is_mps is_quantized is_sparse is_xpu is_vulkan
    isinstance itemsize layout max min name requires_grad rangelist shape tolist type
    unchecked_cast unchecked_unwrap_optional AutogradZero AutogradAnyNonZero
"""


register(VIEWS, kind="Reshape")(without_traffic)
register(
    f"{QUERIES} {in_namespace('prim', _PRIM_QUERIES)} "
    f"{in_namespace('prims', 'device_put view_of broadcast_in_dim')} "
    "profiler::_record_function_enter_new profiler::_record_function_exit",
    kind="Bookkeeping",
)(without_traffic)


@register(f"{COPIES} quantized::cat quantized::cat_relu", kind="Copy")
def _copy(call: Call) -> Work:
    written = sum(bytes_of(spec) for spec in tensors_in(call.node.outputs))
    return call.work(read_bytes=written, written_bytes=written)


@register(CREATIONS, kind="Creation")
def _create(call: Call) -> Work:
    return call.work(read_bytes=0)


@register("embedding", "weight indices", kind="Embedding")
def _embedding(call: Call) -> Work:
    return call.work(read_bytes=bytes_of(call.output()) + bytes_of(call.tensor("indices")))


@register(
    "embedding_bag _embedding_bag _embedding_bag_forward_only",
    "weight indices offsets scale_grad_by_freq mode sparse per_sample_weights",
    kind="Embedding",
)
def _embedding_bag(call: Call) -> Work:
    weight = call.tensor("weight")
    rows, width = call.elements("indices"), call.shape("weight")[-1]
    read = rows * width * (bits_of(weight.dtype) or 32) // 8 + bytes_of(call.tensor("indices"))
    # An addition for each element read, and a product if the samples have weights.
    per_element = 1 + call.is_given("per_sample_weights")
    return call.work(other_flops=per_element * rows * width, read_bytes=read)


@register("one_hot", "self", kind="Embedding")
def _one_hot(call: Call) -> Work:
    return call.work()


@register("embedding_renorm", "self indices", kind="Embedding")
def _embedding_renorm(call: Call) -> Work:
    return call.work(other_flops=3 * call.elements("indices") * call.shape("self")[-1])
