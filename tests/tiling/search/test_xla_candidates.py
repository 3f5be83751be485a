"""Dumps of XLA's cost model.

The texts are written from XLA's format, not taken from a run: ``DumpAndLogTopKCandidates`` of
``xla/service/gpu/model/gpu_indexing_performance_model.cc``, ``EstimateRunTimeData::ToString`` of
``gpu_performance_model_base.h``, the fields of ``xla/codegen/xtile/xtile_config.proto`` in
``ShortDebugString``, and ``absl::FormatDuration``.
"""

from __future__ import annotations

from math import inf

import pytest

from hlo import HloError
from indexing.tiling.search.xla_candidates import parse_candidates

ROOT = "multiply = f32[512,911]{1,0} multiply(multiply_0, broadcast_4)"


def candidate(number: int, config: str, exec_time: str = "5us", bytes_read: int = 3732) -> str:
    return (
        f"Candidate #{number}: block_config: {{{config}}}, EstimateRunTimeData{{\n"
        f" flops: 1865728\n bytes_read: {bytes_read}\n bytes_written: 1865728\n"
        f" read_time: 4.8588us\n write_time: 2.429us\n compute_time: 15.5ns\n"
        f" exec_time: {exec_time}\n}}\n"
    )


TWO = (
    f"=== Cost model top-2 candidates for: {ROOT} ===\n"
    + candidate(
        0, "output_tiles { sizes: 1 sizes: 911 } num_warps: 2 num_ctas: 1 num_stages: 1", "5.1us"
    )
    + candidate(1, "output_tiles { sizes: 2 sizes: 911 } num_warps: 4 is_tma_allowed: true", "6us")
    + "\n"
)


def test_a_dump_has_all_fields() -> None:
    (dump,) = parse_candidates(TWO)
    first, second = dump.candidates
    assert (dump.root, dump.root_name) == (ROOT, "multiply")
    assert first.output_tiles == ((1, 911),)
    assert first.config == (("num_warps", "2"), ("num_ctas", "1"), ("num_stages", "1"))
    assert second.config == (("num_warps", "4"), ("is_tma_allowed", "true"))
    assert (first.flops, first.bytes_read, first.bytes_written) == (1865728, 3732, 1865728)
    assert [first.read_time, first.write_time] == pytest.approx([4.8588e-6, 2.429e-6])
    assert [first.compute_time, second.exec_time] == pytest.approx([15.5e-9, 6e-6])


def test_fusions_follow_one_another() -> None:
    empty = "=== Cost model top-0 candidates for: ROOT %a.1 = f32[] add(p, q) ===\n\n"
    scalar = "=== Cost model top-1 candidates for: s = f32[] negate(p) ===\n"
    dumps = parse_candidates(TWO + empty + scalar + candidate(0, "output_tiles { }"))
    assert [(d.root_name, len(d.candidates)) for d in dumps] == [
        *(("multiply", 2), ("a.1", 0), ("s", 1))
    ]
    assert dumps[2].candidates[0].output_tiles == ((),)


def test_a_log_repeats_the_root_in_brackets() -> None:
    place = "I0000 00:00:1700000000.123456  4711 gpu_indexing_performance_model.cc:640] "
    lines = [f"{place}[{ROOT}] {candidate(k, 'output_tiles { sizes: 8 }')}" for k in range(2)]
    noise = f"{place}Accepted tile sizes [8], exec_time 5us\nCandidates #1: none\n"
    noise += "a pass reports [x] of Candidate #7: nothing\n"
    again = f"[{ROOT}] {candidate(0, 'output_tiles { sizes: 4 }')}"
    dumps = parse_candidates(noise + lines[0] + noise + lines[1] + again)
    assert [d.root for d in dumps] == [ROOT, ROOT]
    assert [[c.output_tiles[0] for c in d.candidates] for d in dumps] == [[(8,), (8,)], [(4,)]]


