"""What a snippet of model-written code may use."""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one snippet (docs/sandbox.md).

    Attributes:
        wall_s: seconds from its start to its result.
        memory_bytes: address space above that of the idle zygote.
        code_bytes: the snippet itself.
        output_bytes: what it may print, standard output and error together.
        result_bytes: its result as JSON.
        scratch_bytes, scratch_files: its scratch folder, wiped after it; also the size of each file.
        threads: at the same time.
        snippets_per_zygote: after so many a zygote is replaced; a violation replaces it at once.
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
