"""Which models answered an evaluation, in the providers' own words, and whether others did than the night before."""

from typing import NamedTuple, Self

import pyarrow as pa

MODEL, FINGERPRINT = "served_model", "system_fingerprint"


class Served(NamedTuple):
    """Who answered; nothing where the provider does not tell, or an older version did not keep it.

    Attributes:
        models: names of models, sorted.
        fingerprints: of the systems that ran them, sorted.
    """

    models: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()

    @classmethod
    def of(cls, attempts: pa.Table) -> Self:
        """From the columns `served_model` and `system_fingerprint` of attempts."""
        return cls(*(tuple(sorted(filter(None, attempts[name].unique().to_pylist()))) for name in (MODEL, FINGERPRINT)))

    def change(self, before: "Served") -> str | None:
        """What differs from what answered before, in words; None where nothing does, or one of the two is not known.

        Other names of models are a change. Fingerprints are one where none is left of those before: an endpoint with
        several replicas tells now this one, now that one.
        """
        told = []
        if self.models and before.models and self.models != before.models:
            told.append(f"{', '.join(before.models)} → {', '.join(self.models)}")
        if self.fingerprints and before.fingerprints and not {*self.fingerprints} & {*before.fingerprints}:
            told.append(f"fingerprint {', '.join(before.fingerprints)} → {', '.join(self.fingerprints)}")
        return "; ".join(told) or None

    def or_before(self, before: "Served") -> "Served":
        """Who answered as far as is known: what this night does not tell is as a night before told it."""
        return Served(self.models or before.models, self.fingerprints or before.fingerprints)

    def columns(self, before: "Served | None") -> dict[str, str | None]:
        """Of a night in `trends`."""
        return {
            MODEL: ", ".join(self.models) or None,
            FINGERPRINT: ", ".join(self.fingerprints) or None,
            "served_change": self.change(before) if before else None,
        }


NOT_TOLD = Served()
