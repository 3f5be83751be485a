"""Chains of n instructions: each reads the one before."""

from __future__ import annotations

from tests.growth.programs import ADD, ZERO, chain, construct, module


@construct
def elementwise_ops(n: int) -> str:
    return module(chain(n, "f32[8] parameter(0)", lambda k, x: f"f32[8] negate({x})"))


@construct
def sums_with_themselves(n: int) -> str:
    return module(chain(n, "f32[8] parameter(0)", lambda k, x: f"f32[8] add({x}, {x})"))


@construct
def sums_of_parameters(n: int) -> str:
    return module(
        chain(
            n,
            "f32[3] parameter(0)",
            lambda k, x: f"p{k} = f32[3] parameter({k + 1}); f32[3] add({x}, p{k})",
        )
    )


@construct
def sums_of_slices(n: int) -> str:
    return module(
        chain(
            n,
            "f32[3] parameter(0)",
            lambda k, x: f"s{k} = f32[3] slice(p), slice={{[{k}:{k + 3}]}}; f32[3] add({x}, s{k})",
            f"p = f32[{n + 3}] parameter(1)",
        )
    )


@construct
def sums_of_constants(n: int) -> str:
    return module(
        chain(
            n,
            "f32[3] parameter(0)",
            lambda k, x: f"c{k} = f32[3] constant({{1, 2, {k}}}); f32[3] add({x}, c{k})",
        )
    )


@construct
def layers(n: int) -> str:
    once = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    return module(
        chain(
            n,
            "f32[4,6] parameter(0)",
            lambda k, x: (
                f"w{k} = f32[6,6] parameter({k + 1}); d{k} = f32[4,6] dot({x}, w{k}), {once}; "
                f"f32[4,6] add({x}, d{k})"
            ),
        )
    )


@construct
def transposes(n: int) -> str:
    shapes = ["f32[2,3,5]", "f32[5,2,3]", "f32[3,5,2]"]
    return module(
        chain(
            n,
            f"{shapes[0]} parameter(0)",
            lambda k, x: f"{shapes[(k + 1) % 3]} transpose({x}), dimensions={{2,0,1}}",
        )
    )


@construct
def reshapes(n: int) -> str:
    shapes = ["f32[6,35]", "f32[210]", "f32[10,21]", "f32[7,5,6]"]
    return module(
        chain(
            n,
            f"{shapes[0]} parameter(0)",
            lambda k, x: f"{shapes[(k + 1) % 4]} reshape({x})",
        )
    )


@construct
def reshapes_and_transposes(n: int) -> str:
    shapes = [("f32[6,35]", "f32[35,6]"), ("f32[10,21]", "f32[21,10]")]
    return module(
        chain(
            n,
            "f32[210] parameter(0)",
            lambda k, x: (
                f"r{k} = {shapes[k % 2][0]} reshape({x}); "
                f"{shapes[k % 2][1]} transpose(r{k}), dimensions={{1,0}}"
            ),
        )
    )


@construct
def reshapes_and_reverses(n: int) -> str:
    shapes = ["f32[6,35]", "f32[10,21]", "f32[14,15]"]
    return module(
        chain(
            n,
            "f32[210] parameter(0)",
            lambda k, x: (
                f"r{k} = {shapes[k % 3]} reshape({x}); "
                f"{shapes[k % 3]} reverse(r{k}), dimensions={{{k % 2}}}"
            ),
        )
    )


@construct
def pads(n: int) -> str:
    return module(
        chain(
            n,
            "f32[5] parameter(0)",
            lambda k, x: f"f32[{8 + 3 * k}] pad({x}, z), padding=1_2",
            ZERO,
        )
    )


@construct
def pads_with_own_values(n: int) -> str:
    return module(
        chain(
            n,
            "f32[5] parameter(0)",
            lambda k, x: (
                f"z{k} = f32[] parameter({k + 1}); f32[{8 + 3 * k}] pad({x}, z{k}), padding=1_2"
            ),
        )
    )


@construct
def interior_pads_and_slices(n: int) -> str:
    return module(
        chain(
            n,
            "f32[5] parameter(0)",
            lambda k, x: (
                f"p{k} = f32[9] pad({x}, z), padding=0_0_1; f32[5] slice(p{k}), slice={{[2:7]}}"
            ),
            ZERO,
        )
    )


@construct
def shifted_sums(n: int) -> str:
    """A prefix sum: each step adds the array shifted by a power of two."""

    def step(k: int, x: str) -> str:
        shift = 1 << k % 4
        return (
            f"s{k} = f32[{16 - shift}] slice({x}), slice={{[0:{16 - shift}]}}; "
            f"p{k} = f32[16] pad(s{k}, z), padding={shift}_0; f32[16] add({x}, p{k})"
        )

    return module(chain(n, "f32[16] parameter(0)", step, ZERO))


