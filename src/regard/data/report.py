"""What was found wrong while reading: every kind counted, the first lines of each named, nothing dropped in silence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from regard.core.errors import DataError

OnBad = Literal["skip", "refuse"]

NUM_EXAMPLES = 10
"""So many line numbers are kept of each kind."""

KINDS = {
    "encoding": "not UTF-8",
    "control": "with control characters",
    "columns": "with fewer than two columns",
    "empty": "with an empty side",
    "words": "with too many words",
    "tokens": "with too many tokens",
    "unequal": "without a partner in the other file",
}


@dataclass(frozen=True)
class Problem:
    """One ill-formed line: its kind (a key of `KINDS`), where it is, and what exactly is wrong with it."""

    kind: str
    file: str
    line: int
    detail: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line:,}: {self.detail}"


@dataclass
class ReadReport:
    """The account of one reading: `lines` = `pairs` + all `skipped` + `held_out`."""

    lines: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[Problem]] = field(default_factory=dict)
    held_out: int = 0
    """Good lines that went to another part of the corpus."""

    @property
    def pairs(self) -> int:
        """How many pairs came through."""
        return self.lines - sum(self.skipped.values()) - self.held_out

    def add(self, problem: Problem, on_bad: OnBad) -> None:
        """Counts a problem, or raises it where the user wants ill-formed lines refused."""
        if on_bad == "refuse":
            raise DataError(
                f"{problem}. Correct the file, or let such lines be skipped and counted (`--data.on-bad skip`)."
            )
        assert problem.kind in KINDS
        self.skipped[problem.kind] = self.skipped.get(problem.kind, 0) + 1
        examples = self.examples.setdefault(problem.kind, [])
        if len(examples) < NUM_EXAMPLES:
            examples.append(problem)

    def summary(self) -> str:
        """One line, and one more for each kind of ill-formed line."""
        held_out = f", {self.held_out:,} held out for other parts" if self.held_out else ""
        text = [f"{self.pairs:,} pairs of {self.lines:,} lines{held_out}"]
        for kind, count in self.skipped.items():
            examples = self.examples[kind]
            more = ", ..." if count > len(examples) else ""
            numbers = ", ".join(f"{example.line:,}" for example in examples)
            text.append(f"  skipped {count:,} {KINDS[kind]} (line {numbers}{more}); first: {examples[0]}")
        return "\n".join(text)

    def to_json(self) -> dict[str, Any]:
        return {
            "lines": self.lines,
            "pairs": self.pairs,
            "held_out": self.held_out,
            "skipped": dict(self.skipped),
            "examples": {kind: [vars(problem) for problem in found] for kind, found in self.examples.items()},
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ReadReport:
        return cls(
            lines=value["lines"],
            skipped=dict(value["skipped"]),
            examples={kind: [Problem(**problem) for problem in found] for kind, found in value["examples"].items()},
            held_out=value["held_out"],
        )
