"""Plain text tasks, for which `suite.yaml` defines prompt, answer form and metrics."""
