"""Instructions with n operands or n results."""

from __future__ import annotations

from tests.growth.programs import (
    ADD,
    ZERO,
    computation,
    construct,
    module,
    names,
    parameters,
    tuple_of,
)

EVERY = ", ".join


def negations(n: int, name: str = "f") -> str:
    """Return a computation that negates each of n parameters."""
    lines = [f"x{k} = f32[3] parameter({k})" for k in range(n)]
    lines += [f"y{k} = f32[3] negate(x{k})" for k in range(n)]
    return computation(name, [*lines, f"r = {tuple_of(n)} tuple({names('y', n)})"])


def negated_tuple(n: int, name: str = "f") -> str:
    """Return a computation that negates each element of a tuple."""
    lines = [f"p = {tuple_of(n)} parameter(0)"]
    lines += [f"x{k} = f32[3] get-tuple-element(p), index={k}" for k in range(n)]
    lines += [f"y{k} = f32[3] negate(x{k})" for k in range(n)]
    return computation(name, [*lines, f"r = {tuple_of(n)} tuple({names('y', n)})"])


@construct
def operands_of_concatenate(n: int) -> str:
    joined = f"c = f32[{3 * n}] concatenate({names('p', n)}), dimensions={{0}}"
    return module([*parameters(n), joined])


@construct
def equal_operands_of_concatenate(n: int) -> str:
    joined = f"c = f32[{3 * n}] concatenate({EVERY(['p'] * n)}), dimensions={{0}}"
    return module(["p = f32[3] parameter(0)", joined])


@construct
def operands_of_map(n: int) -> str:
    lines = [f"x{k} = f32[] parameter({k})" for k in range(n)]
    lines += [f"y{k} = f32[] add(x{k}, {f'y{k - 1}' if k else 'x0'})" for k in range(n)]
    mapped = f"s = f32[3] map({names('p', n)}), dimensions={{0}}, to_apply=f"
    return module([*parameters(n), mapped], computation("f", lines))


@construct
def operands_of_custom_call(n: int) -> str:
    call = f'c = f32[3] custom-call({names("p", n)}), custom_call_target="f"'
    return module([*parameters(n), call])


@construct
def operands_of_sort(n: int) -> str:
    lines = [f"x{k} = f32[] parameter({k})" for k in range(2 * n)]
    less = computation("less", [*lines, "r = pred[] compare(x0, x1), direction=LT"])
    call = f"s = {tuple_of(n)} sort({names('p', n)}), dimensions={{0}}, to_apply=less"
    return module([*parameters(n), call], less)


@construct
def operands_of_reduce(n: int) -> str:
    lines = [f"x{k} = f32[] parameter({k})" for k in range(2 * n)]
    lines += [f"y{k} = f32[] add(x{k}, x{k + n})" for k in range(n)]
    shape = tuple_of(n, "f32[]")
    inits = EVERY(["z"] * n)
    call = f"s = {shape} reduce({names('p', n)}, {inits}), dimensions={{0}}, to_apply=f"
    body = computation("f", [*lines, f"r = {shape} tuple({names('y', n)})"])
    return module([ZERO, *parameters(n), call], body)


@construct
def operands_of_all_reduce(n: int) -> str:
    call = f"s = {tuple_of(n)} all-reduce({names('p', n)}), replica_groups={{}}, to_apply=add"
    return module([*parameters(n), call], ADD)


@construct
def operands_of_call(n: int) -> str:
    call = f"c = {tuple_of(n)} call({names('p', n)}), to_apply=f"
    return module([*parameters(n), call], negations(n))


@construct
def operands_of_fusion(n: int) -> str:
    call = f"c = {tuple_of(n)} fusion({names('p', n)}), kind=kLoop, calls=f"
    return module([*parameters(n), call], negations(n))


@construct
def operands_of_async_start(n: int) -> str:
    started = f"s = ({tuple_of(n)}, {tuple_of(n)}, u32[]) async-start({names('p', n)}), calls=f"
    return module([*parameters(n), started, f"d = {tuple_of(n)} async-done(s)"], negations(n))


@construct
def operands_of_tuple(n: int) -> str:
    return module([*parameters(n), f"t = {tuple_of(n)} tuple({names('p', n)})"])


@construct
def leaves_of_barrier(n: int) -> str:
    return module([f"p = {tuple_of(n)} parameter(0)", f"b = {tuple_of(n)} opt-barrier(p)"])


@construct
def leaves_of_parameter(n: int) -> str:
    lines = [f"g{k} = f32[3] get-tuple-element(p), index={k}" for k in range(n)]
    last = f"t = {tuple_of(n)} tuple({names('g', n)})"
    return module([f"p = {tuple_of(n)} parameter(0)", *lines, last])


@construct
def leaves_of_custom_call(n: int) -> str:
    call = 'c = f32[3] custom-call(p), custom_call_target="f"'
    return module([f"p = {tuple_of(n)} parameter(0)", call])


@construct
def leaves_of_while(n: int) -> str:
    lines = [f"p = {tuple_of(n)} parameter(0)", "t = pred[] constant(false)"]
    loop = f"w = {tuple_of(n)} while(p), condition=c, body=f"
    return module([lines[0], loop], computation("c", lines), negated_tuple(n))


@construct
def leaves_of_conditional(n: int) -> str:
    lines = ["i = pred[] parameter(0)", f"p = {tuple_of(n)} parameter(1)"]
    branches = "true_computation=f, false_computation=g"
    choice = f"w = {tuple_of(n)} conditional(i, p, p), {branches}"
    return module([*lines, choice], negated_tuple(n), negated_tuple(n, "g"))


@construct
def branches_of_conditional(n: int) -> str:
    lines = ["p = f32[3] parameter(0)", "r = f32[3] negate(p)"]
    branches = [computation(f"f{k}", lines) for k in range(n)]
    called = f"branch_computations={{{names('f', n)}}}"
    choice = f"w = f32[3] conditional(i, {EVERY(['p'] * n)}), {called}"
    return module(["i = s32[] parameter(0)", "p = f32[3] parameter(1)", choice], *branches)


@construct
def numbers_of_constant(n: int) -> str:
    numbers = EVERY(map(str, range(n)))
    return module([f"c = f32[{n}] constant({{{numbers}}})", f"x = f32[{n}] negate(c)"])
