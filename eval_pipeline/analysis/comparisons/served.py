"""Which models answered an evaluation, by the providers' own names, and whether that has changed since the last one."""

from typing import NamedTuple, Self

import pyarrow as pa

MODEL, FINGERPRINT = "served_model", "system_fingerprint"


class Served(NamedTuple):
    """The models that answered; empty if the provider does not tell, or an older version did not record it.

    Attributes:
        models: names of models, sorted.
        fingerprints: fingerprints of the systems that ran them, sorted.
    """

    models: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()

    @classmethod
    def of(cls, attempts: pa.Table) -> Self:
        """Reads them from the columns `served_model` and `system_fingerprint` of attempts."""
        return cls(*(tuple(sorted(filter(None, attempts[name].unique().to_pylist()))) for name in (MODEL, FINGERPRINT)))

    def change(self, before: "Served") -> str | None:
        """Describes the change since the earlier evaluation; None if nothing changed or one of them is unknown.

        Different model names are a change. Fingerprints are a change only if none of the earlier ones is left, because
        an endpoint with several replicas reports varying ones.
        """
        told = []
        if self.models and before.models and self.models != before.models:
            told.append(f"{', '.join(before.models)} → {', '.join(self.models)}")
        if self.fingerprints and before.fingerprints and not {*self.fingerprints} & {*before.fingerprints}:
            told.append(f"fingerprint {', '.join(before.fingerprints)} → {', '.join(self.fingerprints)}")
        return "; ".join(told) or None

    def or_before(self, before: "Served") -> "Served":
        """Returns these values; unknown ones are taken from the earlier evaluation."""
        return Served(self.models or before.models, self.fingerprints or before.fingerprints)

    def columns(self, before: "Served | None") -> dict[str, str | None]:
        """Returns the columns of an evaluation in `trends`."""
        return {
            MODEL: ", ".join(self.models) or None,
            FINGERPRINT: ", ".join(self.fingerprints) or None,
            "served_change": self.change(before) if before else None,
        }


NOT_TOLD = Served()
