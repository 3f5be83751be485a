"""Sphinx's links to Python objects, where autodoc does not find them by itself."""

from __future__ import annotations

import builtins
import inspect
import re
from importlib import import_module
from typing import Any, Final

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform

from docs.pages import reference
from docs.pages.related import PACKAGES, resolve

_METHODS: Final = ("indexing.methods", "hlo.methods")


class PlainNames(SphinxPostTransform):  # type: ignore[misc]  # it may not be installed
    """Names that are no links: builtin types of annotations, and parameters in backquotes.

    Otherwise `bytes` would lead to an attribute of some class, and the parameter `ranges` to the
    function of this name.
    """

    default_priority = 5  # before references are resolved

    def run(self, **kwargs: Any) -> None:
        """Replace the references."""
        for node in list(self.document.findall(pending_xref)):
            name = node["reftarget"]
            if node.get("reftype") == "class" and hasattr(builtins, name):
                node.replace_self(nodes.Text(name))
            elif node.get("reftype") == "obj" and name in reference.parameters():
                node.replace_self(node.children[0])


def resolve_reference(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Return the link of a reference to Python, its text alone, or None for a warning.

    Names in backquotes that are not documented are code, not links.  So are exceptions, names of
    other packages, whose documentation is elsewhere, and aliases of types.  Any other class of ours
    must be documented.
    """
    if node.get("refdomain") != "py":
        return None
    name = node["reftarget"]
    value = _value(name, node.get("py:module"))
    target = reference.link_targets().get(value) if _is_documentable(value) else None
    if target is not None:
        domain = env.get_domain("py")
        place = node.get("refdoc", "index")
        return domain.resolve_xref(env, place, app.builder, "obj", target, node, content)
    if node["reftype"] in ("obj", "exc") or name.rpartition(".")[2].startswith("_"):
        return content
    is_ours = getattr(value, "__module__", "").partition(".")[0] in PACKAGES
    return None if is_ours and _is_documentable(value) else content


def is_skipped(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool:
    """Return True for members that Python's own classes have, such as ``tuple.index``."""
    if (getattr(member, "__doc__", None) or "").startswith("Alias for field number"):
        return True
    function = getattr(member, "fget", None) or member
    owner = getattr(function, "__objclass__", None)  # of methods written in C
    module = getattr(function, "__module__", None) or getattr(owner, "__module__", None) or ""
    is_foreign = inspect.isroutine(function) and module.partition(".")[0] not in PACKAGES
    return skip or is_foreign


def without_private(
    app: Any, what: str, name: str, value: Any, options: Any, signature: str | None, result: Any
) -> tuple[str, Any] | None:
    """Return a signature without its private parameters, which only this project passes.

    >>> without_private(None, "", "", None, None, "(a: int = 0, _b: bool = False)", None)
    ('(a: int = 0)', None)
    """
    if not signature or ", _" not in signature:
        return None
    return re.sub(r", _\w+: [\w\[\]. |]+( = [\w()\[\].]+)?", "", signature), result


def keep_returns(
    app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Make a section ``Returns:`` one field: napoleon would read a type before its first colon.

    >>> lines = ["Returns:", "    For each: a map", "    or nothing.", "Raises:"]
    >>> keep_returns(None, "", "", None, None, lines)
    >>> lines
    [':returns: For each: a map', '    or nothing.', '', 'Raises:']
    """
    for number, line in enumerate(lines[:-1]):
        if line == "Returns:":
            lines[number : number + 2] = [f":returns: {lines[number + 1].strip()}"]
            after = number + 1
            while after < len(lines) and lines[after].startswith(" "):
                after += 1
            lines.insert(after, "")
            return


def _is_documentable(value: Any) -> bool:
    return inspect.isclass(value) or inspect.isroutine(value)


def _value(name: str, module: str | None) -> Any:
    """Return the value of a name in an annotation or in a docstring."""
    head, _, last = name.rpartition(".")
    if head == "methods":
        return next((v for m in _METHODS if (v := resolve(m, last)) is not None), None)
    if head:
        try:
            return getattr(import_module(head), last, None)
        except ImportError:
            return None
    if module and (value := resolve(module, name)) is not None:
        return value
    documented = [names[name] for names in reference.public_names().values() if name in names]
    return documented[0] if documented else None
