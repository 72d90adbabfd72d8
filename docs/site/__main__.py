"""Writes the pages of the reference that are made from the code: python -m docs.site."""

from docs.site.generated import FOLDER, PAGES

if __name__ == "__main__":
    for name, made in PAGES.items():
        (FOLDER / name).write_text(made())
