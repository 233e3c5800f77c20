"""`make reference`: the parts of docs/ that follow from the code, written between markers in their pages."""
