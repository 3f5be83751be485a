"""Computations that call computations, n deep; some call the next one twice."""

from __future__ import annotations

from collections.abc import Callable

from tests.growth.programs import ADD, REVERSE, ZERO, chain, computation, construct, module

P = "p = f32[3] parameter(0)"
NEVER = computation("never", [P, "t = pred[] constant(false)"])


def nest_computations(n: int, lines: Callable[[str], list[str]], *more: str) -> str:
    """Return a module with computations f0 to fn; ``lines(name)`` call the one named before."""
    bodies = [computation("f0", [P, f"r = {REVERSE}"])]
    bodies += [computation(f"f{k + 1}", [P, *lines(f"f{k}")]) for k in range(n)]
    return module([P, f"r = f32[3] call(p), to_apply=f{n}"], *more, *bodies)


def nest_applications(n: int, arity: int, apply: Callable[[str, str], str], *more: str) -> str:
    """Return a module with computations of scalars, f0 to fn, that apply the one before twice.

    Args:
        arity: the number of their parameters.
        apply: ``apply(x, f)`` applies f to x and to the other parameters.
        more: instructions of the entry.
    """
    scalars = [f"{x} = f32[] parameter({k})" for k, x in enumerate("pq"[:arity])]
    innermost = "sine(p)" if arity == 1 else "atan2(p, q)"
    bodies = [computation("f0", [*scalars, f"r = f32[] {innermost}"])]
    for k in range(n):
        lines = [f"a = f32[] {apply('p', f'f{k}')}", f"r = f32[] {apply('a', f'f{k}')}"]
        bodies.append(computation(f"f{k + 1}", [*scalars, *lines]))
    return module([P, *more], *bodies)


def twice(call: Callable[[str, str], str]) -> Callable[[str], list[str]]:
    """Return lines that call a computation, and then again with the result."""
    return lambda name: [f"a = f32[3] {call('p', name)}", f"r = f32[3] {call('a', name)}"]


def branches(true: str, false: str) -> list[str]:
    """Return lines that call one of two computations: the first, as it happens."""
    names = f"true_computation={true}, false_computation={false}"
    return ["i = pred[] constant(true)", f"r = f32[3] conditional(i, p, p), {names}"]


@construct
def computations(n: int) -> str:
    bodies = [computation(f"f{k}", [P, f"r = {REVERSE}"]) for k in range(n)]
    calls = chain(n, "f32[3] parameter(0)", lambda k, x: f"f32[3] call({x}), to_apply=f{k}")
    return module(calls, *bodies)


@construct
def calls(n: int) -> str:
    lines = chain(n, "f32[3] parameter(0)", lambda k, x: f"f32[3] call({x}), to_apply=f")
    return module(lines, computation("f", [P, f"r = {REVERSE}"]))


@construct
def nested_calls(n: int) -> str:
    return nest_computations(n, lambda f: [f"r = f32[3] call(p), to_apply={f}"])


@construct
def nested_fusions(n: int) -> str:
    return nest_computations(n, lambda f: [f"r = f32[3] fusion(p), kind=kLoop, calls={f}"])


@construct
def nested_conditionals(n: int) -> str:
    return nest_computations(n, lambda f: branches(f, "f0"))


@construct
def nested_whiles(n: int) -> str:
    return nest_computations(
        n, lambda f: [f"r = f32[3] while(p), condition=never, body={f}"], NEVER
    )


@construct
def doubling_calls(n: int) -> str:
    return nest_computations(n, twice(lambda x, f: f"call({x}), to_apply={f}"))


@construct
def doubling_fusions(n: int) -> str:
    return nest_computations(n, twice(lambda x, f: f"fusion({x}), kind=kLoop, calls={f}"))


@construct
def doubling_conditionals(n: int) -> str:
    return nest_computations(n, lambda f: branches(f, f))


@construct
def doubling_whiles(n: int) -> str:
    return nest_computations(n, twice(lambda x, f: f"while({x}), condition=never, body={f}"), NEVER)


@construct
def doubling_maps(n: int) -> str:
    last = f"r = f32[3] map(p), dimensions={{0}}, to_apply=f{n}"
    return nest_applications(n, 1, lambda x, f: f"map({x}), dimensions={{}}, to_apply={f}", last)


@construct
def doubling_reduces(n: int) -> str:
    last = f"r = f32[] reduce(p, z), dimensions={{0}}, to_apply=f{n}"
    return nest_applications(
        n, 2, lambda x, f: f"reduce({x}, q), dimensions={{}}, to_apply={f}", ZERO, last
    )


@construct
def calls_in_map(n: int) -> str:
    last = f"r = f32[3] map(p), dimensions={{0}}, to_apply=f{n}"
    return nest_applications(n, 1, lambda x, f: f"call({x}), to_apply={f}", last)


@construct
def maps_of_arrays(n: int) -> str:
    """Computations that are no scalar functions: each is applied to two elements."""
    scalar, pair = "p = f32[] parameter(0)", "f32[2]"
    bodies = [computation("f0", [scalar, "r = f32[] sine(p)"])]
    for k in range(n):
        lines = [
            f"a = {pair} broadcast(p), dimensions={{}}",
            f"b = {pair} map(a), dimensions={{0}}, to_apply=f{k}",
            "z = f32[] constant(0)",
            "r = f32[] reduce(b, z), dimensions={0}, to_apply=add",
        ]
        bodies.append(computation(f"f{k + 1}", [scalar, *lines]))
    return module([P, f"r = f32[3] map(p), dimensions={{0}}, to_apply=f{n}"], ADD, *bodies)
