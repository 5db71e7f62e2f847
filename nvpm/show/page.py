# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Writes one page for a browser. The page is a single file that loads nothing, runs no script, and
can be read without colours, on paper, and with a screen reader."""

import base64
import hashlib
import html
import os
import time
from typing import Iterable, Iterator, Optional, Sequence, Tuple, Union

from .. import release
from ..read.machine import clean

# A longer text from a node is cut, so that one node does not fill the page.
LONGEST = 300

# The lowest share of the usual rate for each level of a cell. Level 0 is as it should be.
LEVELS = (0.95, 0.8, 0.5, 0.25)
MARKS = ("", "", "▼", "▼▼", "▼▼▼")
MEANING = (
    "at least 95 %",
    "80 % or more",
    "▼ below 80 %",
    "▼▼ below 50 %",
    "▼▼▼ below 25 %, or failed",
)

# A border marks each level that needs attention, because a colour alone tells nothing on paper.
STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#57606a;--paper:#fff;
--line:#d0d7de;--soft:#f3f5f7;--good:#116329;--bad:#a40e26;--h0:#e9f5ec;--h1:#fff8d6;--h2:#ffe0b0;--h3:#ffbd8a;--h4:#ff9c8f}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9ba7b4;--paper:#0d1117;--line:#3a424d;
--soft:#171c24;--good:#6fdd8b;--bad:#ff9a92;--h0:#12301d;--h1:#3a3410;--h2:#5a3c0c;--h3:#74340f;
--h4:#8a1f1c}}
*{box-sizing:border-box}
body{font:14px/1.4 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:0 auto;
padding:1rem 1.25rem 3rem;max-width:80rem}
h1{font-size:1.3rem;margin:0 0 .75rem}h2{font-size:1.1rem;margin:1.75rem 0 .5rem}
.tiles{display:flex;flex-wrap:wrap;gap:.6rem;margin:0;padding:0;list-style:none}
.tiles li{border:1px solid var(--line);border-radius:.4rem;padding:.35rem .8rem;
background:var(--soft)}
.tiles b{display:block;font-size:1.6rem;line-height:1.2;font-variant-numeric:tabular-nums}
.tiles .bad{border:2px solid var(--bad)}.tiles .bad b{color:var(--bad)}
.tiles .good b{color:var(--good)}
.wide{overflow-x:auto}
table{border-collapse:collapse;margin:0 0 .75rem}
caption{text-align:left;color:var(--dim);padding:.25rem 0}
th,td{border:1px solid var(--line);padding:.25rem .55rem;text-align:left;vertical-align:top;
overflow-wrap:anywhere}
thead th{background:var(--soft);white-space:nowrap}
tbody th{font-weight:600;min-width:4.5rem;max-width:24rem;overflow-wrap:break-word}
td{min-width:6rem}
.number,.heat td,.legend td{min-width:0}
.here{font-weight:600}.fact{min-width:13rem}.dim,small{color:var(--dim)}
.number,.heat td{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.heat small{display:block;color:inherit}
.h0{background:var(--h0)}.h1{background:var(--h1)}.h2{background:var(--h2);outline:2px dashed}
.h3{background:var(--h3);outline:2px solid}
.h4{background:var(--h4);outline:4px double;font-weight:700}
.h2,.h3,.h4{outline-offset:-3px}
.legend td{white-space:nowrap}
.bar{display:inline-block;height:.7em;background:var(--dim);vertical-align:baseline}
footer{color:var(--dim);border-top:1px solid var(--line);margin-top:2rem;padding-top:.5rem}
@media print{body{max-width:none;padding:0;font-size:11px}h2,caption{break-after:avoid}
tr{break-inside:avoid}.wide{overflow:visible}.h0,.h1,.h2,.h3,.h4,.bar{print-color-adjust:exact}}
""".strip()

# A cell of a table: its text, which is not escaped yet, or ready markup.


class Markup(str):
    """Text with tags, which is not escaped again."""


Cell = Union[str, Markup]


