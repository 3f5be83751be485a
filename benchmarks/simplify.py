"""Speed and quality of simplification, compared with MLIR, isl, sympy, TVM and tinygrad.

    python -m benchmarks.simplify [--random N] [--seed S] [--repeat R] [--speed]

The time is that of construct + compose + simplify for each problem of `benchmarks.problems`:
*cold*, without cached results (new variable names, or a new context for other systems), and *warm*,
the same problem again. The systems alternate in one process; times are the best of a few runs.
Ratios are relative to MLIR's affine maps through jaxlib's bindings.

Quality is the number of floor divisions and mods that remain in the results. `best` is the lowest
number of any system for each problem. Every order of composition should give the same expressions;
the number of differences is printed. Systems that are not installed are omitted.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import exp, fsum, log

from benchmarks.bare import Bare
from benchmarks.chains import Chain
from benchmarks.peers import (
    ORDERS,
    Isl,
    Mlir,
    OurExpressions,
    Ours,
    Peer,
    Sympy,
    available,
    holds_at,
    step_by_step,
)
from benchmarks.problems import NAMED, random_problems

SLOW = (Isl, Sympy)  # measured once, and not on every problem
LIMIT = 2e-3  # seconds, the limit for a single chain


def mean(figures: Sequence[float]) -> float:
    """Return the geometric mean."""
    return exp(fsum(map(log, figures)) / len(figures))


def seconds(action: Callable[[Chain], object], chain: Chain) -> float:
    start = time.perf_counter()
    action(chain)
    return time.perf_counter() - start


# ---------------------------------------------------------------- speed

Times = dict[str, list[float]]


def measure_speed(peers: Sequence[Peer], problems: Sequence[Chain], repeat: int) -> Times:
    """Return the best times of each peer, cold and warm, for each problem in order."""
    times: Times = defaultdict(list)
    for problem in problems:
        best: dict[str, float] = {}
        for run in range(repeat):
            for peer in peers:
                if run and isinstance(peer, SLOW):
                    continue
                peer.renew()
                for state in ("cold", "warm"):
                    key = f"{peer.name}, {state}"
                    best[key] = min(best.get(key, 1e9), seconds(peer.solve, problem))
        for key, figure in best.items():
            times[key].append(figure)
    return times


def show_speed(times: Times, families: Mapping[str, Sequence[Chain]]) -> None:
    """Print geometric means, and their ratios to MLIR's."""
    count = len(next(iter(times.values())))
    print(f"construct + compose + simplify, geometric mean over {count} problems")
    base = {name: mean(times[name]) for name in ("MLIR, cold", "MLIR, warm") if name in times}
    print(f"  {'':32}{'us':>10}" + "".join(f"{f'x {name}':>14}" for name in base))
    for name, figures in sorted(times.items(), key=lambda item: mean(item[1])):
        own = mean(figures)
        ratios = "".join(f"{own / theirs:14.2f}" for theirs in base.values())
        print(f"  {name:32}{1e6 * own:10.1f}{ratios}")
    if not base:
        return
    print("cold, by family, x MLIR, cold")
    end = 0
    for family, problems in families.items():
        start, end = end, end + len(problems)
        theirs = mean(times["MLIR, cold"][start:end])
        for name in (Ours.name, OurExpressions.name):
            ratio = mean(times[f"{name}, cold"][start:end]) / theirs
            print(f"  {family:14}{name:32}{ratio:10.2f}")


def show_slowest(problems: Sequence[Chain], repeat: int) -> None:
    """Print the slowest random chains, cold."""
    ours = Ours()
    measured = []
    for problem in problems:
        best = 1e9
        for _ in range(repeat):
            ours.renew()
            best = min(best, seconds(ours.solve, problem))
        measured.append((best, problem.name))
    measured.sort(reverse=True)
    over = Counter(kind(name) for figure, name in measured if figure > LIMIT)
    print(f"random chains, cold: {1e6 * mean([f for f, _ in measured]):.0f} us (geometric mean)")
    kinds = ", ".join(f"{count} {name}" for name, count in over.most_common()) or "none"
    print(f"  above {1e3 * LIMIT:.0f} ms of {len(measured)}: {kinds}; the slowest:")
    for figure, name in measured[: min(3, over.total())]:
        print(f"  {1e3 * figure:8.2f} ms  {name}")


def kind(name: str) -> str:
    """Return the family of a random problem."""
    return " ".join(word for word in name.split() if not word.isdigit())


