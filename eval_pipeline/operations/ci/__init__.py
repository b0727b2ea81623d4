"""Results for continuous integration: JUnit files, and Markdown for summaries and comments on pull requests."""
