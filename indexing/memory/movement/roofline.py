"""The roofline bound: the shortest time in which a device can move bytes and do operations.

Source: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model
for multicore architectures", Communications of the ACM 52 (4), 2009.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from hlo.arguments import checked
from hlo.text.names import did_you_mean, similar
from indexing.devices.gpus import GPUS, PROCESSORS, Gpu, gpu
from indexing.devices.tpus import TPUS
from indexing.memory.executions import Executions
from indexing.memory.movement.traffic_values import InstructionTraffic
from indexing.ops.element import Work
from simplifier.unknown import Unknown

Limit: TypeAlias = Literal["memory", "compute"]

_RATE: Final = re.compile(
    r"(?P<number>\d+(?:\.\d*)?|\.\d+) ?(?P<prefix>[kKMGTPE]?)(?P<binary>i?)"
    r"(?P<unit>B|FLOPS|FLOPs|FLOP|flops|flop|F)(?P<rate>/s|ps)?",
    re.ASCII,
)
_MAX_RATE: Final = 10**24


@dataclass(frozen=True, slots=True)
class Peak:
    """The peak rates of a device.

    Attributes:
        bytes: bytes of memory traffic per second, or None.
        flops: operations per second, or None.

    >>> Peak.parse("4.8TB/s,67TF/s")
    Peak(bytes=4800000000000, flops=67000000000000)
    """

    bytes: int | None = None
    flops: int | None = None

    @classmethod
    @checked
    def parse(cls, text: str) -> Peak:
        """Return the rates of a text such as ``4.8TB/s,67TF/s``; one of them may be missing.

        The name of a GPU stands for its rates, as in `of`.

        Raises:
            ValueError: the text has another form; the message says what was expected.

        >>> Peak.parse("H100") == Peak.of("H100")
        True
        """
        if text[:1].isalpha():
            return cls.of(text)
        rates: dict[str, int] = {}
        for word in text.split(","):
            kind, rate = _rate(word.strip())
            if kind in rates:
                raise ValueError(f"{word.strip()!r} is the second rate of {kind}")
            rates[kind] = rate
        return cls(rates.get("bytes"), rates.get("flops"))

    @classmethod
    @checked
    def of(cls, device: str | Gpu) -> Peak:
        """Return the peak rates of a GPU, for float32 without matrix units, or of a TPU.

        Those of a TPU are its matrix units' for bfloat16.

        Raises:
            ValueError: the device, or its rates, are not known.

        >>> Peak.of("A100"), Peak.of("v5e")
        (Peak(bytes=2039040000000, flops=19491840000000), \
Peak(bytes=819000000000, flops=197000000000000))
        """
        if isinstance(device, str) and device in TPUS:
            return cls(TPUS[device].memory_bandwidth, TPUS[device].flops)
        known = ", ".join([*PEAKS, *TPUS])
        if isinstance(device, str) and device not in GPUS:
            question = did_you_mean(similar(device, [*PEAKS, *TPUS]))
            message = f"unknown device {device!r}: expected one of {known}"
            raise ValueError(f"{message}; {question}" if question else message)
        model = gpu(device)
        if model.name not in PEAKS:
            raise ValueError(
                f"the peak rates of {model.name} are not known, only those of {known}: pass the "
                "rates, such as 4.8TB/s,67TF/s"
            )
        return PEAKS[model.name]

    def bound(self, traffic: InstructionTraffic) -> RooflineBound | Unknown:
        """Return the shortest time of one execution of an instruction.

        The bytes are those of the default memory, with padding: on TPUs those of HBM.  A rate that
        is missing limits nothing.  Transcendental functions are not counted.  A fusion that
        evaluates few elements of its values does only the operations for these.
        """
        moved, flops = traffic.stored, traffic.flops
        if isinstance(traffic.evaluated, Work) and not isinstance(flops, Unknown):
            flops = min(flops, traffic.evaluated.flops)
        times: list[tuple[Fraction, Limit]] = []
        if self.bytes is not None:
            if isinstance(moved, Unknown):
                return moved
            times.append((Fraction(moved.number, self.bytes), "memory"))
        if self.flops is not None:
            if isinstance(flops, Unknown):
                return flops
            times.append((Fraction(flops, self.flops), "compute"))
        seconds, limit = max(times, key=lambda each: each[0])
        is_upper = limit == "memory" and not isinstance(moved, Unknown) and moved.grade == "may"
        return RooflineBound(seconds, limit, not is_upper)


PEAKS: Final = {
    name: Peak(each.memory_bandwidth, each.flops)
    for name, each in PROCESSORS.items()
    if name != "MI300"  # XLA's bandwidth of it is not that of AMD's data sheet
}
"""The peak rates of GPUs of `indexing.devices.gpus`: bytes of device memory, and float32 operations
of all FP32 units, where a fused multiply-add is two."""


def peak_rates(peak: Peak | str | None) -> Peak | None:
    """Return peak rates that are given as such or as a text, as `Peak.parse` reads it.

    Raises:
        ValueError: the text has another form.

    >>> peak_rates("67TF/s"), peak_rates(None)
    (Peak(bytes=None, flops=67000000000000), None)
    """
    return Peak.parse(peak) if isinstance(peak, str) else peak


@dataclass(frozen=True, slots=True)
class RooflineBound:
    """The roofline bound of one execution of an instruction.

    Attributes:
        seconds: the time.
        limit: the rate that determines it.
        is_exact: False if the bytes are an upper bound, so that the time may be shorter.
    """

    seconds: Fraction
    limit: Limit
    is_exact: bool

    def over(self, executions: Executions) -> Fraction | None:
        """Return the time of all executions; None if their number is not known."""
        return None if executions.number is None else self.seconds * executions.number


def _rate(word: str) -> tuple[str, int]:
    match = _RATE.fullmatch(word)
    if match is None:
        known = ", ".join([*PEAKS, *TPUS])
        raise ValueError(
            f"{word!r} is not a rate: write bytes per second as 4.8TB/s, operations per second as "
            f"67TF/s, or both with a comma between them; or name a device: {known}"
        )
    kind = "bytes" if match["unit"] == "B" else "flops"
    power = " KMGTPE".index(match["prefix"].upper() or " ")
    if match["binary"] and (kind == "flops" or not power):
        raise ValueError(f"{word!r}: binary prefixes such as Ti are prefixes of B")
    rate = Fraction(match["number"]) * (1024 if match["binary"] else 1000) ** power
    if not 1 <= rate <= _MAX_RATE:
        raise ValueError(f"{word!r} is not between 1 and 10^24 per second")
    return kind, int(rate)
