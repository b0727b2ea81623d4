"""The judge's stages: judgements, and judging the same again."""
