"""Processor time of queries that take exponential time without budgets, the slowest last.

    python -m benchmarks.hard_cases [--seconds S] [PART...]

Each row is a query about one hard map: its answer, and the processor seconds.  Answers are

* "exact", or "valid": a map that may be less simple than possible;
* "unknown (budget)", or "unknown" for another reason, such as products that isl cannot represent;
* "elided": a text with omitted operands; "refused": a conversion or certificate raised an error.

Each case runs in a process of its own, which ends after S seconds (20 by default); then the row
says "no answer".  Give parts of names to run only the cases that contain one of them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import hlo
import indexing
from benchmarks.decoder import decoder
from indexing import IndexingMap, Unknown, parse_map
from indexing.maps.indexing_map import dims
from simplifier import Expr, as_expr, maximum, minimum
from simplifier.constraints import Constraint
from simplifier.text import is_elided

GOAL: Final = 5.0  # seconds of processor time for each case
SECONDS: Final = 20
NO_ANSWER: Final = "no answer"

# ---------------------------------------------------------------- maps


def self_composed(times: int) -> IndexingMap:
    """Return a map composed `times` times with itself: its text grows 2.7 times with each."""
    box = "domain: d0 in [0, 999], d1 in [0, 10]"
    step = parse_map(f"(d0, d1) -> ((d0 * 7 + d1) floordiv 5, (d0 * 7 + d1) mod 11), {box}")
    m = step
    for _ in range(times - 1):
        m = m.then(step).simplify()
    return m


def product_of_sums(factors: int) -> IndexingMap:
    """Return ``(d0 + d1) * (d0 + d2) * …``, which has 2^factors terms."""
    d = dims((10,) * (factors + 1))
    total = as_expr(1)
    for other in d[1:]:
        total = total * (d[0] + other)
    return IndexingMap.of(d, [total])


def coprime(sizes: Sequence[int], moduli: Sequence[int], divisors: Sequence[int]) -> IndexingMap:
    """Return residues and quotients of one sum of four dimensions."""
    d = dims(sizes)
    x = sum((v * c for v, c in zip(d, (7, 11, 13, 17), strict=False)), as_expr(0))
    return IndexingMap.of(d, [*[x % m for m in moduli], *[x // n for n in divisors]])


def nest(depth: int) -> IndexingMap:
    """Return residues of residues by alternating moduli."""
    d = dims((1000,))
    x = d[0].as_expr()
    for k in range(depth):
        x = (x * 3 + 1) % (97, 89, 83, 79, 73)[k % 5]
    return IndexingMap.of(d, [x])


def constrain(count: int, modulo: bool) -> IndexingMap:
    """Return a map with `count` constraints on eight dimensions."""
    d = dims((100,) * 8)
    constraints = []
    for k in range(count):
        x = sum((v * ((k * 7 + j * 5) % 11 - 3) for j, v in enumerate(d)), as_expr(0))
        constraints.append(Constraint(x % (7 + k % 5), 0, 5) if modulo else Constraint(x, 0, 300))
    return IndexingMap.of(d, [d[0] + d[1], d[2] // 3], constraints=constraints)


def wide(variables: int) -> IndexingMap:
    """Return a map of many dimensions."""
    d = dims((5,) * variables)
    x = sum((v * (3 * k + 1) for k, v in enumerate(d)), as_expr(0))
    return IndexingMap.of(d, [x // 7, x % 11], constraints=[Constraint(x % 13, 0, 3)])


def huge_numbers(bits: int, size: int) -> IndexingMap:
    """Return a map with coefficients of about 2^bits."""
    d = dims((size,) * 3)
    x = d[0] * (2**bits + 1) + d[1] * (2**bits - 3) + d[2] * 7
    return IndexingMap.of(d, [x % (2**bits - 1), x // (2**bits // 3)])


def huge_domain() -> IndexingMap:
    """Return a map of 2^80 points."""
    d = dims((2**40, 2**40))
    x = d[0] * 7 + d[1] * 11
    return IndexingMap.of(d, [x // 13, x % 17], constraints=[Constraint(x % 19, 2, 3)])


def extrema(count: int) -> IndexingMap:
    """Return a chain of minima and maxima."""
    d = dims((100,) * count)
    x = d[0].as_expr()
    for k, v in enumerate(d[1:]):
        x = maximum(minimum(x, v + k), v - 3)
    return IndexingMap.of(d, [x])


def deep(depth: int) -> IndexingMap:
    """Return two expressions that share all subexpressions."""
    d = dims((1000, 11))
    a, b = d[0].as_expr(), d[1].as_expr()
    for _ in range(depth):
        x: Expr = a * 7 + b
        a, b = x // 5, x % 11
    return IndexingMap.of(d, [a, b])


# fmt: off
MAPS: Final[dict[str, Callable[[], IndexingMap]]] = {
    "16 self-compositions":    lambda: self_composed(16),
    "product of 13 sums":      lambda: product_of_sums(13),
    "product of 40 sums":      lambda: product_of_sums(40),
    "coprime, 420 points":     lambda: coprime((7, 5, 3, 4), (11, 13, 17), ()),
    "coprime, 480 points":     lambda: coprime((5, 4, 4, 6), (19, 23), (29,)),
    "coprime, 10^8 points":    lambda: coprime((100,) * 4, (101, 103), (107,)),
    "30 nested mods":          lambda: nest(30),
    "50 constraints":          lambda: constrain(50, modulo=False),
    "50 constraints with mod": lambda: constrain(50, modulo=True),
    "40 variables":            lambda: wide(40),
    "numbers of 60 bits":      lambda: huge_numbers(60, 100),
    "numbers of 200 bits":     lambda: huge_numbers(200, 100),
    "2^80 points":             huge_domain,
    "60 minima and maxima":    lambda: extrema(60),
    "200 shared levels":       lambda: deep(200),
}

# ---------------------------------------------------------------- queries


def array_sizes(m: IndexingMap) -> tuple[int, ...]:
    return tuple([max(1, upper + 1) for _, upper in m.result_bounds])


def change(m: IndexingMap) -> IndexingMap:
    """Return a map that differs only where the first dimension is largest."""
    d0 = m.dims[0]
    results = *m.results[:-1], m.results[-1] + d0 // max(1, d0.upper)
    return IndexingMap.of(m.dims, results, constraints=m.constraints)


def redundant(m: IndexingMap) -> IndexingMap:
    """Return an equal map with one more constraint, which simplification drops."""
    return m.with_constraints([Constraint(m.dims[0] * 2 + 1, 0, 2 * m.dims[0].upper + 1)])


QUERIES: Final[dict[str, Callable[[IndexingMap], object]]] = {
    "simplify":            IndexingMap.simplify,
    "certify":             lambda m: redundant(m).simplify(certify=True),
    "then":                lambda m: m.then(IndexingMap.identity(array_sizes(m))).simplify(),
    "evaluate":            lambda m: m.evaluate([v.upper // 2 for v in m.dims]),
    "str":                 str,
    "to_json":             IndexingMap.to_json,
    "to_mlir":             IndexingMap.to_mlir,
    "to_sympy":            IndexingMap.to_sympy,
    "to_isl":              IndexingMap.to_isl,
    "is_equal":            lambda m: m.is_equal(change(m)),
    "is_empty":            IndexingMap.is_empty,
    "inverse":             IndexingMap.inverse,
    "image":               IndexingMap.image,
    "preimage":            lambda m: m.preimage([0] * len(m.results)),
    "count_image":         IndexingMap.count_image,
    "count_domain":        IndexingMap.count_domain,
    "is_injective":        IndexingMap.is_injective,
    "is_single_valued":    IndexingMap.is_single_valued,
    "is_surjective_onto":  lambda m: m.is_surjective_onto(array_sizes(m)),
    "depends_on":          lambda m: m.depends_on(0),
    "multiplicity":        lambda m: histogram(m),
}
# fmt: on
EXACT: Final = ("evaluate", "is_", "count_", "depends_on", "multiplicity")  # no "valid" answers


def histogram(m: IndexingMap) -> object:
    reads = m.multiplicity()
    return reads if isinstance(reads, Unknown) else reads.histogram()


# ---------------------------------------------------------------- modules


def reshapes(count: int, between: str) -> str:
    """Return a module of awkward reshapes with `between` after each."""
    lines, array, sizes = ["p = f32[30,77] parameter(0)"], "p", (30, 77)
    for k in range(count):
        sizes = (77, 30) if sizes == (30, 77) else (30, 77)
        lines.append(f"r{k} = f32[{sizes[0]},{sizes[1]}] reshape({array})")
        if between == "reverse":
            lines.append(f"t{k} = f32[{sizes[0]},{sizes[1]}] reverse(r{k}), dimensions={{{k % 2}}}")
        else:
            sizes = sizes[::-1]
            lines.append(f"t{k} = f32[{sizes[0]},{sizes[1]}] transpose(r{k}), dimensions={{1,0}}")
            lines.append(f"u{k} = f32[2310] reshape(t{k})")
            sizes = (30, 77) if k % 2 else (77, 30)
            lines.append(f"v{k} = f32[{sizes[0]},{sizes[1]}] reshape(u{k})")
        array = f"t{k}" if between == "reverse" else f"v{k}"
    return "ENTRY e {\n" + "\n".join([*lines[:-1], f"ROOT {lines[-1]}"]) + "\n}"


def doubled_calls(depth: int) -> str:
    """Return a module in which each computation calls the next one twice."""
    p = "p = f32[4] parameter(0)"
    text = f"f0 {{ {p}  ROOT r = f32[4] negate(p) }}\n"
    for k in range(1, depth + 1):
        call = f"f32[4] call(p), to_apply=f{k - 1}"
        text += f"f{k} {{ {p}  a = {call}  b = {call}  ROOT r = f32[4] add(a, b) }}\n"
    return text + f"ENTRY e {{ {p}  ROOT r = f32[4] call(p), to_apply=f{depth} }}"


def barrier(leaves: int) -> str:
    """Return a module with an optimization barrier over many arrays."""
    shape = f"({', '.join(['f32[4]'] * leaves)})"
    lines = [f"p{k} = f32[4] parameter({k})" for k in range(leaves)]
    lines.append(f"t = {shape} tuple({', '.join(f'p{k}' for k in range(leaves))})")
    return "ENTRY e {\n" + "\n".join([*lines, f"ROOT b = {shape} opt-barrier(t)"]) + "\n}"


def to_parameters(text: str) -> object:
    return indexing.to_parameters(hlo.parse(text).entry.root)


def input_to_output(text: str) -> object:
    return indexing.input_to_output(hlo.parse(text).entry.root)


def of_loop(text: str) -> object:
    loop = next(each for each in hlo.parse(text).entry if each.opcode == "while")
    return [indexing.output_to_input(loop, k) for k in range(5)]  # others are forwarded


MODULES: Final[dict[str, Callable[[], object]]] = {
    "40 reshapes with reverses: to_parameters": lambda: to_parameters(reshapes(40, "reverse")),
    "40 reshapes with transposes: to_parameters": lambda: to_parameters(reshapes(40, "transpose")),
    "calls that double 60 times: to_parameters": lambda: to_parameters(doubled_calls(60)),
    "barrier over 1024 leaves: input_to_output": lambda: input_to_output(barrier(1024)),
    "decoder of 26 layers: output_to_input": lambda: of_loop(decoder(26)),
    "decoder of 26 layers: to_parameters": lambda: to_parameters(decoder(26)),
}

# ---------------------------------------------------------------- measurement


Row: TypeAlias = tuple[float, str, str]
"""Processor seconds, the name of the case, and the kind of its answer."""


def rows(parts: Sequence[str], seconds: int) -> Iterator[Row]:
    """Measure the cases whose names contain one of `parts`, or all cases."""

    def is_chosen(name: str) -> bool:
        return not parts or any(part in name for part in parts)

    for name, make in MAPS.items():
        queries = {f"{name}: {query}": ask for query, ask in QUERIES.items()}
        chosen = {query: ask for query, ask in queries.items() if is_chosen(query)}
        if not chosen:
            continue
        answer, time_taken = measure(lambda make=make: kind(make(), ""), seconds)  # type: ignore[misc]
        yield time_taken, f"{name}: construct", answer
        if answer == NO_ANSWER:
            continue
        m = make()
        for query, ask in chosen.items():
            row = measure(lambda ask=ask, m=m, q=query: kind(ask(m), q), seconds)  # type: ignore[misc]
            yield row[1], query, row[0]
    for name, ask_module in MODULES.items():
        if is_chosen(name):
            row = measure(lambda ask=ask_module: kind(ask(), ""), seconds)  # type: ignore[misc]
            yield row[1], name, row[0]


def kind(answer: object, query: str) -> str:
    """Return the kind of an answer."""
    if isinstance(answer, Unknown):
        return "unknown (budget)" if "budget" in answer.reason else "unknown"
    if isinstance(answer, str):
        return "elided" if is_elided(answer) else "exact"
    return "exact" if query.partition(": ")[2].startswith(EXACT) else "valid"


def measure(ask: Callable[[], str], seconds: int) -> tuple[str, float]:
    """Return the kind of the answer and its processor seconds, of a process that ends in time."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    pid = os.fork()
    if not pid:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        start = time.process_time()
        try:
            answer = ask()
        except (ValueError, AssertionError) as error:  # too long a text; an unproved certificate
            answer = f"refused ({type(error).__name__})"
        except Exception as error:  # a row like others; the traceback is of no use here
            answer = f"raised {type(error).__name__}"
        sender.send((answer, time.process_time() - start))
        os._exit(0)
    sender.close()
    try:
        result: tuple[str, float] = receiver.recv()
    except EOFError:
        result = NO_ANSWER, float(seconds)
    os.waitpid(pid, 0)
    return result


def main() -> None:
    """Print all cases, then the slowest."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hard_cases")
    parser.add_argument("parts", nargs="*", help="parts of the names of cases to run")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="limit on one case")
    options = parser.parse_args()
    table = []
    for seconds, name, answer in rows(options.parts, options.seconds):
        table.append((seconds, name, answer))
        print(f"{name:48}{answer:28}{seconds:8.2f}", flush=True)
    table.sort()
    over = sum(seconds > GOAL for seconds, _, _ in table)
    print(f"{len(table)} cases, {over} above {GOAL:.0f} s of processor time; the slowest:")
    for seconds, name, answer in table[-10:]:
        print(f"{name:48}{answer:28}{seconds:8.2f}")


if __name__ == "__main__":
    main()
