"""Bytes that a device sends at most in a collective, as a multiple of those of its operands.

These are the bytes of rings and chains of devices, which no algorithm undercuts.

Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations
in MPICH", 2005.
"""

from __future__ import annotations

from fractions import Fraction


def send_operand(devices: int) -> Fraction:
    """Return 1: in a chain, a device sends its operand, or a partial result, to the next one."""
    return Fraction(1)


def send_other_parts(devices: int) -> Fraction:
    """Return the share of an operand that belongs to the other devices."""
    return Fraction(devices - 1, devices)


def send_to_others(devices: int) -> Fraction:
    """Return the number of other devices: in a ring, a device sends every operand but one."""
    return Fraction(devices - 1)


def reduce_and_gather(devices: int) -> Fraction:
    """Return the share of a ring that reduces parts, and then gathers the reduced parts.

    >>> str(reduce_and_gather(4))
    '3/2'
    """
    return 2 * send_other_parts(devices)
