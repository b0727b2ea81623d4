"""How a turn and its code are shown: cards, a sheet, a chat history."""
