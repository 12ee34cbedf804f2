// Adds zoom, crosshair and filters to a report. Without it the page has all figures and tables.
document.documentElement.dataset["script"] = "on";
