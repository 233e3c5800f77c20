// Each cell of a table knows the heading of its column: on a phone, where rows are paragraphs, it is shown before the cell.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table")) {
    const headings = [...table.querySelectorAll("th")].map((heading) => heading.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, column) => {
        if (headings[column] && cell.textContent.trim()) cell.dataset.heading = headings[column];
      });
    }
  }
  // An option keeps together: a browser breaks a line after each of its hyphens.
  for (const code of document.querySelectorAll("article :not(pre) > code")) {
    if (/^-\S{1,24}$/.test(code.textContent)) code.style.whiteSpace = "nowrap";
  }
});
