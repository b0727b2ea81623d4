"""`eval-pipeline` in an interpreter of its own that runs evaluations as `direct` does.

python -m eval_pipeline_tests.quickly run …
"""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path


class _InsteadOfLaunch:
    @staticmethod
    def find_spec(name: str, *_: object) -> ModuleSpec | None:
        if name != "eval_pipeline.defs.running.launch":
            return None
        return spec_from_file_location(name, Path(__file__).with_name("direct.py"))


if __name__ == "__main__":
    sys.meta_path.insert(0, _InsteadOfLaunch)
    sys.argv[0] = "eval-pipeline"
    from eval_pipeline.cli import main

    main()
