"""Functions that the workers of a cluster compute in tests."""

import os
import signal
import time

POISON = 7


def double(number: int) -> int:
    return 2 * number


def double_slowly(number: int) -> int:
    time.sleep(0.03)
    return 2 * number


def double_or_die(number: int) -> int:
    """Kill the worker of the poisonous number."""
    if number == POISON:
        os.kill(os.getpid(), signal.SIGKILL)
    return double_slowly(number)


def double_or_fail(number: int) -> int:
    if number == POISON:
        raise ValueError("seven")
    return 2 * number


def length(text: bytes) -> int:
    return len(text)
