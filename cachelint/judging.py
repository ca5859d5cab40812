"""From events to diagnostics: the rules judge, and what they find gets its places and its evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from cachelint.contracts.releases import describe
from cachelint.diagnostics import Diagnostic, Edit, Fix, FlowStep, Location, ReleaseEffect
from cachelint.flow.events import Crop, Event, OfCache, Run
from cachelint.flow.spans import Span
from cachelint.flow.values import Step, Trail
from cachelint.rule import Finding, Rewrite, Rule

URL = "https://pypi.org/project/cachelint/#"


def judge(event: Event, rules: Iterable[Rule], releases: int, asks_for: Callable[[str], bool]) -> Iterator[Diagnostic]:
    """What the rules say of an event on the supported releases; `asks_for` tells which codes are asked for."""
    reached = event.releases & releases
    for rule in rules:
        if reached and isinstance(event, rule.judges):
            for finding in rule.check(event, reached):
                if finding.asked and not asks_for(rule.code):
                    continue
                yield _diagnostic(rule, event, finding)


def _diagnostic(rule: Rule, event: Event, finding: Finding) -> Diagnostic:
    span = event.unit.span(event.node)
    return Diagnostic(
        code=rule.code,
        name=rule.name,
        severity=finding.severity,
        message=finding.message,
        path=event.unit.module.path,
        location=_start(span),
        end_location=_end(span),
        fix=_fix(finding.rewrite),
        releases=tuple(ReleaseEffect(describe(p.mask), p.effect, p.detail, p.mask) for p in finding.pieces),
        flow=tuple(_flow(event, finding)),
        noqa_row=span.row,
        url=f"{URL}{rule.code.lower()}",
    )


def _start(span: Span) -> Location:
    return Location(span.row, span.column + 1)


def _end(span: Span) -> Location:
    return Location(span.end_row, span.end_column + 1)


def _fix(rewrite: Rewrite | None) -> Fix | None:
    if rewrite is None:
        return None
    edits = tuple(Edit(text, _start(span), _end(span)) for span, text in rewrite.edits)
    return Fix(rewrite.applicability, rewrite.message, edits)


def _flow(event: Event, finding: Finding) -> Iterator[FlowStep]:
    """The evidence, origin first: the cache, what filled it, the argument, the calls, the place itself."""
    trails: list[Trail | None] = []
    if isinstance(event, OfCache):
        trails = [event.cache.trail, event.cache.filled]
    elif isinstance(event, Run):
        trails = [trail for cache in event.caches for trail in (cache.trail, cache.filled)]
    if isinstance(event, Crop):
        trails.append(event.amount.trail if event.amount else None)
    trails.append(event.calls)
    steps = [step for trail in trails if trail is not None for step in trail.steps()]
    last = Step(event.unit, event.node, "is cropped here" if isinstance(event, Crop) else "is used here")
    shown: dict[tuple[Path, int], FlowStep] = {}
    for step in (*steps, *finding.steps, last):
        path, place = step.unit.module.path, _start(step.unit.span(step.node))
        # One step a line: the later one says more.
        shown[path, place.row] = FlowStep(path, place, step.text)
    end = shown.pop((event.unit.module.path, event.unit.span(event.node).row))
    yield from (*shown.values(), end)
