"""Structure messages: SDMX-ML and SDMX-JSON, packed or not, and what they define."""
