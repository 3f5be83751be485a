"""The schedule of a module as a trace for Perfetto: ``report --format perfetto``.

A trace has a slice for each instruction in the order of execution, a counter of the bytes alive in
each memory space, and the lives of the buffers.

Source: "Trace Event Format", of Chrome, which Perfetto reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from hlo.modules.module import Instruction, Module
from indexing.memory.buffers.profile import MemoryProfile, memory_profile
from indexing.memory.movement.amounts import Amount
from indexing.memory.movement.analysis import traffic
from indexing.memory.movement.roofline import Peak
from indexing.memory.movement.traffic_values import InstructionTraffic
from simplifier.unknown import Unknown

SCHEDULE: Final = 1
"""The process of the schedule; those of memory spaces follow."""
STEP: Final = 1000
"""Nanoseconds of a step without peak rates."""


def schedule_trace(module: Module, peak: Peak | None = None) -> dict[str, Any] | Unknown:
    """Return the trace of a module as a value for JSON; `Unknown` if its buffers are unknown.

    Without `peak`, each step takes a microsecond.  With it, an instruction takes its roofline bound
    of all executions, but at least a nanosecond, also if it has no bound.

    Args:
        peak: the peak rates of a device.
    Raises:
        HloError: an instruction is invalid.

    >>> import hlo
    >>> text = "ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] negate(p) }"
    >>> for event in schedule_trace(hlo.parse(text))["traceEvents"]:
    ...     if event["ph"] in "XC":
    ...         print(event["ph"], event["name"], event["ts"], event["args"].get("bytes"))
    X p 0 None
    X r 1 32
    C bytes alive 0 16
    C bytes alive 1 32
    C bytes alive 2 0
    """
    profile = memory_profile(module)
    if isinstance(profile, Unknown):
        return profile
    traffic_of = {each.instruction: each for each in traffic(module).instructions}
    bounds = [_bound_of_executions(traffic_of.get(step), peak) for step in profile.steps]
    steps = [STEP if peak is None else max(bound or 0, 1) for bound in bounds]
    starts = list(accumulate(steps, initial=0))
    is_scheduled = bool(module.header("is_scheduled", False))
    return {
        "displayTimeUnit": "ns",
        "otherData": {
            "file": module.filename,
            "time": "one microsecond a step" if peak is None else "roofline bounds",
            "order": "schedule" if is_scheduled else "text: the module is not scheduled",
        },
        "traceEvents": [
            *_process(SCHEDULE, f"HloModule {module.name}", "schedule"),
            *_slices(profile, traffic_of, starts, bounds),
            *_memory(profile, starts),
        ],
    }


def _bound_of_executions(traffic: InstructionTraffic | None, peak: Peak | None) -> int | None:
    """Return the roofline bound of all executions in nanoseconds; None if it is not known."""
    if peak is None or traffic is None:
        return None
    bound = peak.bound(traffic)
    time = None if isinstance(bound, Unknown) else bound.over(traffic.executions)
    return None if time is None else round(time * 10**9)


def _slices(
    profile: MemoryProfile,
    traffic_of: Mapping[Instruction, InstructionTraffic],
    starts: Sequence[int],
    bounds: Sequence[int | None],
) -> Iterator[dict[str, Any]]:
    """Yield a slice for each step, with what is known about the instruction."""
    for k, step in enumerate(profile.steps):
        details: dict[str, Any] = {
            "opcode": step.opcode,
            "shape": str(step.shape),
            "computation": step.computation.name,
            "step": k,
        }
        if source := step.source:
            details["source"] = str(source)
        if (own := traffic_of.get(step)) is not None:
            figures = {"bytes": own.bytes, "read": own.read, "written": own.written}
            for name, figure in (figures | {"flops": own.flops}).items():
                details[name] = _argument(figure)
            details["executions"] = str(own.executions)
        if bounds[k] is not None:
            details["bound_ns"] = bounds[k]
        duration = _microseconds(starts[k + 1] - starts[k])
        yield _event("X", step.name, SCHEDULE, starts[k]) | {
            "cat": step.opcode,
            "dur": duration,
            "args": details,
        }


def _argument(figure: Amount | int | Unknown) -> int | str:
    """Return an exact number, or the text of a bound, or of a reason."""
    if isinstance(figure, Amount):
        return figure.number if figure.grade == "exact" else str(figure)
    return f"unknown: {figure}" if isinstance(figure, Unknown) else figure


def _memory(profile: MemoryProfile, starts: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the bytes alive in each memory space, where they change, and the lives of buffers."""
    for pid, (space, peak) in enumerate(profile.peaks.items(), SCHEDULE + 1):
        yield from _process(pid, f"memory: {peak.name}", "buffers")
        last = None
        for k, alive in enumerate([*profile.alive_bytes(space), 0]):
            if alive != last:
                arguments = {"bytes": alive}
                yield _event("C", "bytes alive", pid, starts[k]) | {"args": arguments}
            last = alive
        for number, buffer in enumerate(profile.buffers):
            if buffer.space != space:
                continue
            own_arguments: dict[str, Any] = {
                "kind": buffer.kind,
                "bytes": buffer.stored_bytes,
                "padding": buffer.padding,
                "shape": str(buffer.shape),
            }
            for first, end in buffer.life:
                own = {"cat": buffer.kind, "id": f"{number}.{first}"}
                yield _event("b", buffer.name, pid, starts[first]) | own | {"args": own_arguments}
                yield _event("e", buffer.name, pid, starts[end + 1]) | own | {"args": {}}


def _event(phase: str, name: str, pid: int, time: int) -> dict[str, Any]:
    return {"ph": phase, "name": name, "pid": pid, "tid": 1, "ts": _microseconds(time)}


def _process(pid: int, name: str, thread: str) -> Iterator[dict[str, Any]]:
    """Yield the names of a process and of its thread."""
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
    yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": 1, "args": {"name": thread}}


def _microseconds(time: int) -> int | float:
    return time // 1000 if time % 1000 == 0 else time / 1000
