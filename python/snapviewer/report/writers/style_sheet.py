"""The style sheet of HTML reports: for light and dark screens, and for print."""

from __future__ import annotations

from functools import cache

from snapviewer.report.writers.colors import PALETTES, Mode

# Fonts that are there already, those with Chinese letters included.
_PAGE = """
* { box-sizing: border-box; }
html { background: var(--paper); -webkit-text-size-adjust: 100%; }
body {
  margin: 0; color: var(--text); background: var(--paper);
  font: 16px/1.65 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "PingFang SC",
    "Hiragino Sans GB", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC",
    "Source Han Sans SC", "WenQuanYi Micro Hei", sans-serif;
  font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere;
}
main { max-width: 860px; margin: 0 auto; padding: 48px 32px 64px; }
h1, h2, h3, h4 { line-height: 1.3; font-weight: 650; break-after: avoid; text-wrap: balance; }
h1 { margin: 0 0 24px; font-size: 30px; letter-spacing: -0.01em; }
h2 {
  margin: 44px 0 16px; padding-top: 24px; border-top: 1px solid var(--grid); font-size: 22px;
}
h3 { margin: 32px 0 12px; font-size: 17px; }
h4 { margin: 24px 0 8px; font-size: 15px; color: var(--secondary); }
p, ul, ol { margin: 0 0 16px; }
ul, ol { padding-left: 24px; }
li { margin: 4px 0; }
li::marker { color: var(--secondary); }
a { color: inherit; text-decoration-color: var(--axis); text-underline-offset: 3px; }
a:hover { color: var(--plain); }
code {
  padding: 1px 5px; border-radius: 4px; background: var(--code); unicode-bidi: isolate;
  font: 0.875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
nav { margin: 0 0 32px; padding: 16px 20px; border-radius: 8px; background: var(--panel); }
nav p { margin: 0 0 4px; font-size: 13px; color: var(--secondary); }
nav ol { margin: 0; padding-left: 20px; columns: 2 280px; column-gap: 32px; font-size: 15px; }
nav li { margin: 0; padding: 2px 0; break-inside: avoid; }
nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; }
.box {
  padding: 10px 16px; border-left: 4px solid var(--tone); border-radius: 4px;
  background: var(--panel); break-inside: avoid;
}
.good { --tone: var(--good); }
.warning { --tone: var(--warning); }
.bad { --tone: var(--bad); }
.wide { overflow-x: auto; }
.wide:focus-visible { outline: 2px solid var(--plain); outline-offset: 4px; }
div.wide:has(> table) { margin: 0 0 24px; }
table { width: 100%; border-collapse: collapse; font-size: 15px; line-height: 1.5; }
th, td {
  min-width: 5em; padding: 8px 12px; border-bottom: 1px solid var(--grid);
  text-align: left; vertical-align: top; unicode-bidi: isolate;
}
th { color: var(--secondary); font-size: 13px; font-weight: 500; border-color: var(--axis); }
/* Columns are as wide as their longest word; only names of files and code break anywhere. */
th, td { overflow-wrap: break-word; }
td code { overflow-wrap: anywhere; }
td:has(code) { min-width: 13em; }
td.number { white-space: nowrap; }
.number { text-align: right; }
.total td { border-top: 1px solid var(--axis); border-bottom: 0; font-weight: 650; }
figure { margin: 0 0 32px; break-inside: avoid; }
figcaption { margin: 0 0 10px; font-size: 15px; font-weight: 650; }
svg { display: block; width: 100%; height: auto; font-family: inherit; overflow: visible; }
svg.slim { display: none; }
svg line { stroke-width: 1; }
svg polyline { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
footer {
  margin-top: 56px; padding-top: 16px; border-top: 1px solid var(--grid);
  font-size: 13px; color: var(--secondary);
}
@media (max-width: 600px) {
  main { padding: 24px 16px 40px; }
  h1 { font-size: 25px; }
  td:not(.number) { min-width: 9em; }
}
@media screen and (max-width: 600px) {
  svg.broad { display: none; }
  svg.slim { display: block; }
}
@page { size: A4; margin: 18mm 16mm; }
@media print {
  body { font-size: 10.5pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main { max-width: none; padding: 0; }
  .wide { overflow: visible; }
  h2 { margin-top: 32px; }
  tr { break-inside: avoid; }
  thead { display: table-header-group; }
  p, li { orphans: 3; widows: 3; }
}
"""


@cache
def style_sheet() -> str:
    """Return the style sheet of a report."""
    return f"\n{ink_variables()}{_PAGE}{ink_classes()}"


def ink_variables() -> str:
    """Return the colours as CSS variables: dark where a screen prefers it, light in print."""
    dark = f"@media screen and (prefers-color-scheme: dark) {{\n{_variables('dark')}}}\n"
    return f"{_variables('light')}{dark}"


def ink_classes() -> str:
    """Return the CSS classes of inks: `fill-…` and `stroke-…`."""
    return "".join(
        f".fill-{ink} {{ fill: var(--{ink}); }}\n.stroke-{ink} {{ stroke: var(--{ink}); }}\n"
        for ink in PALETTES["light"]
    )


def _variables(mode: Mode) -> str:
    colors = PALETTES[mode].items()
    lines = (f"  --{ink}: #{red:02x}{green:02x}{blue:02x};\n" for ink, (red, green, blue) in colors)
    return f":root {{\n{''.join(lines)}}}\n"
