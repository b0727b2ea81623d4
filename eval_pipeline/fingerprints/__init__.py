"""What decides a result beside its input: the source that computes it, and the versions of the libraries it uses."""

from eval_pipeline.fingerprints.fingerprints import Fingerprint, FingerprintError, Fingerprints
from eval_pipeline.fingerprints.libraries import DECISIVE
from eval_pipeline.fingerprints.places import Root

__all__ = ["DECISIVE", "Fingerprint", "FingerprintError", "Fingerprints", "Root"]
