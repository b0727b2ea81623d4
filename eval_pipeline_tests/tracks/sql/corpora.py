"""The hostile and the harmless statements of `golden/`."""

from dataclasses import dataclass

from eval_pipeline_tests.goldens import golden


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a corpus."""

    dialect: str
    kind: str
    sql: str

    def __str__(self) -> str:
        return f"{self.dialect}: {self.sql}"


def load_corpus(name: str) -> list[Statement]:
    """The statements of a file in `golden/`."""
    return [
        Statement(group["dialect"], group["kind"], _unescaped(line))
        for group in golden(name)
        for line in group["statements"].splitlines()
        if line.strip()
    ]


def _unescaped(line: str) -> str:
    return line.replace("\\n", "\n").replace("\\t", "\t").replace("\\u00a0", "\u00a0")