def escaped(text: object) -> Markup:
    """Returns a text of a node as mere text of the page."""
    if isinstance(text, Markup):
        return text
    said = clean(str(text))
    return Markup(html.escape(said if len(said) <= LONGEST else said[:LONGEST] + " …"))


def element(tag: str, text: object, kind: str = "") -> Markup:
    attribute = f' class="{kind}"' if kind else ""
    return Markup(f"<{tag}{attribute}>{escaped(text)}</{tag}>")


def tiles(found: Iterable[Tuple[object, str, str]]) -> Markup:
    """Returns a row of numbers. Each has a text below it and a class."""
    items = (
        f'<li class="{kind}"><b>{escaped(of)}</b>{escaped(text)}</li>' for of, text, kind in found
    )
    return Markup(f'<ul class="tiles">{"".join(items)}</ul>')


def table(caption: str, head: Sequence[str], rows: Iterable[Markup], kind: str = "") -> Markup:
    columns = "".join(f'<th scope="col">{escaped(name)}</th>' for name in head)
    attribute = f' class="{kind}"' if kind else ""
    return Markup(
        f'<div class="wide"><table{attribute}><caption>{escaped(caption)}</caption>'
        f"<thead><tr>{columns}</tr></thead><tbody>\n{''.join(rows)}</tbody></table></div>\n"
    )


def row(head: Cell, cells: Iterable[Markup], span: int = 1) -> Markup:
    """Returns a row whose head also belongs to the rows below, in all SPAN rows."""
    rows = f' rowspan="{span}"' if span > 1 else ""
    return Markup(f'<tr><th scope="row"{rows}>{escaped(head)}</th>{"".join(cells)}</tr>\n')


def level(share: Optional[float]) -> int:
    """Returns the level of a share of the usual rate. A pair that failed has no share."""
    if share is None:
        return len(LEVELS)
    return next((at for at, least in enumerate(LEVELS) if share >= least), len(LEVELS))


def heat(share: Optional[float], text: str, below: str = "", marked: bool = True) -> Markup:
    """Returns a cell of a heat map, with a mark and a border where the share is low."""
    at = level(share)
    mark = f"{MARKS[at]} " if MARKS[at] and marked else ""
    small = element("small", below) if below else ""
    return Markup(f'<td class="h{at}">{mark}{escaped(text)}{small}</td>')


def legend(of: str) -> Markup:
    """Returns the levels with their meaning, as a share of OF."""
    cells = "".join(f'<td class="h{at}">{escaped(text)}</td>' for at, text in enumerate(MEANING))
    return Markup(
        f'<table class="legend"><tbody><tr><th scope="row">Share of {escaped(of)}</th>{cells}</tr>'
        "</tbody></table>\n"
    )


def page(title: str, body: Iterable[Markup]) -> Iterator[str]:
    """Yields the text of a page. The browser must load nothing, and apply no other style."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    yield (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>{STYLE}</style></head>\n<body><main>\n"
    )
    yield from body
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    yield f"</main><footer>Made on {made} by {escaped(release())}.</footer></body></html>\n"


class NewFile:
    """A new file that only its owner can read, as `nvpm report --write` makes one. The constructor
    makes the file before the page is made, so that the user sees an error at once. An existing file
    is not overwritten, and no link is followed. The file is deleted unless keep() was called."""

    def __init__(self, path: str) -> None:
        self.path, self.kept = path, False
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)

    def __enter__(self) -> "NewFile":
        return self

    def __exit__(self, *_error: object) -> None:
        if not self.kept:
            os.close(self.descriptor)
            os.unlink(self.path)

    def keep(self, texts: Iterable[str]) -> int:
        """Writes the file. Returns the number of its bytes."""
        data = "".join(texts).encode("utf-8", "replace")
        left = memoryview(data)
        while left:
            left = left[os.write(self.descriptor, left) :]
        os.fsync(self.descriptor)
        os.close(self.descriptor)
        self.kept = True
        return len(data)
