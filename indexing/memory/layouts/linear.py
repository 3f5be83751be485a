"""`LinearLayout`: a layout of Triton, linear over F2, given by the images of powers of two.

The results of a point are the XOR of the bases of its set bits: ``layout(a=5)`` is
``bases["a"][0] ^ bases["a"][2]``, for each output dimension.  All sizes are powers of two.  In
Triton's order of dimensions, the first is the most minor one.

Source: Triton ``include/triton/Tools/LinearLayout.h``; "Linear Layouts: Robust Code Generation of
Efficient Tensor Computation Using F2" (Zhou et al., 2025), section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import indexing.methods as methods
from hlo.arguments import checked, checked_constructor, integer, integers, wrong_argument
from indexing.maps.indexing_map import IndexingMap
from simplifier.atoms import Variable
from simplifier.linear import Expr


@checked_constructor
@dataclass(frozen=True, slots=True)
class LinearLayout:
    """A function between boxes whose sizes are powers of two, linear over F2.

    Attributes:
        inputs: for each input dimension, its name and the results of 1, 2, 4, …: one integer for
            each output dimension.
        outputs: the name and the size of each output dimension.

    Raises:
        ValueError: a name is repeated or no identifier, a size is not a power of two, or a basis
            is outside the sizes.

    >>> bases = {"lane": [[1, 0], [2, 1]], "warp": [[0, 2]]}
    >>> layout = LinearLayout.from_bases(bases, ["row", "col"])
    >>> layout(lane=3, warp=1)
    {'row': 3, 'col': 3}
    >>> print(layout.map)
    (lane, warp) -> (lane, warp * 2 + lane floordiv 2), domain: lane in [0, 3], warp in [0, 1]
    >>> layout.bases["lane"], layout.in_dims, layout.out_dims
    ([[1, 0], [2, 1]], {'lane': 4, 'warp': 2}, {'row': 4, 'col': 4})
    >>> layout.rank, layout.is_injective, layout.is_surjective  # 8 of 16 outputs are reached
    (3, True, False)
    """

    inputs: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]
    outputs: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in (*self.inputs, *self.outputs)]
        for name in names:
            if not name.isidentifier():
                raise ValueError(f"the name of a dimension must be an identifier, not {name!r}")
        for kind in (self.inputs, self.outputs):
            own = [name for name, _ in kind]
            if len({*own}) < len(own):
                raise ValueError(f"dimensions need distinct names, got {own}")
        for name, size in self.outputs:
            if size < 1 or size & (size - 1):
                raise ValueError(f"the size of {name} must be a power of two, not {size}")
        for name, images in self.inputs:
            for i, image in enumerate(images):
                self._check_basis(f"{list(image)} of {name} = {1 << i}", image)

    def _check_basis(self, basis: str, image: tuple[int, ...]) -> None:
        sizes = [size for _, size in self.outputs]
        if len(image) != len(sizes):
            raise ValueError(
                f"the basis {basis} has {len(image)} entries for {len(sizes)} output dimensions"
            )
        if any(not 0 <= value < size for value, size in zip(image, sizes, strict=True)):
            raise ValueError(f"the basis {basis} is outside the output sizes {sizes}")

    @classmethod
    def from_bases(
        cls,
        bases: Mapping[str, Sequence[Sequence[int]]],
        out_dims: Sequence[str] | Mapping[str, int] | None = None,
    ) -> LinearLayout:
        """Return the layout with these bases.

        Args:
            bases: for each input dimension, the results of 1, 2, 4, ….
            out_dims: the names of the output dimensions, with their sizes if they are larger than
                the bases need; ``dim0``, ``dim1``, … if omitted.
        Raises:
            ValueError: see the class; or `out_dims` is omitted and there is no basis to count.

        >>> LinearLayout.from_bases({"a": [[1], [4]]}).out_dims
        {'dim0': 8}
        """
        if not isinstance(bases, Mapping):
            raise wrong_argument(
                "from_bases", "bases", Mapping[str, Sequence[Sequence[int]]], bases
            )
        inputs = tuple([(name, _images(images)) for name, images in bases.items()])
        every = [image for _, images in inputs for image in images]
        names = _names(out_dims, every)
        sizes = []
        for k, name in enumerate(names):
            if isinstance(out_dims, Mapping):
                sizes.append(integer("from_bases", "out_dims", out_dims[name]))
            else:
                largest = max([image[k] for image in every if k < len(image)], default=0)
                sizes.append(1 << largest.bit_length())
        return cls(inputs, tuple(zip(names, sizes, strict=True)))

    @property
    def bases(self) -> dict[str, list[list[int]]]:
        """The results of 1, 2, 4, … for each input dimension, in the form of Triton."""
        return {name: [list(image) for image in images] for name, images in self.inputs}

    @property
    def in_dims(self) -> dict[str, int]:
        """The size of each input dimension."""
        return {name: 1 << len(images) for name, images in self.inputs}

    @property
    def out_dims(self) -> dict[str, int]:
        """The size of each output dimension."""
        return dict(self.outputs)

    def __str__(self) -> str:
        inputs = "; ".join(
            f"{name}: {', '.join(map(str, map(list, images))) or 'size 1'}"
            for name, images in self.inputs
        )
        outputs = ", ".join(f"{name} = {size}" for name, size in self.outputs)
        return f"{inputs or 'no inputs'} -> {outputs or 'no outputs'}"

    def __call__(self, **point: int) -> dict[str, int]:
        """Return the value of each output dimension.

        Raises:
            TypeError: an input dimension has no value, or a name is no input dimension.
            IndexError: a value is outside the size.
        """
        if point.keys() != self.in_dims.keys():
            raise TypeError(f"expected values of {[*self.in_dims]}, got {[*point]}")
        total = [0] * len(self.outputs)
        for name, images in self.inputs:
            value = integer("LinearLayout", name, point[name])
            if not 0 <= value < 1 << len(images):
                raise IndexError(f"{name} = {value} is outside [0, {(1 << len(images)) - 1}]")
            for i, image in enumerate(images):
                if value >> i & 1:
                    total = [a ^ b for a, b in zip(total, image, strict=True)]
        return {name: value for (name, _), value in zip(self.outputs, total, strict=True)}

    @property
    def rank(self) -> int:
        """The rank of the matrix over F2: ``2**rank`` points of the outputs are reached."""
        reduced: dict[int, int] = {}  # by the highest bit
        for _, images in self.inputs:
            for image in images:
                bits = 0
                for value, (_, size) in zip(image, self.outputs, strict=True):
                    bits = bits * size + value
                while bits and bits.bit_length() in reduced:
                    bits ^= reduced[bits.bit_length()]
                if bits:
                    reduced[bits.bit_length()] = bits
        return len(reduced)

    @property
    def is_injective(self) -> bool:
        """True if no two points have the same results."""
        return self.rank == sum(len(images) for _, images in self.inputs)

    @property
    def is_surjective(self) -> bool:
        """True if every point of the outputs is reached."""
        return self.rank == sum(size.bit_length() - 1 for _, size in self.outputs)

    @checked
    def plot(self, backend: methods.Backend = "svg", theme: methods.Theme = "auto") -> Any:
        """Return a picture of the inputs of each element, such as its lane and register.

        Args:
            backend, theme: as in `Answer.plot`.
        Returns:
            A `Drawing`.
        Raises:
            ImportError: matplotlib is not installed.
            ValueError: the layout has more than 65,536 inputs.

        >>> LinearLayout.from_bases({"lane": [[0, 1], [1, 0]], "register": [[0, 2]]}).plot()
        <drawing of 'linear layout'>
        """
        return methods.plot_linear(self, backend, theme)

    @property
    def map(self) -> IndexingMap:
        """The map from the input dimensions to the output dimensions.

        A bit that is the XOR of several bits is their sum ``mod 2``.
        """
        variables = [Variable(name, 0, (1 << len(images)) - 1) for name, images in self.inputs]
        bits = [
            (variable.as_expr() // (1 << i) % 2, image)
            for variable, (_, images) in zip(variables, self.inputs, strict=True)
            for i, image in enumerate(images)
        ]
        results = []
        for k, (_, size) in enumerate(self.outputs):
            total = Expr({}, 0)
            for j in range(size.bit_length() - 1):
                summands = [bit for bit, image in bits if image[k] >> j & 1]
                parity = sum(summands, Expr({}, 0))
                total += (parity % 2 if len(summands) > 1 else parity) * (1 << j)
            results.append(total)
        return IndexingMap.of(variables, results)


def map_of_bases(
    bases: Mapping[str, Sequence[Sequence[int]]],
    out_dims: Sequence[str] | Mapping[str, int] | None = None,
) -> IndexingMap:
    """Return the map of a layout with these bases: see `IndexingMap.from_bases`."""
    return LinearLayout.from_bases(bases, out_dims).map


def _images(images: object) -> tuple[tuple[int, ...], ...]:
    if isinstance(images, str) or not isinstance(images, Sequence):
        raise wrong_argument("from_bases", "bases", Sequence[Sequence[int]], images)
    return tuple([integers("from_bases", "bases", image) for image in images])


def _names(
    out_dims: Sequence[str] | Mapping[str, int] | None, images: Sequence[Sequence[int]]
) -> list[str]:
    if out_dims is None:
        if not images:
            raise ValueError("from_bases: without any basis, `out_dims` must name the outputs")
        return [f"dim{k}" for k in range(len(images[0]))]
    if isinstance(out_dims, str) or not isinstance(out_dims, Sequence | Mapping):
        raise wrong_argument("from_bases", "out_dims", Sequence[str], out_dims)
    names = list(out_dims)
    if any(not isinstance(name, str) for name in names):
        raise wrong_argument("from_bases", "out_dims", Sequence[str], out_dims)
    return names
