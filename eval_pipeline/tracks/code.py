"""Which definitions of a track decide what a stage makes, as roots of its fingerprint."""

from eval_pipeline.tracks.base import Track


def methods(track: Track, *names: str) -> tuple[str, ...]:
    """Places of the track's methods and attributes of these names, as far as it has them, where they are defined.

    What an inherited one calls on the track is to be named too.
    """
    kinds = type(track).__mro__
    found = (next((kind for kind in kinds if name in vars(kind)), None) for name in names)
    return tuple(
        f"{kind.__module__}:{kind.__qualname__}.{name}" for kind, name in zip(found, names, strict=True) if kind
    )


def damage_code(track: Track) -> tuple[str, ...]:
    """What stand-ins make of a turn's gold."""
    return methods(track, "oracle", "damage", "gold_json", "failure_modes")
