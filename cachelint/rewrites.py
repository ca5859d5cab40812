"""The rewrites of a crop, as text: remove n, back to k, guarded. What they mean is DESIGN's; rules choose."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from cachelint.contracts.crop import crop as crop_contract
from cachelint.contracts.crop import mask_of
from cachelint.flow.events import Crop, Made, Member
from cachelint.flow.numbers import Range
from cachelint.flow.spans import Span
from cachelint.rule import Rewrite

_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer)


@dataclass(frozen=True, slots=True)
class CropText:
    """The source of a crop call, taken apart. statement: the span of the whole statement, where it is one."""

    event: Crop
    receiver: str
    argument: str
    call: Span
    statement: Span | None
    indent: str
    newline: str
    unit_indent: str

    @staticmethod
    def of(event: Crop) -> CropText | None:
        """The parts, None where the call's shape hides them."""
        if event.receiver is None or event.argument is None:
            return None
        unit = event.unit
        source = unit.module.source
        statement, indent = _own_statement(event)
        return CropText(
            event,
            unit.text(event.receiver),
            _operand(unit.text(event.argument), event.argument),
            unit.span(event.node),
            statement,
            indent,
            source.newline,
            unit.tree.default_indent,
        )

    @property
    def repeatable(self) -> bool:
        """Whether the receiver can be written twice: it is made of names, attributes and constant items."""
        return _is_plain(self.event.receiver)

    @property
    def keeps_comments(self) -> bool:
        """Whether a rewrite of the whole statement loses no comment."""
        whole = self.event.unit.text(self.event.node)
        return whole.count("#") == self.argument.count("#")

    def replace_argument(self, text: str) -> tuple[tuple[Span, str], ...]:
        """The edit that puts `text` in place of the argument, keyword and all."""
        node = self.event.node
        assert isinstance(node, cst.Call)
        return ((self.event.unit.span(node.args[0]), text),)

    def guard(self, name: str, expression: str) -> tuple[tuple[Span, str], ...]:
        """The edit to `if (name := expression) > 0:` with the crop by `-name` under it."""
        assert self.statement is not None
        condition = f"if ({name} := {expression}) > 0:" if expression else f"if {name} > 0:"
        body = f"{self.indent}{self.unit_indent}{self.receiver}.crop(-{name})"
        return ((self.statement, f"{condition}{self.newline}{body}"),)

    def fresh_name(self, wanted: str) -> str:
        """A name that the unit does not use."""
        text = self.event.unit.tree.code
        name, number = wanted, 1
        while name in text:
            number += 1
            name = f"{wanted}_{number}"
        return name


def _operand(text: str, node: cst.BaseExpression) -> str:
    return text if isinstance(node, _ATOMS) or node.lpar else f"({text})"


def _is_plain(node: cst.BaseExpression | None) -> bool:
    if isinstance(node, cst.Name):
        return True
    if isinstance(node, cst.Attribute):
        return _is_plain(node.value)
    if isinstance(node, cst.Subscript) and len(node.slice) == 1:
        index = node.slice[0].slice
        plain = isinstance(index, cst.Index) and isinstance(index.value, (cst.SimpleString, cst.Integer, cst.Name))
        return plain and _is_plain(node.value)
    return False


def _own_statement(event: Crop) -> tuple[Span | None, str]:
    """The span of the call's statement and its indentation, where the call is a statement on lines of its own."""
    unit = event.unit
    expression = unit.parent(event.node)
    if not isinstance(expression, cst.Expr):
        return None, ""
    line = unit.parent(expression)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None, ""
    if expression.semicolon is not cst.MaybeSentinel.DEFAULT:
        return None, ""
    span = unit.span(expression)
    before = unit.module.source.lines[span.row - 1][: span.column]
    return (span, before) if not before.strip() else (None, "")


def positive_crop(event: Crop, releases: int) -> Rewrite | None:
    """The rewrite of a crop whose argument says how much is kept.

    A where what is removed is known, B where the cache is known to have grown since, else C.
    """
    parts = CropText.of(event)
    if parts is None or event.amount is None or not parts.repeatable:
        return None if parts is None else _hidden_receiver(parts)
    wipes = bool(mask_of(crop_contract("full", "zero", releases), "wipes"))
    taken = event.amount.taken_range
    removed = _removed(parts)
    if removed is not None:
        return _remove(parts, removed, taken, wipes)
    if taken.lo is not None and taken.lo >= (1 if wipes else 0):
        text = f"{parts.argument} - {parts.receiver}.get_seq_length()"
        return Rewrite("safe", "Count what is removed: back to the earlier length", parts.replace_argument(text))
    return _guarded(parts, wipes)


def _hidden_receiver(parts: CropText) -> Rewrite:
    sketch = "`if (excess := cache.get_seq_length() - kept) > 0: cache.crop(-excess)`"
    return Rewrite("display", f"Name the cache first, then {sketch}")


def _removed(parts: CropText) -> str | None:
    """The text of n where the argument is the length minus n."""
    event = parts.event
    amount, node = event.amount, event.argument
    if amount is None:
        return None
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Subtract):
        left = event.unit.text(node.left)
        is_length = left == f"{parts.receiver}.get_seq_length()" or event.names.get(event.cache.length) == left
        if is_length:
            return _operand(event.unit.text(node.right), node.right)
    constant = amount.taken.constant
    if constant is not None and constant > 0:
        return str(constant)
    return event.names.get(amount.taken)


