"""How values, texts, differences and series are drawn on pages."""
