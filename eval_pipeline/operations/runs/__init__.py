"""Running evaluations, planning them and scoring them again."""
