"""Speed and quality of simplification, beside MLIR, isl, sympy, TVM and tinygrad.

    python -m benchmarks.simplify [--random N] [--seed S] [--repeat R]

What is timed is construct + compose + simplify, for each of the problems of `benchmarks.problems`:
*cold*, where nothing of an earlier run can help (variables with fresh names; a fresh context for
the others), and *warm*, the same problem once more. Everything runs in one process, taking turns,
and figures are the best of a few runs. Ratios are to MLIR's affine maps through jaxlib's bindings.

Quality is the number of floor divisions and mods that are left in the results. `best` takes for
each problem whoever leaves the fewest. Several ways to compose a chain should give the same
expressions; how often they do not is printed too. Systems that are not installed are left out.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from importlib import metadata
from math import exp, fsum, log

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
from simplifier import linear

SLOW = (Isl, Sympy)  # for which one run is exact enough, and which cannot take every problem
LIMIT = 2e-3  # seconds that no single chain may take


def environment() -> str:
    """When and with what the figures were measured."""
    versions = []
    for package in ("jaxlib", "islpy", "sympy", "apache-tvm", "tinygrad"):
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    machine = f"{os.cpu_count()} cores of {platform.machine()}"
    build = "interpreted" if linear.__file__.endswith(".py") else "compiled"
    python = f"Python {platform.python_version()}, this project {build}"
    return f"{date.today()}: {python}, {machine}; {', '.join(versions)}"


def mean(figures: Sequence[float]) -> float:
    """The geometric mean."""
    return exp(fsum(map(log, figures)) / len(figures))


def seconds(action: Callable[[Chain], object], chain: Chain) -> float:
    start = time.perf_counter()
    action(chain)
    return time.perf_counter() - start


# ---------------------------------------------------------------- speed

Times = dict[str, list[float]]


def measure_speed(peers: Sequence[Peer], problems: Sequence[Chain], repeat: int) -> Times:
    """The best time of each peer, cold and warm, for each problem in order."""
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
    """Print geometric means, and their ratios to those of MLIR."""
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
    """Print the random chains that take longest, cold."""
    ours = Ours()
    found = []
    for problem in problems:
        best = 1e9
        for _ in range(repeat):
            ours.renew()
            best = min(best, seconds(ours.solve, problem))
        found.append((best, problem.name))
    found.sort(reverse=True)
    over = Counter(kind(name) for figure, name in found if figure > LIMIT)
    print(f"random chains, cold: {1e6 * mean([f for f, _ in found]):.0f} us (geometric mean)")
    kinds = ", ".join(f"{count} {name}" for name, count in over.most_common()) or "none"
    print(f"  above {1e3 * LIMIT:.0f} ms of {len(found)}: {kinds}; the slowest:")
    for figure, name in found[:3]:
        print(f"  {1e3 * figure:8.2f} ms  {name}")


def kind(name: str) -> str:
    """The family of a random problem."""
    return " ".join(word for word in name.split() if not word.isdigit())


# ---------------------------------------------------------------- quality


def show_quality(peers: Sequence[Peer], families: Mapping[str, Sequence[Chain]]) -> None:
    """Print how many divisions each peer leaves, and who leaves fewer than this project."""
    names = [peer.name for peer in peers]
    print("floor divisions and mods that are left; '+2?' stands for two problems without an answer")
    print(f"  {'':24}{'problems':>9}" + "".join(f"{n:>14}" for n in names) + f"{'best':>9}")
    every: Counter[str] = Counter()
    for family, problems in families.items():
        total = Counter({"problems": len(problems)})
        for problem in problems:
            left = {peer.name: nodes_left(peer, problem) for peer in peers}
            known = {name: count for name, count in left.items() if count is not None}
            total.update(known)
            total["best"] += min(known.values())
            total.update(f"{n} fewer" for n, count in known.items() if count < known[Ours.name])
            total.update(f"{n} unknown" for n in names if n not in known)
        every.update(total)
        show_row(family, names, total)
    show_row("all", names, every)
    print(f"  this project / best: {every[Ours.name] / every['best']:.4f}")
    fewer = {n: every[f"{n} fewer"] for n in names if n != Ours.name}
    print("  problems on which they leave fewer than this project:", fewer)


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
    """What `peer` leaves of `problem`; None where isl gives up, and sympy would take minutes."""
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
    """Print how often the order of composition shows, and whether all of them are right."""
    differ: Counter[str] = Counter()
    wrong = []
    for problem in problems:
        points = problem.points(500)
        found = {name: order(problem) for name, order in ORDERS.items()}
        wrong += [
            f"{problem.name} {n}" for n, m in found.items() if not holds_at(m, problem, points)
        ]
        first = found["step by step"]
        differ.update(name for name, m in found.items() if m.results != first.results)
        differ["any"] += any(m.results != first.results for m in found.values())
        differ["with domains"] += any(m != first for m in found.values())
    print(f"order of composition, {len(problems)} chains: results that differ from step by step")
    for name in [*list(ORDERS)[1:], "any", "with domains"]:
        print(f"  {name:20}{differ[name]:6}  {100 * differ[name] / len(problems):5.1f} %")
    print(f"  wrong at some point: {wrong or 'none'}")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simplify")
    parser.add_argument("--random", type=int, default=600, help="how many random chains")
    parser.add_argument("--seed", type=int, default=0, help="the first of their seeds")
    parser.add_argument("--repeat", type=int, default=5, help="runs of which the best counts")
    options = parser.parse_args()

    print(environment())
    found = list(available())
    for reason in [peer for peer in found if isinstance(peer, str)]:
        print(reason)
    others = [peer for peer in found if isinstance(peer, Peer)]
    named = [problem for problems in NAMED.values() for problem in problems]
    chosen = random_problems(options.random, options.seed)
    for problem in named[:5]:  # imports are no part of what is measured
        step_by_step(problem)
    gc.collect()
    show_speed(measure_speed([Ours(), OurExpressions(), *others], named, options.repeat), NAMED)
    show_slowest(chosen, options.repeat)

    families: dict[str, Sequence[Chain]] = {**NAMED}
    for problem in chosen:
        family = kind(problem.name)
        families[family] = [*families.get(family, []), problem]
    show_quality([Ours(), *[p for p in others if not isinstance(p, Mlir)]], families)
    show_confluence([*named, *chosen])


if __name__ == "__main__":
    main()