# ---------------------------------------------------------------- quality


def show_quality(peers: Sequence[Peer], families: Mapping[str, Sequence[Chain]]) -> None:
    """Print the number of divisions that remain for each peer, compared with this project."""
    names = [peer.name for peer in peers]
    print("remaining floor divisions and mods; '+2?' means two problems without an answer")
    print(f"  {'':24}{'problems':>9}" + "".join(f"{n:>14}" for n in names) + f"{'best':>9}")
    every: Counter[str] = Counter()
    for family, problems in families.items():
        total = Counter({"problems": len(problems)})
        for problem in problems:
            left = {peer.name: nodes_left(peer, problem) for peer in peers}
            solved = {name: count for name, count in left.items() if count is not None}
            total.update(solved)
            total["best"] += min(solved.values())
            total.update(f"{n} fewer" for n, count in solved.items() if count < solved[Ours.name])
            total.update(f"{n} unknown" for n in names if n not in solved)
        every.update(total)
        show_row(family, names, total)
    show_row("all", names, every)
    print(f"  this project / best: {every[Ours.name] / every['best']:.4f}")
    fewer = {n: every[f"{n} fewer"] for n in names if n != Ours.name}
    print("  problems on which another system leaves fewer divisions:", fewer)


def show_row(family: str, names: Sequence[str], total: Counter[str]) -> None:
    cells = []
    for name in names:
        unknown = total[f"{name} unknown"]
        if unknown < total["problems"]:
            cells.append(f"{total[name]}+{unknown}?" if unknown else str(total[name]))
        else:
            cells.append("-")
    row = "".join(f"{cell:>14}" for cell in cells)
    print(f"  {family:24}{total['problems']:>9}{row}{total['best']:>9}")


def nodes_left(peer: Peer, problem: Chain) -> int | None:
    """Return the divisions that remain for `peer`; None if isl fails or sympy takes minutes."""
    if isinstance(peer, Sympy) and (len(problem.steps) > 3 or "random" in problem.name):
        return None
    peer.renew()
    try:
        return peer.nodes(peer.solve(problem))
    except Exception as error:
        if isinstance(peer, Isl) and type(error).__module__.startswith("islpy"):
            return None
        raise


def show_confluence(problems: Sequence[Chain]) -> None:
    """Print how often results depend on the order of composition, and incorrect results."""
    differ: Counter[str] = Counter()
    wrong = []
    for problem in problems:
        points = problem.points(500)
        maps = {name: order(problem) for name, order in ORDERS.items()}
        wrong += [
            f"{problem.name} {n}" for n, m in maps.items() if not holds_at(m, problem, points)
        ]
        first = maps["step by step"]
        differ.update(name for name, m in maps.items() if m.results != first.results)
        differ["any"] += any(m.results != first.results for m in maps.values())
        differ["with domains"] += any(m != first for m in maps.values())
    print(f"order of composition, {len(problems)} chains: results that differ from step by step")
    for name in [*list(ORDERS)[1:], "any", "with domains"]:
        print(f"  {name:20}{differ[name]:6}  {100 * differ[name] / len(problems):5.1f} %")
    print(f"  incorrect: {wrong or 'none'}")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simplify")
    parser.add_argument("--random", type=int, default=600, help="number of random chains")
    parser.add_argument("--seed", type=int, default=0, help="first seed of random chains")
    parser.add_argument(
        "--repeat", type=int, default=5, help="number of runs; the best time counts"
    )
    parser.add_argument("--speed", action="store_true", help="measure only times")
    options = parser.parse_args()

    peers = list(available())
    for reason in [peer for peer in peers if isinstance(peer, str)]:
        print(reason)
    others = [peer for peer in peers if isinstance(peer, Peer)]
    named = [problem for problems in NAMED.values() for problem in problems]
    chosen = random_problems(options.random, options.seed)
    for problem in named[:5]:  # imports are not measured
        step_by_step(problem)
    gc.collect()
    measured = [Ours(), OurExpressions(), Bare(), *others]
    show_speed(measure_speed(measured, named, options.repeat), NAMED)
    show_slowest(chosen, options.repeat)
    if options.speed:
        return

    families: dict[str, Sequence[Chain]] = {**NAMED}
    for problem in chosen:
        family = kind(problem.name)
        families[family] = [*families.get(family, []), problem]
    show_quality([Ours(), *[p for p in others if not isinstance(p, Mlir)]], families)
    show_confluence([*named, *chosen])


if __name__ == "__main__":
    main()
