"""Units: the slices of a module that libcst reads, with the true positions of their nodes.

libcst is an order of magnitude slower than `ast`, so only the functions and statements that matter are
parsed, each as a slice of whole lines. An indented slice stands under an `if 1:` of its own, which keeps its
columns; the rows are shifted back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, cast

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

from cachelint.flow.spans import Span

if TYPE_CHECKING:
    from cachelint.flow.project import Module


class Unit:
    """Whole lines `start` to `end` of a module (from 1, inclusive) as a libcst tree.

    Raises libcst.ParserSyntaxError where libcst cannot read what `ast` could.
    """

    def __init__(self, module: Module, start: int, end: int) -> None:
        text = "".join(module.source.lines[start - 1 : end])
        indented = text[:1] in (" ", "\t", "\f")
        self.module = module
        self._offset = start - 1 - indented
        self.tree = cst.parse_module("if 1:\n" + text if indented else text)
        body: Sequence[cst.CSTNode] = self.tree.body
        if indented:
            body = cast("cst.If", self.tree.body[0]).body.body
        self.body = body

    @cached_property
    def _wrapper(self) -> MetadataWrapper:
        return MetadataWrapper(self.tree, unsafe_skip_copy=True)

    @cached_property
    def _positions(self) -> Mapping[cst.CSTNode, object]:
        return self._wrapper.resolve(PositionProvider)

    @cached_property
    def _parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        return self._wrapper.resolve(ParentNodeProvider)

    def span(self, node: cst.CSTNode) -> Span:
        """Where `node` stands in the file, parentheses around it not counted."""
        place = self._positions[node]
        return Span(
            place.start.line + self._offset,  # type: ignore[attr-defined]
            place.start.column,  # type: ignore[attr-defined]
            place.end.line + self._offset,  # type: ignore[attr-defined]
            place.end.column,  # type: ignore[attr-defined]
        )

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node around `node`."""
        return self._parents.get(node)

    def text(self, node: cst.CSTNode) -> str:
        """The source of `node` as it stands in the file, with its own parentheses."""
        return self.tree.code_for_node(node)
