"""Operations behind commands, beside running the chain: planning, importing, pruning, maintenance."""
