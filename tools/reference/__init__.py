"""`make reference`: the generated parts of docs/, written between markers in their pages."""
