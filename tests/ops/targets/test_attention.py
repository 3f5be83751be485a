"""Attention by cuDNN reads what its definition reads, poked in NumPy."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import numpy as np
import pytest

import hlo
import indexing
from indexing.maps.answers import Answer
from tests.ops.samples import Array, parse_sample, related_pairs


def call(
    operands: str = "bf16[2,5,3,4] q, bf16[2,5,3,4] k, bf16[2,5,3,6] v",
    mask: str = "CAUSAL",
    result: str = "bf16[2,3,5,6]{3,1,2,0}, u8[8]",
    target: str = "__cudnn$fmhaSoftmax",
    more: str = '"is_paged_attention":false,"max_seg_per_batch":1',
) -> str:
    """A call as XLA prints it, on arrays of [batch, row, head, feature]."""
    return (
        f'({result}) custom-call({operands}), custom_call_target="{target}", backend_config={{"operation_queue_id":"0",'
        f'"cudnn_fmha_backend_config":{{"fmha_scale":0.125,"mask_type":"{mask}","is_flash_attention":true,{more},'
        '"bmm1_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["3"],"lhs_batch_dimensions":["0","2"],"rhs_batch_dimensions":["0","2"]},'
        '"bmm2_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0","1"],"rhs_batch_dimensions":["0","2"]}}}'
    )


def attention(inputs: list[Array], is_causal: bool) -> Array:
    q, k, v = inputs
    scores = np.einsum("bshc,bthc->bhst", q, k)
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    result: Array = np.einsum("bhst,bthd->bhsd", weights / weights.sum(-1, keepdims=True), v)
    return result


def answer_of(text: str, output: int = 0) -> Answer:
    instruction = parse_sample(text).instruction
    assert hlo.verify(instruction.module) == []
    return indexing.output_to_input(instruction, output)


@pytest.mark.parametrize("mask", ["CAUSAL", "NO_MASK"])
def test_attention_reads_the_rows_that_its_definition_reads(mask: str) -> None:
    random = np.random.default_rng(0)
    inputs = [random.normal(size=(2, 5, 3, n)) for n in (4, 4, 6)]
    before = attention(inputs, is_causal=mask == "CAUSAL")
    maps = answer_of(call(mask=mask)).maps
    assert [[m.grade for m in each] for each in maps] == [["may"]] * 3
    for operand, (read,) in enumerate(maps):
        pairs = related_pairs(read, [])
        seen = set()
        for place in np.ndindex(inputs[operand].shape):
            changed = [each.copy() for each in inputs]
            changed[operand][place] += 1
            after = attention(changed, is_causal=mask == "CAUSAL")
            seen |= {(tuple(map(int, i)), place) for i in np.argwhere(before != after)}
        assert seen <= pairs
        row_0 = {pair for pair in pairs if pair[0][2] == 0 and operand < 2}  # its softmax may be 1
        assert pairs - row_0 <= seen


def test_other_operands_and_results_may_read_everything() -> None:
    text = call(
        "bf16[2,5,3,4] q, bf16[2,5,3,4] k, bf16[2,5,3,6] v, bf16[2,3,5,5] bias",
        result="bf16[2,3,5,6]{3,1,2,0}, f32[2,3,5], u8[8]",
        target="__cudnn$fmhaScaleBiasSoftmaxDropout",
    )
    (bias,) = answer_of(text).maps[3]
    assert (bias.grade, len(bias.ranges)) == ("may", 4)
    assert all(len(m.ranges) == 4 for maps in answer_of(text, 1).maps for m in maps)


# fmt: off
UNKNOWN = [
    call(more='"is_paged_attention":true'),
    call(more='"max_seg_per_batch":2'),
    call("bf16[2,5,6,4] q, bf16[2,5,3,4] k, bf16[2,5,3,6] v", result="bf16[2,6,5,6], u8[8]"),  # heads that share keys
    call("bf16[2,5,3,4] q, bf16[2,5,3,4] k"),
    call(result="bf16[2,5,3,6], u8[8]"),
]
# fmt: on


@pytest.mark.parametrize("text", UNKNOWN)
def test_attention_that_is_not_understood_may_read_everything(text: str) -> None:
    answer = answer_of(text)
    assert all(len(m.ranges) == 4 and m.grade == "may" for maps in answer.maps for m in maps)
    reasons = {each.text for rows in answer.reasons for row in rows for each in row}
    assert reasons == {"which elements a call of __cudnn$fmhaSoftmax reads here is not known"}
