"""Problems for a simplifier: named problems that occur in programs, and random problems."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from random import Random
from typing import Any, Final

from benchmarks.chains import Chain, Index, Step, Tensor, box, tiled_shapes


def _problems_by_name() -> dict[str, tuple[Chain, ...]]:
    return {
        "regrouping": _regroupings(),
        "reshapes": _reshapes(),
        "windows": _windows(),
        "launches": _launches(),
        "layouts": _layouts(),
    }


def _regroupings() -> tuple[Chain, ...]:
    """A single reshape: an index is linearised and delinearised."""
    aligned = [
        ((6, 35), (2, 3, 5, 7)),
        ((2, 3, 5, 7), (6, 35)),
        ((4, 8, 2, 16, 4, 32), (64, 16, 128)),
        ((2, 3, 4, 5, 6, 7, 8, 9), (24, 30, 56, 9)),
        ((9, 8, 7, 6, 5), (3, 3, 56, 30)),
        ((1, 12, 1, 10), (12, 10)),
    ]
    crossing = [
        ((6, 10), (4, 15)),
        ((7, 11, 13), (77, 13)),
        ((14, 15), (10, 21)),
        ((100, 12), (16, 75)),
        ((2, 3, 4, 5, 6, 7, 8, 9), (36, 70, 8, 18)),
        ((3, 5, 17), (17, 15)),
    ]
    return tuple(
        [
            Tensor(new).reshape(*old, mod_first=k % 2 == 1).chain(f"{old} as {new}")
            for k, (old, new) in enumerate([*aligned, *crossing])
        ]
    )


def _same(d: Index) -> list[Any]:
    return [*d]


def _reshapes() -> tuple[Chain, ...]:
    """Several reshapes, transposes and reverses; some chains are the identity."""
    attention = Tensor((4, 96, 768)).reshape(4, 96, 12, 64).transpose(0, 2, 1, 3)
    scores = Tensor((4, 12, 96, 96)).reshape(48, 96, 96)
    primes = Tensor((11, 13, 7)).reshape(143, 7).reshape(91, 11)
    image = Tensor((8, 28, 28, 3))
    return (
        attention.chain("heads"),
        attention.reshape(48, 96, 64).chain("heads in a batch"),
        attention.reshape(48, 96, 64).reshape(4, 12, 96, 64).chain("heads in a batch and back"),
        attention.transpose(0, 2, 1, 3).reshape(384, 768).chain("heads joined"),
        attention.transpose(0, 2, 1, 3).reshape(4, 96, 768).chain("heads there and back", _same),
        attention.transpose(0, 1, 3, 2).reshape(48, 6144).chain("keys, transposed"),
        scores.reshape(4, 12, 9216).reshape(442368).reshape(4, 12, 96, 96).chain("scores", _same),
        scores.transpose(0, 2, 1).reshape(4608, 96).chain("scores, transposed"),
        primes.chain("two cuts through primes"),
        primes.reshape(7, 143).chain("three cuts through primes"),
        primes.reshape(7, 143).reshape(11, 13, 7).chain("primes and back", _same),
        primes.reverse(0).reshape(11, 13, 7).chain("primes, reversed"),
        image.reshape(8, 784, 3).transpose(0, 2, 1).chain("channels first"),
        image.reshape(8, 7, 4, 7, 4, 3)
        .transpose(0, 1, 3, 2, 4, 5)
        .reshape(392, 48)
        .chain("patches"),
        image.reverse(1, 2).reshape(18816).reverse(0).chain("turned twice"),
        Tensor((32, 12))
        .reverse(0, 1)
        .reshape(384)
        .reverse(0)
        .reshape(32, 12)
        .chain("turned", _same),
        Tensor((10, 10, 10)).reshape(20, 50).reshape(40, 25).reshape(8, 125).chain("thousand"),
        Tensor((6, 10, 14))
        .transpose(2, 0, 1)
        .reshape(28, 30)
        .reshape(4, 210)
        .chain("turned primes"),
    )


def _windows() -> tuple[Chain, ...]:
    """Strided, padded and concatenated tensors: offsets, and conditions on the access."""
    wide = Tensor((64, 96))
    return (
        wide.slice((4, 3, 20), (8, 2, 40)).slice((1, 2, 9), (0, 5, 8)).chain("slice of a slice"),
        wide.slice((4, 3, 20), (8, 2, 40)).reshape(800).chain("slice, flat"),
        wide.reshape(64, 12, 8).slice((0, 2, 32), (2, 1, 8), (0, 2, 4)).chain("every other"),
        wide.reshape(64, 12, 8)
        .slice((0, 2, 32), (2, 1, 8), (0, 2, 4))
        .reshape(32, 32)
        .chain("comb"),
        wide.pad((1, 2, 0), (0, 3, 0)).chain("padded"),
        wide.pad((0, 0, 1), (4, 0, 2)).chain("spread"),
        wide.pad((0, 0, 1), (0, 0, 1))
        .slice((0, 2, 64), (0, 2, 96))
        .chain("spread and back", _same),
        wide.pad((2, 2, 0), (2, 2, 0)).reshape(68, 10, 10).chain("padded, regrouped"),
        wide.pad((0, 0, 0), (0, 4, 0)).reshape(6400).chain("padded rows, flat"),
        wide.reshape(6144).pad((5, 3, 0)).chain("flat, padded"),
        wide.joined(0, 64, 32).reshape(40, 4, 96).chain("joined rows"),
        wide.joined(1, 0, 96).reshape(64, 2, 96).chain("joined columns"),
        wide.reverse(1).joined(1, 32, 0).slice((0, 1, 64), (32, 1, 96)).chain("a part of parts"),
        wide.broadcast((64, 5, 96), (0, 2)).reshape(320, 96).chain("repeated rows"),
        wide.broadcast((3, 64, 96), (1, 2)).reshape(192, 96).chain("repeated"),
        Tensor((33, 2, 64)).reshape(66, 64).read_through((32, 16, 3, 3), _WINDOW).chain("windows"),
    )


_WINDOW: Final = Step(box((32, 16, 3, 3)), lambda d, _: [d[0] * 2 + d[2], d[1] * 4 + d[3]])


def _launches() -> tuple[Chain, ...]:
    """Grids of threads whose size divides the tensor or does not."""
    square = Tensor((1024, 512))
    return (
        square.launch(128, 4).chain("rows of 512"),
        square.launch(128, 4, 2).chain("rows of 512, twice"),
        square.launch(256, 8, mod_first=True).chain("rows of 512, wide"),
        square.transpose(1, 0).launch(128, 4).chain("columns"),
        square.reshape(64, 16, 512).transpose(0, 2, 1).launch(128, 4).chain("batched columns"),
        square.reshape(32, 32, 16, 32).transpose(0, 2, 1, 3).launch(256, 4).chain("32 by 32"),
        Tensor((64, 128, 64)).launch(128, 4).chain("three dimensions"),
        Tensor((48, 20, 30)).launch(96, 2).chain("threes"),
        Tensor((100, 52)).launch(128, 4).chain("a remainder"),
        Tensor((100, 52)).reshape(52, 100).launch(128, 4).chain("a remainder, regrouped"),
        Tensor((7, 11, 13)).launch(32, 1).chain("primes launched"),
        Tensor((24, 1000)).reverse(1).launch(64, 2, 4).chain("reversed rows"),
    )


def _layouts() -> tuple[Chain, ...]:
    """Positions in memory of tiled tensors."""
    return (
        _there_and_back((256, 512), (8, 128)),
        _there_and_back((40, 384), (8, 128), (2, 1)),
        _there_and_back((3, 16, 256), (8, 128), (4, 1)),
        _there_and_back((24, 128), (8, 8), (2, 2)),
        _there_and_back((10, 300), (8, 128)),
        _there_and_back((15, 35), (3, 5)),
        Tensor((256, 512)).in_memory((8, 128)).chain("tiles, by position"),
        Tensor((32, 256))
        .in_memory((8, 128), (2, 1))
        .reshape(64, 128)
        .chain("packed tiles, in rows"),
        Tensor((8192,)).from_memory((32, 256), (8, 128)).chain("position in tiles"),
        Tensor((64, 128))
        .reshape(8192)
        .from_memory((32, 256), (8, 128), (4, 1))
        .chain("rows to tiles"),
        Tensor((32, 256))
        .in_memory((8, 128))
        .from_memory((64, 128), (8, 128))
        .chain("tiles regrouped"),
        Tensor((64, 128))
        .in_memory((8, 128))
        .from_memory((64, 128), (16, 8))
        .chain("tiles to tiles"),
    )


def _there_and_back(shape: tuple[int, ...], *tiles: tuple[int, ...]) -> Chain:
    name = f"{shape} in tiles {tiles} and back"
    return Tensor(shape).in_memory(*tiles).from_memory(shape, *tiles).chain(name, _same)


# ---------------------------------------------------------------- random problems

_FACTORS: Final = (
    (2, 2, 2, 2, 2, 2, 2, 2),
    (2, 2, 2, 3, 3, 5),
    (2, 3, 5, 7),
    (7, 11, 13),
    (2, 2, 5, 5, 3),
    (2, 2, 2, 2, 3, 17),
)
_TILES: Final = (((8, 128),), ((8, 128), (2, 1)), ((8, 128), (4, 1)), ((8, 8), (2, 2)), ((3, 5),))


def random_chain(seed: int, windows: bool = False, max_steps: int = 6) -> Chain:
    """Return a chain of up to `max_steps` random operations; `windows` adds pads and broadcasts."""
    random = Random(f"chain {seed} {windows}")
    tensor = Tensor(_regroup(random, random.choice(_FACTORS)))
    kinds = ["reshape", "reshape", "transpose", "reverse", "slice"]
    if windows:
        kinds += ["pad", "joined", "broadcast"]
    for _ in range(random.randint(1, max_steps)):
        tensor = _change(random, tensor, random.choice(kinds))
    return tensor.chain(f"random chain {seed}{' with windows' if windows else ''}")


def random_launch(seed: int) -> Chain:
    """Return a grid of threads over a randomly reshaped and transposed tensor."""
    random = Random(f"launch {seed}")
    shape = [random.choice([3, 4, 7, 8, 12, 16, 30, 64, 100]) for _ in range(random.randint(1, 3))]
    tensor = Tensor(tuple(shape))
    for _ in range(random.randint(0, 3)):
        tensor = _change(random, tensor, random.choice(["reshape", "transpose", "reverse"]))
    threads, unroll = random.choice([32, 64, 96, 128]), random.choice([1, 2, 4])
    return tensor.launch(threads, unroll, random.choice([1, 1, 2])).chain(f"random launch {seed}")


def random_layout(seed: int) -> Chain:
    """Return a tiled tensor read by position, reshaped, in other tiles, or converted back."""
    random = Random(f"layout {seed}")
    tiles = random.choice(_TILES)
    rank = len(tiles[0]) + random.choice([0, 0, 1])
    shape = tuple([random.choice([8, 15, 16, 24, 40, 64, 128, 256]) for _ in range(rank)])
    memory = Tensor(shape).in_memory(*tiles)
    kind = random.choice(["position", "reshape", "back", "back", "other"])
    if kind == "back":
        return memory.from_memory(shape, *tiles).chain(f"random layout {seed}", _same)
    if kind == "reshape":
        memory = memory.reshape(*_regroup(random, _prime_factors(prod(memory.shape))))
    if kind == "other":
        grid = tiled_shapes(shape, tiles)[-1]
        random.shuffle(grid)
        memory = memory.reshape(*grid).transpose(*random.sample(range(len(grid)), len(grid)))
    return memory.chain(f"random layout {seed}")


def random_problems(count: int, seed: int = 0) -> list[Chain]:
    """Return random problems: half are chains without windows, and a sixth each other kind."""
    return [
        *[random_chain(seed + k) for k in range(count // 2)],
        *[random_chain(seed + k, windows=True) for k in range(count // 6)],
        *[random_launch(seed + k) for k in range(count // 6)],
        *[random_layout(seed + k) for k in range(count // 6)],
    ]


def _change(random: Random, tensor: Tensor, kind: str) -> Tensor:
    shape = tensor.shape
    match kind:
        case "reshape":
            factors = _prime_factors(prod(shape))
            return tensor.reshape(*_regroup(random, factors), mod_first=random.random() < 0.5)
        case "transpose":
            return tensor.transpose(*random.sample(range(len(shape)), len(shape)))
        case "reverse":
            return tensor.reverse(*[k for k in range(len(shape)) if random.random() < 0.5])
        case "slice":
            return tensor.slice(*[_cut(random, size) for size in shape])
        case "pad":
            edges = [(random.choice([0, 0, 1, 4]), random.choice([0, 2]), 0) for _ in shape]
            spread = random.randrange(len(shape))
            edges[spread] = (*edges[spread][:2], random.choice([0, 1]))
            return tensor.pad(*edges)
        case "joined":
            dim = random.randrange(len(shape))
            return tensor.joined(dim, random.choice([0, 3, shape[dim]]), random.choice([0, 5]))
    at = random.randrange(len(shape) + 1)
    wider = [*shape[:at], random.choice([2, 3, 4]), *shape[at:]]
    return tensor.broadcast(wider, [k for k in range(len(wider)) if k != at])


def _cut(random: Random, size: int) -> tuple[int, int, int]:
    if size == 1 or random.random() < 0.4:
        return 0, 1, size
    start, stride = random.randrange(size), random.choice([1, 1, 2, 3])
    count = (size - 1 - start) // stride + 1
    return start, stride, random.randint(-(-count // 2), count)


def _regroup(random: Random, factors: Iterable[int]) -> tuple[int, ...]:
    """Return a random shape whose size is the product of `factors`."""
    shape = [1] * random.randint(1, 5)
    shuffled = [*factors]
    random.shuffle(shuffled)
    for factor in shuffled:
        shape[random.randrange(len(shape))] *= factor
    kept = [size for size in shape if size > 1 or random.random() < 0.2]
    return tuple(kept) or (1,)


def _prime_factors(number: int) -> list[int]:
    factors, factor = [], 2
    while number > 1:
        while number % factor == 0:
            factors.append(factor)
            number //= factor
        factor += 1
    return factors


NAMED: Final = _problems_by_name()
"""Named problems that occur in programs, by family."""
