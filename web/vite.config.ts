// The web interface: one page, which the binary embeds (internal/web/assets). File names have no hashes, so that a
// rebuild of the same sources changes nothing; the server sends each file with an ETag of its content.
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

export default defineConfig({
  root: "src/app",
  base: "/assets/",
  plugins: [svelte({ configFile: "../../svelte.config.js" })],
  build: {
    outDir: process.env["WEB_APP_DIR"] ?? "../../../internal/web/assets",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: { entryFileNames: "app.js", chunkFileNames: "[name].js", assetFileNames: "[name][extname]" },
    },
  },
});
