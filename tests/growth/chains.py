"""Chains of n instructions: each reads the one before."""

from __future__ import annotations

from tests.growth.programs import ADD, ZERO, add_chain, chain, construct, module


@add_chain("f32[8] parameter(0)")
def elementwise_ops(_: int, x: str) -> str:
    return f"f32[8] negate({x})"


@add_chain("f32[8] parameter(0)")
def sums_with_themselves(_: int, x: str) -> str:
    return f"f32[8] add({x}, {x})"


@add_chain("f32[3] parameter(0)")
def sums_of_parameters(k: int, x: str) -> str:
    return f"p{k} = f32[3] parameter({k + 1}); f32[3] add({x}, p{k})"


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


@add_chain("f32[3] parameter(0)")
def sums_of_constants(k: int, x: str) -> str:
    return f"c{k} = f32[3] constant({{1, 2, {k}}}); f32[3] add({x}, c{k})"


@add_chain("f32[4,6] parameter(0)")
def layers(k: int, x: str) -> str:
    once = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    return (
        f"w{k} = f32[6,6] parameter({k + 1}); d{k} = f32[4,6] dot({x}, w{k}), {once}; "
        f"f32[4,6] add({x}, d{k})"
    )


@add_chain("f32[2,3,5] parameter(0)")
def transposes(k: int, x: str) -> str:
    shapes = ["f32[2,3,5]", "f32[5,2,3]", "f32[3,5,2]"]
    return f"{shapes[(k + 1) % 3]} transpose({x}), dimensions={{2,0,1}}"


@add_chain("f32[6,35] parameter(0)")
def reshapes(k: int, x: str) -> str:
    shapes = ["f32[6,35]", "f32[210]", "f32[10,21]", "f32[7,5,6]"]
    return f"{shapes[(k + 1) % 4]} reshape({x})"


@add_chain("f32[210] parameter(0)")
def reshapes_and_transposes(k: int, x: str) -> str:
    shapes = [("f32[6,35]", "f32[35,6]"), ("f32[10,21]", "f32[21,10]")]
    return (
        f"r{k} = {shapes[k % 2][0]} reshape({x}); "
        f"{shapes[k % 2][1]} transpose(r{k}), dimensions={{1,0}}"
    )


@add_chain("f32[210] parameter(0)")
def reshapes_and_reverses(k: int, x: str) -> str:
    shapes = ["f32[6,35]", "f32[10,21]", "f32[14,15]"]
    return (
        f"r{k} = {shapes[k % 3]} reshape({x}); "
        f"{shapes[k % 3]} reverse(r{k}), dimensions={{{k % 2}}}"
    )


@add_chain("f32[5] parameter(0)", ZERO)
def pads(k: int, x: str) -> str:
    return f"f32[{8 + 3 * k}] pad({x}, z), padding=1_2"


@add_chain("f32[5] parameter(0)")
def pads_with_own_values(k: int, x: str) -> str:
    return f"z{k} = f32[] parameter({k + 1}); f32[{8 + 3 * k}] pad({x}, z{k}), padding=1_2"


@add_chain("f32[5] parameter(0)", ZERO)
def interior_pads_and_slices(k: int, x: str) -> str:
    return f"p{k} = f32[9] pad({x}, z), padding=0_0_1; f32[5] slice(p{k}), slice={{[2:7]}}"


@add_chain("f32[16] parameter(0)", ZERO)
def shifted_sums(k: int, x: str) -> str:
    """A prefix sum: each step adds the array shifted by a power of two."""
    shift = 1 << k % 4
    return (
        f"s{k} = f32[{16 - shift}] slice({x}), slice={{[0:{16 - shift}]}}; "
        f"p{k} = f32[16] pad(s{k}, z), padding={shift}_0; f32[16] add({x}, p{k})"
    )


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


@add_chain("f32[8] parameter(0)")
def rotations(k: int, x: str) -> str:
    return (
        f"a{k} = f32[3] slice({x}), slice={{[0:3]}}; "
        f"b{k} = f32[5] slice({x}), slice={{[3:8]}}; "
        f"f32[8] concatenate(b{k}, a{k}), dimensions={{0}}"
    )


@add_chain("f32[2] parameter(0)", "y = f32[3] parameter(1)")
def concatenations(k: int, x: str) -> str:
    return f"f32[{5 + 3 * k}] concatenate({x}, y), dimensions={{0}}"


@add_chain("f32[2] parameter(0)")
def concatenations_of_parameters(k: int, x: str) -> str:
    return (
        f"y{k} = f32[3] parameter({k + 1}); "
        f"f32[{5 + 3 * k}] concatenate({x}, y{k}), dimensions={{0}}"
    )


@add_chain("f32[16] parameter(0)", "u = f32[3] parameter(1)", "i = s32[] parameter(2)")
def updates(_: int, x: str) -> str:
    return f"f32[16] dynamic-update-slice({x}, u, i)"


@add_chain("f32[16] parameter(0)", "u = f32[3] parameter(1)")
def updates_at_own_starts(k: int, x: str) -> str:
    return f"i{k} = s32[] parameter({k + 2}); f32[16] dynamic-update-slice({x}, u, i{k})"


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


@add_chain("f32[4] parameter(0)", ZERO, called=ADD)
def broadcasts_and_reductions(k: int, x: str) -> str:
    return (
        f"b{k} = f32[4,6] broadcast({x}), dimensions={{0}}; "
        f"f32[4] reduce(b{k}, z), dimensions={{1}}, to_apply=add"
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


@add_chain("f32[9,4] parameter(0)", "i = s32[9,1] parameter(1)")
def gathers(_: int, x: str) -> str:
    return (
        f"f32[9,4] gather({x}, i), offset_dims={{1}}, collapsed_slice_dims={{0}}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}"
    )


@add_chain(
    "f32[9,4] parameter(0)", "i = s32[5,1] parameter(1)", "u = f32[5,4] parameter(2)", called=ADD
)
def scatters(_: int, x: str) -> str:
    return (
        f"f32[9,4] scatter({x}, i, u), update_window_dims={{1}}, "
        "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
        "index_vector_dim=1, to_apply=add"
    )


@add_chain("f32[8] parameter(0)", "c = pred[8] parameter(1)", "y = f32[8] parameter(2)")
def selects(_: int, x: str) -> str:
    return f"f32[8] select(c, {x}, y)"


@add_chain("(f32[3], f32[3]) parameter(0)")
def tuple_elements(k: int, x: str) -> str:
    pair = "(f32[3], f32[3])"
    return (
        f"a{k} = f32[3] get-tuple-element({x}), index=0; "
        f"b{k} = f32[3] get-tuple-element({x}), index=1; {pair} tuple(b{k}, a{k})"
    )
