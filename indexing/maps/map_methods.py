"""`MapMethods`: the base of the mixins of `IndexingMap`."""

from __future__ import annotations

import indexing.methods as methods


class MapMethods:
    """A mixin of `IndexingMap`; its methods call implementations in `indexing.methods`."""

    __slots__ = ()

    def _itself(self) -> methods.IndexingMap:
        assert isinstance(self, methods.IndexingMap), "only maps have these methods"
        return self
