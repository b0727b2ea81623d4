"""The workbench: a server on this machine that shows the published store. It changes no evaluation."""
