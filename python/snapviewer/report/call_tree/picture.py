"""The call tree as an SVG, and as a page of HTML that can be searched and zoomed.

Both are whole in themselves: nothing is loaded from anywhere, and the page forbids it.
"""

from __future__ import annotations

import json
from html import escape

from snapviewer import Device, Tree
from snapviewer.report.theme import THEMES, Color
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import count_of

from .names import format_weight, heaviest, node_text, place_text
from .text import tooltip

MAX_NODES = 20_000  # of a page; those left out are the lightest
_WIDTH, _ROW, _HEAD = 1200, 18, 40
_LETTER_PX = 6.3  # of the font in which names are written, on average
_FONT = "system-ui, sans-serif"


def as_svg(device: Device, tree: Tree, *, title: str, theme: str = "light") -> str:
    """Return a picture in which a box is as wide as its weight."""
    icicle = tree.icicle(width=_WIDTH, row=_ROW)
    colors = device.colors(theme=theme)
    look = THEMES[theme]
    height = icicle.height + _HEAD
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'font-family="{_FONT}" font-size="11">',
        f"<title>{_escaped(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="{_hex(look.background)}"/>',
        f'<text x="8" y="24" font-size="14" fill="{_hex(look.text)}">{_escaped(title)}</text>',
    ]
    for index, x, y, width in icicle.boxes(height=icicle.height):
        node = tree.node(index)
        tip = _escaped("\n".join(tooltip(tree, node)))
        color = look.grid if node.largest is None else _rgb(colors[node.largest])
        top, shown = y + _HEAD, max(width - 1, 1)
        parts.append(
            f'<g><title>{tip}</title><rect x="{x}" y="{top}" width="{shown}" '
            f'height="{_ROW - 1}" fill="{_hex(color)}"/>'
        )
        if letters := int((width - 6) / _LETTER_PX):
            name = node_text(node)
            short = name if len(name) <= letters else f"{name[: max(letters - 1, 0)]}…"
            ink = "#1f2328" if _is_light(color) else "#ffffff"
            if letters >= 3:
                place = f'x="{x + 3}" y="{top + 12}" fill="{ink}"'
                parts.append(f"<text {place}>{_escaped(short)}</text>")
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def as_html(device: Device, tree: Tree, *, title: str, theme: str = "light") -> str:
    """Return a page: click a box to zoom in, type to search."""
    nodes = heaviest(tree, MAX_NODES)
    colors = device.colors(theme=theme)
    look = THEMES[theme]
    places = {node.index: place for place, node in enumerate(nodes)}
    rows = [
        [
            -1 if node.parent is None else places[node.parent],
            node_text(node),
            place_text(node),
            format_weight(tree, node.weight),
            count_of(node.count, "allocation"),
            node.weight / max(tree.total, 1),
            _hex(look.grid if node.largest is None else _rgb(colors[node.largest])),
        ]
        for node in nodes
    ]
    style = "".join(
        f"--{name}: {_hex(getattr(look, name))}; "
        for name in ("background", "text", "secondary", "grid", "accent")
    )
    is_cut = len(nodes) == MAX_NODES
    note = f"the {MAX_NODES:,} heaviest nodes" if is_cut else count_of(len(nodes), "node")
    # In a script, only these could end it or begin something else.
    data = json.dumps(rows, separators=(",", ":"))
    for letter in "<>&":
        data = data.replace(letter, f"\\u{ord(letter):04x}")
    return _PAGE.format(
        title=_escaped(title), style=style, note=note, data=data, script=_SCRIPT, css=_CSS
    )


def _escaped(text: str) -> str:
    return escape("\n".join(sanitize(line) for line in text.split("\n")))


def _rgb(color: object) -> Color:
    red, green, blue = (int(part) for part in color)  # type: ignore[attr-defined]
    return red, green, blue


def _hex(color: Color) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)


def _is_light(color: Color) -> bool:
    red, green, blue = ((part / 255) ** 2.2 for part in color)
    return bool(0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18)


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>:root {{ {style} }}{css}</style>
</head>
<body>
<header><h1>{title}</h1>
<p><span id="about">{note}; click a box to zoom in, Esc to zoom out</span>
<input id="search" type="search" placeholder="Search" aria-label="Search"></p></header>
<main id="tree"></main>
<footer id="tip"></footer>
<script>const rows = {data};{script}</script>
</body>
</html>
"""

_CSS = """
body { margin: 0; background: var(--background); color: var(--text);
 font: 13px/1.4 system-ui, sans-serif; }
