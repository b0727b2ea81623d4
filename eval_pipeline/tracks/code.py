"""Lists the definitions of a track that decide a stage's result, as roots of its fingerprint."""

from eval_pipeline.tracks.base import Track


def methods(track: Track, *names: str) -> tuple[str, ...]:
    """Returns the places of the track's methods and attributes of these names, where they are defined.

    Missing ones are skipped. Names that an inherited method uses on the track must be listed, too.
    """
    kinds = type(track).__mro__
    found = (next((kind for kind in kinds if name in vars(kind)), None) for name in names)
    return tuple(
        f"{kind.__module__}:{kind.__qualname__}.{name}" for kind, name in zip(found, names, strict=True) if kind
    )


def damage_code(track: Track) -> tuple[str, ...]:
    """Returns the code that stand-ins apply to a turn's gold."""
    return methods(track, "oracle", "damage", "gold_json", "failure_modes")
