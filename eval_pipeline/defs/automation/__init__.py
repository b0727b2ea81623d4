"""Jobs, schedules, sensors and notifications."""
