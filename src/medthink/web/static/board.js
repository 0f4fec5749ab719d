// Rows of the board that open: the slices of a model's own page, shown below its row.
for (const button of document.querySelectorAll("[data-expand]")) button.hidden = false;
