"""`make reference`: writes the generated parts of docs/ between markers in their pages."""
