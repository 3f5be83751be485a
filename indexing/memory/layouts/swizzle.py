"""`Swizzle`: a permutation of addresses that XORs bits, as a matrix over F2.

An XOR of bits is not affine.  It is linear over F2, the field of two elements: the bits of the new
address are sums modulo 2 of bits of the old one.  A layout keeps this matrix beside its affine
part.  `Swizzle.expr` writes it in a map, where each changed bit costs one ``mod 2`` of a sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_, xor
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

import indexing.methods as methods
from hlo.arguments import checked, checked_constructor, integer, wrong_argument
from simplifier.linear import Expr
from simplifier.unknown import Unknown

MAX_BITS: Final = 62
"""Limit on the bits of an address that a swizzle reads or writes: addresses are 64-bit integers."""


@checked_constructor
@dataclass(frozen=True, slots=True)
class Swizzle:
    """A linear function of the low bits of an address; higher bits stay as they are.

    Attributes:
        columns: the columns of the matrix over F2: ``columns[i]`` is the image of ``2**i``.
            Highest bits that stay as they are, and that no other bit changes, are dropped.

    Raises:
        ValueError: the matrix is not square: an image has more bits than there are columns.

    >>> swizzle = Swizzle.xor(bits=2, base=0, shift=3)
    >>> swizzle.columns, swizzle(0b11010)
    ((1, 2, 4, 9, 18), 25)
    >>> print(swizzle)
    Sw<2,0,3>
    """

    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        columns = tuple([integer("Swizzle", "columns", column) for column in self.columns])
        count = len(columns)
        if count > MAX_BITS:
            raise ValueError(f"a swizzle of {count} bits: at most {MAX_BITS} are supported")
        wide = [column for column in columns if not 0 <= column < 1 << count]
        if wide:
            raise ValueError(
                f"the matrix of a swizzle is square: with {count} columns, the image {wide[0]} is "
                f"not in [0, {(1 << count) - 1}]"
            )
        while columns and columns[-1] == 1 << (len(columns) - 1) > _union(columns[:-1]):
            columns = columns[:-1]
        object.__setattr__(self, "columns", columns)

    @classmethod
    def xor(cls, bits: int, base: int, shift: int) -> Swizzle:
        """Return CuTe's ``Swizzle<bits, base, shift>``.

        ``x ^ ((x >> shift) & mask)`` with `bits` ones from bit `base` in the mask.  A negative
        shift moves bits to the left: the mask then starts at ``base - shift``.

        Raises:
            ValueError: `bits` or `base` is negative; or ``abs(shift) < bits``, so that the bits
                read and written overlap.
        Source: CUTLASS ``include/cute/swizzle.hpp``.

        >>> [Swizzle.xor(1, 0, 1)(x) for x in range(8)]
        [0, 1, 3, 2, 4, 5, 7, 6]
        """
        bits, base, shift = [
            integer("Swizzle.xor", name, value)
            for name, value in (("bits", bits), ("base", base), ("shift", shift))
        ]
        if bits < 0 or base < 0:
            raise ValueError(f"Sw<{bits},{base},{shift}>: the first two numbers are not negative")
        if abs(shift) < bits:
            raise ValueError(
                f"Sw<{bits},{base},{shift}>: the shift {shift} is less than the {bits} bits, so "
                "the bits read and written overlap"
            )
        count = bits + base + abs(shift) if bits else 0
        if count > MAX_BITS:
            raise ValueError(
                f"Sw<{bits},{base},{shift}> has {count} bits: at most {MAX_BITS} are supported"
            )
        columns = [1 << i for i in range(count)]
        for i in range(base, base + bits):
            source, target = (i + shift, i) if shift > 0 else (i, i - shift)
            columns[source] ^= 1 << target
        return cls(tuple(columns))

    @classmethod
    def from_matrix(cls, matrix: Sequence[Sequence[int]]) -> Swizzle:
        """Return the swizzle whose bit ``i`` is ``Σ_j matrix[i][j] · bit j  (mod 2)``.

        Raises:
            ValueError: the matrix is not square, or an element is not 0 or 1.

        >>> print(Swizzle.from_matrix([[1, 1], [0, 1]]))
        Sw<1,0,1>
        """
        given = np.asarray(matrix)
        if given.dtype.kind not in "iub" and given.size:
            raise wrong_argument("Swizzle.from_matrix", "matrix", Sequence[Sequence[int]], matrix)
        is_square = given.ndim == 2 and given.shape[0] == given.shape[1]
        if given.shape != (0,) and not is_square:
            raise ValueError(f"`matrix` must be square, not of shape {list(given.shape)}")
        if not np.isin(given, (0, 1)).all():
            raise ValueError("the elements of `matrix` must be 0 and 1")
        rows = given.astype(int).reshape(len(given), -1)
        return cls(tuple([sum(int(bit) << i for i, bit in enumerate(row)) for row in rows.T]))

    @property
    def matrix(self) -> NDArray[np.uint8]:
        """The matrix: row ``i`` has the bits that bit ``i`` of the new address is the sum of.

        >>> Swizzle.xor(1, 0, 1).matrix.tolist()
        [[1, 1], [0, 1]]
        """
        count = len(self.columns)
        rows = [[column >> i & 1 for column in self.columns] for i in range(count)]
        return np.array(rows, np.uint8).reshape(count, count)

    @property
    def parameters(self) -> tuple[int, int, int] | None:
        """The numbers of CuTe's ``Swizzle<bits, base, shift>``; `None` if it has another form.

        >>> Swizzle.xor(bits=2, base=0, shift=3).parameters
        (2, 0, 3)
        >>> Swizzle((2, 1)).parameters  # exchanges two bits
        """
        changed = [(i, c ^ (1 << i)) for i, c in enumerate(self.columns) if c != 1 << i]
        if not changed:
            return 0, 4, 3  # CuTe's name of the identity
        (first, target) = changed[0]
        shift = first - (target.bit_length() - 1)
        bits, base = len(changed), min(first, first - shift)
        if base < 0 or abs(shift) < bits or Swizzle.xor(bits, base, shift) != self:
            return None
        return bits, base, shift

    def __str__(self) -> str:
        if self.parameters is None:
            return f"F2[{','.join(map(str, self.columns))}]"
        return "Sw<{},{},{}>".format(*self.parameters)

    @overload
    def __call__(self, address: int) -> int: ...
    @overload
    def __call__(self, address: NDArray[Any]) -> NDArray[np.int64]: ...
    def __call__(self, address: int | NDArray[Any]) -> int | NDArray[np.int64]:
        """Return the new address of an address, or of each address of an integer array.

        >>> Swizzle.xor(1, 0, 1)(np.arange(4)).tolist()
        [0, 1, 3, 2]
        """
        if isinstance(address, np.ndarray):
            if address.dtype.kind not in "iu":
                raise wrong_argument("Swizzle", "address", int, address)
            given = address.astype(np.int64)
            images = given.copy()
            for i, column in enumerate(self.columns):
                if column != 1 << i:
                    images ^= (given >> i & 1) * (column ^ (1 << i))
            return images
        value = integer("Swizzle", "address", address)
        low = (1 << len(self.columns)) - 1
        set_bits = (column for i, column in enumerate(self.columns) if value >> i & 1)
        return reduce(xor, set_bits, value & ~low)

    @checked
    def expr(self, address: Expr) -> Expr:
        """Return the new address as an expression: a changed bit is a sum of bits, ``mod 2``.

        >>> from indexing.maps import dims
        >>> d0, d1 = dims((2, 2))
        >>> print(Swizzle.xor(bits=1, base=0, shift=2).expr(d0 * 4 + d1))
        d0 * 4 + (d0 + d1) mod 2
        """
        count = len(self.columns)
        result = address // (1 << count) * (1 << count)
        for i in range(count):
            summands = [j for j, column in enumerate(self.columns) if column >> i & 1]
            bits = sum((address // (1 << j) % 2 for j in summands), Expr({}, 0))
            result += (bits if len(summands) == 1 else bits % 2) * (1 << i)
        return result

    @checked
    def plot(
        self,
        columns: int | None = None,
        backend: methods.Backend = "svg",
        theme: methods.Theme = "auto",
    ) -> Any:
        """Return a picture of the new address of each address, in row-major order.

        Args:
            columns: the number of addresses in a row; by default, those that one XOR rearranges.
            backend, theme: as in `Answer.plot`.
        Returns:
            A `Drawing`.
        Raises:
            ImportError: matplotlib is not installed.
            ValueError: `columns` is less than 1.

        >>> Swizzle.xor(2, 0, 3).plot()
        <drawing of 'swizzle Sw<2,0,3>'>
        """
        return methods.plot_swizzle(self, columns, backend, theme)

    @checked
    def then(self, second: Swizzle) -> Swizzle:
        """Return the composition ``x -> second(self(x))``.

        >>> swizzle = Swizzle.xor(2, 0, 3)
        >>> swizzle.then(swizzle) == Swizzle(())
        True
        """
        count = max(len(self.columns), len(second.columns))
        return Swizzle(tuple([second(self(1 << i)) for i in range(count)]))

    def inverse(self) -> Swizzle | Unknown:
        """Return the inverse; `Unknown` if two addresses have the same image.

        >>> print(Swizzle((2, 1)).inverse(), Swizzle((1, 1)).inverse(), sep=" | ")
        F2[2,1] | the swizzle F2[1,1] is singular: it maps address 3 to 0
        """
        images = [(column, 1 << i) for i, column in enumerate(self.columns)]
        inverse: dict[int, int] = {}
        for i in range(len(images)):
            pivot = next((k for k in range(i, len(images)) if images[k][0] >> i & 1), None)
            if pivot is None:
                return Unknown(
                    f"the swizzle {self} is singular: it maps address {self._in_kernel()} to 0"
                )
            images[i], images[pivot] = images[pivot], images[i]
            image, preimage = images[i]
            for k, (other, origin) in enumerate(images):
                if k != i and other >> i & 1:
                    images[k] = other ^ image, origin ^ preimage
        inverse = dict(images)
        return Swizzle(tuple([inverse[1 << i] for i in range(len(images))]))

    def _in_kernel(self) -> int:
        """A nonzero address that a singular matrix maps to 0."""
        reduced: dict[int, tuple[int, int]] = {}  # by the highest bit of the image
        for i, column in enumerate(self.columns):
            image, origin = column, 1 << i
            while image and image.bit_length() in reduced:
                other, preimage = reduced[image.bit_length()]
                image, origin = image ^ other, origin ^ preimage
            if not image:
                return origin
            reduced[image.bit_length()] = image, origin
        raise AssertionError("the matrix is regular")


def _union(values: Iterable[int]) -> int:
    return reduce(or_, values, 0)
