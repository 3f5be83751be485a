"""Time of `indexing.access` compared with that of the maps that it needs.

    python -m benchmarks.access

Each program has about 24,576 blocks of 128 threads.  The target is 50 ms.  The ratio is the time of
`access` divided by that of the maps of the operands, composed with the schedule and the layouts.
Times are processor times, the least of several runs.  Rows whose size has no common factor with
that of a block have a long period: 16,380 warps are enumerated for each of four loads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final

import hlo
import indexing
from indexing.maps.layouts import physical_map

TARGET: Final = 50.0  # milliseconds
RUNS: Final = 5
THREADS, UNROLL = 128, 4

PROGRAMS: Final = {
    "add and transpose": """
fused {
  p = f32[6,512,4096] parameter(0)
  q = f32[6,4096,512] parameter(1)
  t = f32[6,512,4096] transpose(q), dimensions={0,2,1}
  ROOT a = f32[6,512,4096] add(p, t)
}
ENTRY e {
  p = f32[6,512,4096] parameter(0)
  q = f32[6,4096,512] parameter(1)
  ROOT f = f32[6,512,4096] fusion(p, q), kind=kLoop, calls=fused
}""",
    "rows of 4,095 elements": """
ENTRY e {
  p = f32[3072,4097] parameter(0)
  ROOT s = f32[3072,4095] slice(p), slice={[0:3072], [1:4096]}
}""",
    "reverse and pad": """
fused {
  p = bf16[6,512,4090] parameter(0)
  z = bf16[] constant(0)
  r = bf16[6,512,4090] reverse(p), dimensions={2}
  ROOT a = bf16[6,512,4096] pad(r, z), padding=0_0x0_0x3_3
}
ENTRY e { p = bf16[6,512,4090] parameter(0)
  ROOT f = bf16[6,512,4096] fusion(p), kind=kLoop, calls=fused
}""",
}


def fastest(action: Callable[[], object]) -> float:
    """Return the least processor time in milliseconds of several runs."""
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        action()
        times.append((time.process_time() - start) * 1000)
    return min(times)


def maps(root: hlo.Instruction) -> None:
    """Compose the maps from threads to positions in memory."""
    assert isinstance(root.shape, hlo.Shape)
    schedule = indexing.thread_map(root.shape, threads=THREADS, unroll=UNROLL)
    answer = indexing.output_to_input(root, exact=True)
    for operand, own in zip(answer.operands, answer.maps, strict=True):
        assert isinstance(operand.shape, hlo.Shape)
        for m in own:
            schedule.then(m).then(physical_map(operand.shape)).simplify()


def main() -> None:
    """Print a line for each program."""
    for name, text in PROGRAMS.items():
        root = hlo.parse(text).entry.root
        own = fastest(partial(indexing.access, root, THREADS, UNROLL))
        composed = fastest(partial(maps, root))
        verdict = "" if own < TARGET else f"  above {TARGET:.0f} ms"
        print(f"{name:24} {own:7.1f} ms  {own / composed:5.1f} x maps{verdict}")


if __name__ == "__main__":
    main()
