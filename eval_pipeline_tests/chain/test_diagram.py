"""The picture of the chain in the documentation is the chain's own."""

from eval_pipeline.chain.diagram import mermaid
from eval_pipeline.chain.evaluation import chain_of
from eval_pipeline.tracks.registry import load_track
from eval_pipeline_tests.support import ROOT


def test_the_documented_picture_is_drawn_from_the_chain() -> None:
    """Of the track that has every stage."""
    assert f"```mermaid\n{mermaid(chain_of(load_track('sql')))}\n```" in (ROOT / "docs" / "architecture.md").read_text()