def _remove(parts: CropText, removed: str, taken: Range, wipes: bool) -> Rewrite:
    message = f"Count what is removed: `crop(-{removed})`"
    if taken.lo is not None and taken.lo >= (1 if wipes else 0):
        return Rewrite("safe", message, parts.replace_argument(f"-{removed}"))
    if parts.statement is not None and parts.keeps_comments:
        if removed.isidentifier():
            return Rewrite("safe", f"{message}, unless that is nothing", parts.guard(removed, ""))
        name = parts.fresh_name("removed")
        return Rewrite("safe", f"{message}, unless that is nothing", parts.guard(name, removed))
    return Rewrite("unsafe", message, parts.replace_argument(f"-{removed}"))


def _guarded(parts: CropText, wipes: bool) -> Rewrite:
    amount = parts.event.amount
    assert amount is not None
    sign_known = amount.range.lo is not None and amount.range.lo >= 0
    length = f"{parts.receiver}.get_seq_length()"
    if parts.statement is not None and parts.keeps_comments:
        name = parts.fresh_name("excess")
        edits = parts.guard(name, f"{length} - {parts.argument}")
        message = "Count what is removed, and only where the cache is longer than what is kept"
        return Rewrite("safe" if sign_known else "unsafe", message, edits)
    bounded = f"min({parts.argument} - {length}, 0)"
    message = "Count what is removed, and only where the cache is longer than what is kept"
    if wipes:
        return Rewrite("display", f"{message}: `{bounded}`, but not where that is 0")
    return Rewrite("safe" if sign_known else "unsafe", message, parts.replace_argument(bounded))


def zero_crop(event: Crop) -> Rewrite | None:
    """The rewrite of a crop that counts what is removed, which can be nothing: a guard around it."""
    parts = CropText.of(event)
    if parts is None:
        return None
    message = "Crop only where something is removed"
    node = event.argument
    if parts.statement is None or not parts.keeps_comments:
        return Rewrite("display", f"{message}: put the call under `if removed > 0:`")
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        removed = event.unit.text(node.expression)
        if removed.isidentifier():
            return Rewrite("safe", message, parts.guard(removed, ""))
        if node.expression.lpar:
            removed = removed[1:-1]
        return Rewrite("safe", message, parts.guard(parts.fresh_name("removed"), removed))
    if isinstance(node, cst.Name):
        condition = f"if {node.value} < 0:"
        body = f"{parts.indent}{parts.unit_indent}{event.unit.text(event.node)}"
        return Rewrite("safe", message, ((parts.statement, f"{condition}{parts.newline}{body}"),))
    name = parts.fresh_name("change")
    condition = f"if ({name} := {event.unit.text(node) if node else ''}) < 0:"
    body = f"{parts.indent}{parts.unit_indent}{parts.receiver}.crop({name})"
    return Rewrite("safe", message, ((parts.statement, f"{condition}{parts.newline}{body}"),))


def positional(event: Crop) -> Rewrite | None:
    """The rewrite of a keyword argument to a positional one, which every release takes."""
    parts = CropText.of(event)
    if parts is None or event.argument is None:
        return None
    text = event.unit.text(event.argument)
    return Rewrite("safe", "Pass the argument by position", parts.replace_argument(text))


def length_call(event: Member, *, sure: bool) -> Rewrite | None:
    """The rewrite of a removed name of the length to `get_seq_length()`; `sure` that it means the same.

    `get_usable_length(n, i)` asked for the length of layer `i`, which differs from that of the first while a forward
    runs; so the index is kept.
    """
    unit, node = event.unit, event.node
    if not isinstance(node, cst.Attribute):
        return None
    whole = unit.parent(node)
    call = whole if isinstance(whole, cst.Call) and whole.func is node else node
    if call is node and event.name == "get_usable_length":
        return None
    layer = ""
    if event.name == "get_usable_length":
        assert isinstance(call, cst.Call)
        if len(call.args) > 2 or any(arg.star or arg.keyword for arg in call.args):
            return None
        layer = unit.text(call.args[1].value) if len(call.args) == 2 else ""
    text = f"{unit.text(node.value)}.get_seq_length({layer})"
    return Rewrite("safe" if sure else "unsafe", "Ask `get_seq_length()`", ((unit.span(call), text),))


def layer_tensor(event: Member, tensor: str) -> Rewrite | None:
    """The rewrite of `cache.key_cache[i]` to `cache.layers[i].keys`."""
    unit, node = event.unit, event.node
    whole = unit.parent(node)
    if not isinstance(node, cst.Attribute) or not isinstance(whole, cst.Subscript) or whole.value is not node:
        return None
    index = unit.text(whole)[len(unit.text(node)) :]
    if len(whole.slice) != 1 or not isinstance(whole.slice[0].slice, cst.Index):
        return None
    if unit.text(node.value) == "self":
        # A class of its own keeps its own lists, which the library's layers do not know.
        return None
    text = f"{unit.text(node.value)}.layers{index}.{tensor}"
    stored = isinstance(unit.parent(whole), (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Del))
    return Rewrite("unsafe" if stored else "safe", f"Use the layer's `{tensor}`", ((unit.span(whole), text),))


def data_constructor(event: Member) -> Rewrite | None:
    """The rewrite of `DynamicCache.from_legacy_cache(data)` to `DynamicCache(data)`."""
    unit, node = event.unit, event.node
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or len(node.args) != 1:
        return None
    if unit.text(node.func.value).rpartition(".")[2] != "DynamicCache":
        # What a class derived from it takes is not known, and other caches take no data.
        return None
    return Rewrite("safe", "Pass the data to the constructor", ((unit.span(node.func), unit.text(node.func.value)),))


def config_keyword(event: Made) -> Rewrite:
    """The rewrite of `DynamicCache(config)` to `DynamicCache(config=config)`."""
    unit, node = event.unit, event.node
    assert isinstance(node, cst.Call)
    text = f"config={unit.text(node.args[0].value)}"
    return Rewrite("safe", "Name the argument", ((unit.span(node.args[0]), text),))
