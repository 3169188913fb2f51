import { cp } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const PAGE = fileURLToPath(new URL('page', import.meta.url))

/**
 * Builds the demo page into a directory, which is then a STATIC_DIR. The scripts become one file, and the chart library a
 * second one that the page loads once it shows a price. The browser package stays the server's own `/client.js`.
 */
export async function buildPage(outdir: string): Promise<void> {
  await build({
    entryPoints: [`${PAGE}/app.js`],
    outdir,
    bundle: true,
    splitting: true,
    chunkNames: '[name]',
    minify: true,
    sourcemap: true,
    format: 'esm',
    target: 'es2022',
    external: ['/client.js', '/client/*'],
    // The devtools refuse production builds. The demo is for developers.
    define: { 'process.env.NODE_ENV': '"development"' },
    logLevel: 'warning',
  })
  await build({ entryPoints: [`${PAGE}/style.css`], outdir, minify: true, logLevel: 'warning' })
  for (const file of ['index.html', 'favicon.svg']) await cp(`${PAGE}/${file}`, `${outdir}/${file}`)
}

if (import.meta.main) {
  const [outdir] = process.argv.slice(2)
  if (outdir === undefined) throw new Error('Usage: node sandbox/build-page.ts <directory>')
  await buildPage(outdir)
}
