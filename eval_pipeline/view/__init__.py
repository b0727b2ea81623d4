"""The workbench: a local server that shows the published store. It changes no evaluation."""
