"""``python -m docs.pages FOLDER``: write all sources of the site."""

import shutil
import sys
from pathlib import Path

from docs.pages import commands, errors, reference, sources

target = Path(sys.argv[1])
shutil.rmtree(target, ignore_errors=True)
sources.write(target)
for folder, texts in {
    "reference": reference.pages(),
    "commands": commands.pages(),
    "errors": {"index.md": errors.index()},
}.items():
    for name, text in texts.items():
        file = target / folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
