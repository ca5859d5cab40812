"""The arguments of a call as the interpreter has evaluated them."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from cachelint.flow.values import Value


@dataclass(slots=True)
class Arguments:
    """The evaluated arguments of a call. hidden: `*args` or `**kwargs` may pass more than is listed."""

    args: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    nodes: list[cst.Arg] = field(default_factory=list)
    hidden: bool = False
    extra: list[Value] = field(default_factory=list)

    def get(self, index: int, name: str) -> Value | None:
        """The argument by position or name."""
        if index < len(self.args):
            return self.args[index]
        return self.keywords.get(name)

    def all(self) -> list[Value]:
        """Everything that is passed."""
        return [*self.args, *self.keywords.values(), *self.extra]