@pytest.mark.parametrize(
    "config",
    [
        "output_tiles { sizes: 16 sizes: 8 } output_tiles { sizes: 4 }",
        "output_tiles { sizes: [16, 8] }  output_tiles { sizes: [4] }",
        "goo.gle/debugonly  output_tiles { sizes: 16 sizes: 8 }   output_tiles { sizes: 4 } ",
        "output_tiles: { sizes: 16, sizes: 8 }; output_tiles: { sizes: 4 }",
    ],
)
def test_spellings_of_the_text_format(config: str) -> None:
    text = f"=== Cost model top-1 candidates for: {ROOT} ===\n" + candidate(0, config)
    assert parse_candidates(text)[0].candidates[0].output_tiles == ((16, 8), (4,))


@pytest.mark.parametrize(
    "text, seconds",
    [
        *[("0", 0.0), ("inf", inf), ("-inf", -inf), ("1.5ns", 1.5e-9), ("-2.25us", -2.25e-6)],
        *[("11.66us", 1.166e-5), ("999.99ms", 0.99999), ("1s", 1.0), ("1m2.5s", 62.5)],
        ("72h3m0.5s", 72 * 3600 + 180.5),
    ],
)
def test_durations_of_abseil(text: str, seconds: float) -> None:
    dump = f"=== Cost model top-1 candidates for: {ROOT} ===\n" + candidate(0, "", text)
    assert parse_candidates(dump)[0].candidates[0].exec_time == pytest.approx(seconds)


# fmt: off
ERRORS = [
    # change of the dump                      message, and the text that it marks
    (("exec_time: 6us", "exec_time: 6 us"),   "expected a field or `}`, found `us`",     "us"),
    (("exec_time: 6us", "exec_time: 6ly"),    "`exec_time`: expected a duration",        "6ly"),
    (("exec_time: 6us", "exec_time: 1s2"),    "`exec_time`: expected a duration",        "1s2"),
    (("sizes: 911", "sizes: many"),           "`sizes`: expected an integer",            "many"),
    (("sizes: 911", "sizes"),                 "expected a field or `}`, found `sizes`",  "sizes"),
    ((" flops: 1865728\n", ""),               "no `flops` in the estimate",              "{"),
    (("block_config: {", "config: {"),        "expected `block_config:`, found `config`", "config"),
    (("EstimateRunTimeData{", "Estimate{"),   "expected `EstimateRunTimeData`, found `Estimate`",
                                                                                         "Estimate"),
    (("Candidate #1", "Candidate #2"),        "expected candidate #1, found #2",         "#2"),
    (("top-2", "top-3"),                      "2 of 3 announced candidates",
     f"=== Cost model top-3 candidates for: {ROOT} ==="),
    (("5.1us\n}", "5.1us\n"),                 "expected a field or `}`, found `Candidate`",
                                                                                         "Candidate"),
    (("=== Cost", "== Cost"),                 "a candidate without the heading of its fusion",
     "Candidate #0: "),
    (("{ sizes: 1 ", "{ a " * 9 + "} " * 9), "messages nested deeper than 8",           "{"),
]
# fmt: on


@pytest.mark.parametrize("change, message, marked", ERRORS)
def test_errors_mark_their_place(change: tuple[str, str], message: str, marked: str) -> None:
    text = TWO.replace(*change)
    assert text != TWO
    with pytest.raises(HloError) as caught:
        parse_candidates(text, "dump.txt")
    assert message in caught.value.message
    assert caught.value.span.text == marked
    assert caught.value.span.place().startswith("dump.txt:")


def test_every_truncation_is_an_error_or_complete() -> None:
    whole = parse_candidates(TWO)
    last = TWO.rindex("}")
    for end in range(len(TWO)):
        if end <= last:
            with pytest.raises(HloError):
                parse_candidates(TWO[:end])
        else:
            assert parse_candidates(TWO[:end]) == whole
