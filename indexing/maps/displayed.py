"""`Displayed`: the base of values that notebooks show as HTML."""

from __future__ import annotations

import indexing.methods as methods


class Displayed:
    """A value whose HTML `indexing.views.display` writes."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return methods.html_of(self)
