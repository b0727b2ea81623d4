from eval_pipeline_tests.tracks.conftest import foreign_files_are_read_here  # noqa: F401
