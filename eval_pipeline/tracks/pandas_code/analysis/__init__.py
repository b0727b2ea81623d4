"""What the code of a snippet does and how well it is written, told from its syntax tree: nothing is run."""

from eval_pipeline.tracks.pandas_code.analysis.quality import QualityFinding, quality_findings
from eval_pipeline.tracks.pandas_code.analysis.snippet import Snippet, read_snippet

__all__ = ["QualityFinding", "Snippet", "quality_findings", "read_snippet"]
