"""Fingerprints: hashes of the source code that computes a result, with the versions of the libraries it uses."""

from eval_pipeline.fingerprints.fingerprints import Fingerprint, FingerprintError, Fingerprints
from eval_pipeline.fingerprints.libraries import DECISIVE
from eval_pipeline.fingerprints.places import Root

UNKNOWN_CODE = "unknown code"
"""Stands for the code of files that do not record which code made them (those of 0.1.0)."""

__all__ = ["DECISIVE", "UNKNOWN_CODE", "Fingerprint", "FingerprintError", "Fingerprints", "Root"]