@construct
def slices(n: int) -> str:
    return module(
        chain(
            n,
            f"f32[{n + 5}] parameter(0)",
            lambda k, x: f"f32[{n + 4 - k}] slice({x}), slice={{[1:{n + 5 - k}]}}",
        )
    )


@construct
def dynamic_slices(n: int) -> str:
    def step(k: int, x: str) -> str:
        size = n + 7 - k
        return (
            f"i{k} = s32[] parameter({k + 1}); "
            f"f32[{size}] dynamic-slice({x}, i{k}), dynamic_slice_sizes={{{size}}}"
        )

    return module(chain(n, f"f32[{n + 8}] parameter(0)", step))


@construct
def rotations(n: int) -> str:
    return module(
        chain(
            n,
            "f32[8] parameter(0)",
            lambda k, x: (
                f"a{k} = f32[3] slice({x}), slice={{[0:3]}}; "
                f"b{k} = f32[5] slice({x}), slice={{[3:8]}}; "
                f"f32[8] concatenate(b{k}, a{k}), dimensions={{0}}"
            ),
        )
    )


@construct
def concatenations(n: int) -> str:
    return module(
        chain(
            n,
            "f32[2] parameter(0)",
            lambda k, x: f"f32[{5 + 3 * k}] concatenate({x}, y), dimensions={{0}}",
            "y = f32[3] parameter(1)",
        )
    )


@construct
def concatenations_of_parameters(n: int) -> str:
    return module(
        chain(
            n,
            "f32[2] parameter(0)",
            lambda k, x: (
                f"y{k} = f32[3] parameter({k + 1}); "
                f"f32[{5 + 3 * k}] concatenate({x}, y{k}), dimensions={{0}}"
            ),
        )
    )


@construct
def updates(n: int) -> str:
    return module(
        chain(
            n,
            "f32[16] parameter(0)",
            lambda k, x: f"f32[16] dynamic-update-slice({x}, u, i)",
            "u = f32[3] parameter(1)",
            "i = s32[] parameter(2)",
        )
    )


@construct
def updates_at_own_starts(n: int) -> str:
    return module(
        chain(
            n,
            "f32[16] parameter(0)",
            lambda k, x: (
                f"i{k} = s32[] parameter({k + 2}); f32[16] dynamic-update-slice({x}, u, i{k})"
            ),
            "u = f32[3] parameter(1)",
        )
    )


@construct
def updates_at_constants(n: int) -> str:
    return module(
        chain(
            n,
            f"f32[{n + 8}] parameter(0)",
            lambda k, x: (
                f"i{k} = s32[] constant({k}); f32[{n + 8}] dynamic-update-slice({x}, u, i{k})"
            ),
            "u = f32[3] parameter(1)",
        )
    )


@construct
def broadcasts_and_reductions(n: int) -> str:
    return module(
        chain(
            n,
            "f32[4] parameter(0)",
            lambda k, x: (
                f"b{k} = f32[4,6] broadcast({x}), dimensions={{0}}; "
                f"f32[4] reduce(b{k}, z), dimensions={{1}}, to_apply=add"
            ),
            ZERO,
        ),
        ADD,
    )


@construct
def windows(n: int) -> str:
    return module(
        chain(
            n,
            f"f32[{n + 9}] parameter(0)",
            lambda k, x: f"f32[{n + 8 - k}] reduce-window({x}, z), window={{size=2}}, to_apply=add",
            ZERO,
        ),
        ADD,
    )


@construct
def gathers(n: int) -> str:
    return module(
        chain(
            n,
            "f32[9,4] parameter(0)",
            lambda k, x: (
                f"f32[9,4] gather({x}, i), offset_dims={{1}}, collapsed_slice_dims={{0}}, "
                "start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}"
            ),
            "i = s32[9,1] parameter(1)",
        )
    )


@construct
def scatters(n: int) -> str:
    return module(
        chain(
            n,
            "f32[9,4] parameter(0)",
            lambda k, x: (
                f"f32[9,4] scatter({x}, i, u), update_window_dims={{1}}, "
                "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                "index_vector_dim=1, to_apply=add"
            ),
            "i = s32[5,1] parameter(1)",
            "u = f32[5,4] parameter(2)",
        ),
        ADD,
    )


@construct
def selects(n: int) -> str:
    return module(
        chain(
            n,
            "f32[8] parameter(0)",
            lambda k, x: f"f32[8] select(c, {x}, y)",
            "c = pred[8] parameter(1)",
            "y = f32[8] parameter(2)",
        )
    )


@construct
def tuple_elements(n: int) -> str:
    pair = "(f32[3], f32[3])"
    return module(
        chain(
            n,
            f"{pair} parameter(0)",
            lambda k, x: (
                f"a{k} = f32[3] get-tuple-element({x}), index=0; "
                f"b{k} = f32[3] get-tuple-element({x}), index=1; {pair} tuple(b{k}, a{k})"
            ),
        )
    )
