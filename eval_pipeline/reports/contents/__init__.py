"""What every kind of report tells: facts, figures, gold and mistakes."""
