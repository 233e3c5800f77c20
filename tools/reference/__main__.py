"""`python -m tools.reference`: updates every generated part of docs/, and the JSON Schema of records."""

from tools.reference.parts import PAGES, updated
from tools.reference.record import SCHEMA_FILE, record_schema


def main() -> None:
    for page in PAGES:
        text = page.read_text()
        if (new := updated(text)) != text:
            page.write_text(new)
            print(f"  updated {page.name}")
    SCHEMA_FILE.write_text(record_schema())
    print("make reference: the generated parts are up to date")


if __name__ == "__main__":
    main()
