"""A function that is imported when it is first called, so that a process loads only the code that it uses."""

from dataclasses import dataclass
from typing import Any

from eval_pipeline.core.installed.plugins import load_place


@dataclass(frozen=True, slots=True)
class Later:
    """Calls the function at a place, `module:name`. Fingerprints take it for the function itself."""

    place: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Imports the function, and returns what it returns."""
        return load_place(self.place)(*args, **kwargs)