header { padding: 12px 16px 4px; }
h1 { font-size: 17px; margin: 0; font-weight: 600; overflow-wrap: anywhere; }
header p { display: flex; gap: 16px; align-items: center; margin: 6px 0; color: var(--secondary); }
input { font: inherit; padding: 3px 8px; width: 22em; max-width: 40%; margin-left: auto;
 color: var(--text); background: var(--background); border: 1px solid var(--grid); }
main { position: relative; margin: 0 16px 64px; }
main div { position: absolute; height: 18px; box-sizing: border-box; overflow: hidden;
 white-space: nowrap; text-overflow: ellipsis; padding: 0 4px; font-size: 11.5px; line-height: 18px;
 border-right: 1px solid var(--background); cursor: pointer; }
main div:hover { outline: 2px solid var(--accent); z-index: 1; }
footer { position: fixed; bottom: 0; left: 0; right: 0; padding: 8px 16px; min-height: 2.8em;
 background: var(--background); border-top: 1px solid var(--grid); overflow-wrap: anywhere; }
footer small { color: var(--secondary); }
"""

# Rows are: the place of the node above, name, place in the code, weight, count, share, colour.
_SCRIPT = """
const main = document.getElementById("tree"), tip = document.getElementById("tip");
const about = document.getElementById("about"), search = document.getElementById("search");
const children = rows.map(() => []), usual = about.textContent;
rows.forEach((row, place) => { if (row[0] >= 0) children[row[0]].push(place); });
let focus = 0;
const isDark = (code) => {
  const part = (at) => (parseInt(code.slice(at, at + 2), 16) / 255) ** 2.2;
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5) <= 0.18;
};
function isFound(place, word) {
  return (rows[place][1] + " " + rows[place][2]).toLowerCase().includes(word);
}
function found(word) {
  let share = 0, count = 0;
  const waiting = [[0, false]];
  while (waiting.length) {
    const [place, isInside] = waiting.pop(), isHere = isFound(place, word);
    if (isHere) count += 1;
    if (isHere && !isInside) share += rows[place][5];
    for (const child of children[place]) waiting.push([child, isInside || isHere]);
  }
  return [count, share];
}
function draw() {
  const width = main.clientWidth, row = 19, word = search.value.trim().toLowerCase();
  main.replaceChildren();
  const above = [];
  for (let at = focus; at >= 0; at = rows[at][0]) above.unshift(at);
  let deepest = 0;
  const put = (place, left, wide, depth, isAbove) => {
    if (wide < 0.7) return;
    deepest = Math.max(deepest, depth);
    const [, name, , weight, , , color] = rows[place], box = document.createElement("div");
    box.style.left = left + "px";
    box.style.top = depth * row + "px";
    box.style.width = wide + "px";
    box.style.background = color;
    box.style.color = isDark(color) ? "#fff" : "#1f2328";
    if (isAbove || (word && !isFound(place, word))) box.style.opacity = 0.35;
    if (wide > 30) box.textContent = name + "  " + weight;
    box.addEventListener("click", () => { focus = place; draw(); });
    box.addEventListener("mouseenter", () => show(place));
    main.append(box);
  };
  above.forEach((place, depth) => put(place, 0, width, depth, place !== focus));
  const waiting = [[focus, 0, width, above.length]];
  while (waiting.length) {
    const [place, left, wide, depth] = waiting.pop();
    let x = left;
    for (const child of children[place]) {
      const part = rows[place][5] ? wide * rows[child][5] / rows[place][5] : 0;
      put(child, x, part, depth, false);
      if (part >= 0.7) waiting.push([child, x, part, depth + 1]);
      x += part;
    }
  }
  main.style.height = (deepest + 1) * row + "px";
  if (word) {
    const [count, share] = found(word);
    about.textContent = count + " nodes, " + (100 * share).toFixed(1) + " %";
  } else about.textContent = usual;
}
function show(place) {
  const [, name, where, weight, count, share] = rows[place];
  tip.replaceChildren();
  const strong = document.createElement("b"), small = document.createElement("small");
  strong.textContent = name;
  small.textContent = where;
  const facts = "  " + weight + " · " + (100 * share).toFixed(1) + " % · " + count + "  ";
  tip.append(strong, facts, small);
}
search.addEventListener("input", draw);
addEventListener("resize", draw);
addEventListener("keydown", (event) => {
  if (event.key === "Escape") { focus = Math.max(rows[focus][0], 0); draw(); }
});
draw();
"""
