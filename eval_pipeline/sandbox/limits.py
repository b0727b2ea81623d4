"""Limits on what a snippet of model-written code may use."""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one snippet (docs/sandbox.md), and the packages that it may import beside those of the pipeline.

    Attributes:
        wall_s: seconds from its start to its result.
        memory_bytes: address space in addition to that of the idle zygote.
        code_bytes: size of the snippet.
        output_bytes: how much it may print to standard output and error together.
        result_bytes: size of its result as JSON.
        scratch_bytes, scratch_files: limits of its scratch folder, which is emptied afterwards; the former also limits
            each file.
        threads: number of simultaneous threads.
        packages: folder of further packages (`layers.py`), read-only; empty for none.
        snippets_per_zygote: after so many snippets a zygote is replaced; after a violation at once.
    """

    wall_s: float = 10.0
    memory_bytes: int = 1024 * MIB
    code_bytes: int = MIB
    output_bytes: int = MIB
    result_bytes: int = 16 * MIB
    scratch_bytes: int = 64 * MIB
    scratch_files: int = 10_000
    threads: int = 64
    snippets_per_zygote: int = 500
    packages: str = ""
