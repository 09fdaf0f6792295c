import { defineConfig } from "vite";

// Names without hashes: the server embeds the built files by name, and CI compares them byte by byte.
export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    modulePreload: false,
    rollupOptions: {
      output: {
        entryFileNames: "page.js",
        chunkFileNames: "[name].js",
        assetFileNames: "page[extname]",
      },
    },
  },
});
