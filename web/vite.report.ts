// The script of a report (internal/report/html/report.js): one file without imports, embedded in the page.
import { defineConfig } from "vite";

export default defineConfig({
  build: {
    outDir: process.env["WEB_REPORT_DIR"] ?? "../internal/report/html",
    emptyOutDir: false,
    target: "es2022",
    lib: { entry: "src/report/main.ts", formats: ["iife"], name: "cnsbench", fileName: () => "report.js" },
  },
});
