"""Speed-ups by threads as a plot."""

WIDTH, HEIGHT, MARGIN = 640, 400, 50
COLOURS = ["#999", "#c33", "#36c", "#393", "#a50", "#639"]


def svg(threads, series):
    """One line for each of `series`: {name: {threads: speed-up}}."""
    top = max(threads)
    x = lambda value: MARGIN + (WIDTH - 2 * MARGIN) * value / top
    y = lambda value: HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * value / top
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">']
    parts.append(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>')
    for count in threads:
        parts.append(f'<line x1="{x(0)}" y1="{y(count)}" x2="{x(top)}" y2="{y(count)}" stroke="#ddd"/>')
        parts.append(f'<text x="{x(count)}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{count}</text>')
        parts.append(f'<text x="{MARGIN - 8}" y="{y(count) + 4}" text-anchor="end">{count}x</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">threads</text>')
    for index, (name, points) in enumerate(series.items()):
        points = [(count, value) for count, value in sorted(points.items()) if count <= top]
        line = " ".join(f"{x(count):.1f},{y(value):.1f}" for count, value in points)
        colour = COLOURS[index % len(COLOURS)]
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{MARGIN + 12}" y="{MARGIN + 16 * index}" fill="{colour}">{name}</text>')
    return "\n".join(parts + ["</svg>"]) + "\n"
