"""Charts as SVG text that pages contain: no script, no inline style; `chart.css` has the colours, light and dark."""
