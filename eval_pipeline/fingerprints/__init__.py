"""What decides a result beside its input: the source that computes it, and the versions of the libraries it uses."""

from eval_pipeline.fingerprints.fingerprints import Fingerprint, FingerprintError, Fingerprints
from eval_pipeline.fingerprints.libraries import DECISIVE
from eval_pipeline.fingerprints.places import Root

UNKNOWN_CODE = "unknown code"
"""What stands for the code of files that do not say which made them: those of 0.1.0."""

__all__ = ["DECISIVE", "UNKNOWN_CODE", "Fingerprint", "FingerprintError", "Fingerprints", "Root"]
