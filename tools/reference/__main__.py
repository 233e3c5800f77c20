"""`python -m tools.reference`: renews every generated part of docs/."""

from tools.reference.parts import PAGES, renewed


def main() -> None:
    for page in PAGES:
        text = page.read_text()
        if (new := renewed(text)) != text:
            page.write_text(new)
            print(f"  renewed {page.name}")
    print("make reference: the generated parts are up to date")


if __name__ == "__main__":
    main()
