"""`python -m tools.reference`: updates every generated part of docs/."""

from tools.reference.parts import PAGES, updated


def main() -> None:
    for page in PAGES:
        text = page.read_text()
        if (new := updated(text)) != text:
            page.write_text(new)
            print(f"  updated {page.name}")
    print("make reference: the generated parts are up to date")


if __name__ == "__main__":
    main()
