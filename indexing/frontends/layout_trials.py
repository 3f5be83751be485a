"""Layouts that spare copies, tried: a program is compiled again with them, and compared."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hlo.arguments import check_argument
from hlo.formats.files import load
from hlo.modules.module import Module
from indexing.frontends.compilation import TIMEOUT, compile_for
from indexing.frontends.lowering import load_jax, lower
from indexing.frontends.request import CompilationRequest, RequestedLayout
from indexing.frontends.targets import Target
from indexing.memory.buffers.array_copies import ArrayCopy, copies
from indexing.memory.buffers.layout_proposals import LayoutProposal, copies_by_end
from indexing.memory.buffers.profile import SpacePeak, memory_profile
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class TriedLayout:
    """A copy after its proposal was tried.

    Attributes:
        copy: the copy, with its proposal, in the program before.
        removed: fewer copies are left between the program and this argument or result, and those of
            the whole program move fewer bytes; copies to another memory space do not count.

    >>> import hlo, indexing
    >>> module = hlo.parse('''ENTRY e {
    ...   p = f32[64,32]{1,0} parameter(0)
    ...   c = f32[64,32]{0,1} copy(p)
    ...   ROOT n = f32[64,32]{0,1} negate(c)
    ... }''')
    >>> tried = indexing.TriedLayout(indexing.copies(module)[0], removed=True)
    >>> tried.copy.instruction.name, str(tried.copy.proposal)
    ('c', 'argument 0, `p`: {0,1} in place of {1,0}')
    """

    copy: ArrayCopy
    removed: bool


@dataclass(frozen=True, slots=True)
class LayoutTrial:
    """A program that was compiled again with the layouts that its copies propose.

    Attributes:
        target: what it was compiled for.
        before, after: the modules; the same if no copy has a proposal for an argument or a result.
        layouts: of arguments and results, with which it was compiled again.
        tried: the copies that have such a proposal, those that move the most bytes first.

    >>> import hlo
    >>> from indexing import LayoutTrial
    >>> module = hlo.parse("ENTRY e { p = f32[3] parameter(0)  ROOT n = f32[3] negate(p) }")
    >>> trial = LayoutTrial("cpu", module, module, layouts=(), tried=())  # no copies
    >>> trial.moved_before, trial.moved_after
    (0, 0)
    >>> trial.peaks_before[0].stored_bytes, trial.peaks_after[0].stored_bytes  # `p` and `n`
    (24, 24)
    """

    target: str
    before: Module
    after: Module
    layouts: tuple[RequestedLayout, ...]
    tried: tuple[TriedLayout, ...]

    @property
    def moved_before(self) -> int:
        """The bytes that copies moved, but those to another memory, in all executions of loops."""
        return _moved_bytes(self.before)

    @property
    def moved_after(self) -> int:
        """The bytes that they move with the new layouts."""
        return _moved_bytes(self.after)

    @property
    def peaks_before(self) -> Mapping[int, SpacePeak]:
        """The peak of each memory space, as `memory_profile` has it; empty if it is unknown."""
        return _peaks(self.before)

    @property
    def peaks_after(self) -> Mapping[int, SpacePeak]:
        """The peaks with the new layouts."""
        return _peaks(self.after)


def try_layouts(
    function: Any,
    /,
    *args: Any,
    target: str,
    timeout: float = TIMEOUT,
    cache: bool = True,
    **kwargs: Any,
) -> LayoutTrial:
    """Compile a function, and again with the layouts that spare its copies.

    Args:
        function, args, kwargs: as in `from_jax`.
        target: what to compile for, such as ``tpu:v5e:2x2``.
        timeout: limit on the seconds of each compilation.
        cache: keep both answers among the user's caches.
    Raises:
        ImportError: jax, or the compiler for the target, is not installed.
        TypeError: `function` is not callable.
        ValueError: the target is unknown.
        CompilationError: XLA does not compile the module for the target in time.
    Source: JAX ``jax.experimental.layout``; ``docs/device_memory.md`` has an example.

    >>> import jax.numpy as jnp
    >>> import indexing
    >>> trial = indexing.try_layouts(lambda x: x.T @ x, jnp.ones((4, 3)), target="cpu")
    >>> trial.tried, trial.moved_before  # XLA:CPU copies nothing here
    ((), 0)
    """
    for name, value in (("target", target), ("timeout", timeout), ("cache", cache)):
        check_argument(try_layouts, name, value)
    load_jax("try_layouts")
    lowering = lower(function, args, kwargs, Target.parse(target).platform)
    request = CompilationRequest("", "", replace(lowering, lowered=None), target, "optimized")
    before = _compile_request(request, timeout, cache)
    return trial_of(before, request, timeout=timeout, uses_cache=cache)


def trial_of(
    before: Module,
    request: CompilationRequest,
    *,
    timeout: float = TIMEOUT,
    uses_cache: bool = True,
) -> LayoutTrial:
    """Compile the program of a module again with the layouts that spare its copies.

    Args:
        before: the module that was compiled for the request, of stage ``optimized``.
        request: the program and its target.
        timeout, uses_cache: as in `compile_for`.
    Raises:
        CompilationError: XLA does not compile it in time.
    """
    proposed = [(copy, own) for copy in copies(before) if (own := _entry_layouts(copy))]
    layouts = tuple(dict.fromkeys([layout for _, own in proposed for layout in own]))
    if not layouts:
        return LayoutTrial(request.target, before, before, (), ())
    after = _compile_request(
        replace(request, layouts=(*request.layouts, *layouts)), timeout, uses_cache
    )
    counts = Counter(own[0][:2] for _, own in proposed)
    left = _copies_at_ends(before)
    left.subtract(_copies_at_ends(after))
    is_less = _moved_bytes(after) < _moved_bytes(before)
    tried = [
        TriedLayout(copy, is_less and left[own[0][:2]] >= counts[own[0][:2]])
        for copy, own in proposed
    ]
    return LayoutTrial(request.target, before, after, layouts, tuple(tried))


def _entry_layouts(copy: ArrayCopy) -> list[RequestedLayout]:
    """Return the layouts of arguments and results that a copy proposes; its own end is first."""
    if not isinstance(copy.proposal, LayoutProposal) or copy.proposal.is_inside:
        return []
    return [
        RequestedLayout(change.place == "result", change.number, str(change.layout))
        for change in copy.proposal.changes
        if change.number is not None
    ]


def _copies_at_ends(module: Module) -> Counter[tuple[bool, int]]:
    """Return the number of copies between the program and each argument and result."""
    counts: Counter[tuple[bool, int]] = Counter()
    for (place, number, _), between in copies_by_end(module).items():
        assert number is not None
        counts[place == "result", number] += len(between)
    return counts


def _moved_bytes(module: Module) -> int:
    return sum(copy.moved for copy in copies(module) if copy.kind != "space")


def _peaks(module: Module) -> Mapping[int, SpacePeak]:
    profile = memory_profile(module)
    return {} if isinstance(profile, Unknown) else profile.peaks


def _compile_request(request: CompilationRequest, timeout: float, uses_cache: bool) -> Module:
    answer = compile_for(request, timeout=timeout, uses_cache=uses_cache)
    try:
        return load(answer.path)
    finally:
        if not uses_cache:
            shutil.rmtree(answer.folder)
