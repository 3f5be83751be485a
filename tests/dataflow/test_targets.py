"""The benchmark of precision counts what is refused, wrong, unknown and over-approximated."""

from __future__ import annotations

from benchmarks.targets import EDGES, PARAMETERS, Precision

PADDED = """
ENTRY e {
  p = f32[5] parameter(0)
  v = f32[] parameter(1)
  k = f32[1,3,1] parameter(2)
  w = f32[7] pad(p, v), padding=1_1
  x = f32[1,7,1] reshape(w)
  ROOT c = f32[1,7,1] convolution(x, k), window={size=3 pad=1_1 rhs_reversal=1},
    dim_labels=b0f_i0o->b0f
}"""


def test_each_answer_is_counted_once() -> None:
    precision = Precision()
    for text in ("ENTRY e {", "ENTRY e { ROOT p = f32[2] negate(q) }", PADDED):
        precision.add(text)
    edges = f"{EDGES}: may"
    assert precision.counts == {
        "texts refused": 2,
        "errors of check": 0,
        "unknown": 0,
        EDGES: 5,
        edges: 1,
        f"{edges} to scalars": 1,
        PARAMETERS: 3,
        f"{PARAMETERS}: may": 2,
    }
    (of_edge,) = [cause for question, cause in precision.causes if question == EDGES]
    assert of_edge.startswith("convolution: elements of the kernel over padding")
    assert f"{1:6}     {of_edge}" in list(precision.lines())


def test_faults_are_counted() -> None:
    precision = Precision()
    precision.add("ENTRY e {\n p = f32[2] parameter(0)\n ROOT n = f32[3] negate(p)\n}")
    assert precision.counts == {"errors of check": 1}
