"""What of a suite is asked, with which prompts, until when and for how much; why the rest was left out."""
