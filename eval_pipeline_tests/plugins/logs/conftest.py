from eval_pipeline_tests.operations.conftest import home, lab_folder  # noqa: F401
