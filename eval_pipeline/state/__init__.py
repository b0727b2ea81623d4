"""What runs share beside the record: journal, money, judgements, locks. In files of the home, or in a database."""
