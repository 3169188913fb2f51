import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { Test } from 'tap'

const ROOT = new URL('../../../', import.meta.url).pathname
/** Where React is, with the variable REACT the directory of a package that has another one (`npm run test:react`). */
const REACT = join(ROOT, process.env['REACT'] ?? '.', 'node_modules')

/** What the components of an app may use: everything of React, `h` in place of JSX, `client` and the hooks. */
const HEAD = `
  import * as React from 'react'
  import { sessionKey } from 'trading-bff-client'
  import { useApi, useSeries, useSession, useSocket, useSubscription } from 'trading-bff-client/react'
  import { client } from './trading.ts'
  const { createElement: h, Profiler, StrictMode, useEffect, useState } = React`

/** What an app consists of besides its components. */
interface AppParts {
  /** The options of the client, as code. */
  readonly options?: string
  /** The HTML of `App` from a server, if it is to be hydrated. */
  readonly html?: string
  /** Modules that the components import, by name. */
  readonly files?: Readonly<Record<string, string>>
}

/**
 * A page with these React components, of which `App` is rendered in StrictMode. It notes errors in `faults`, those of React among
 * them.
 * @returns STATIC_DIR
 */
export async function reactApp(t: Test, components: string, parts: AppParts = {}): Promise<string> {
  const { html } = parts
  const render = html === undefined ? 'createRoot(root).render(app)' : 'hydrateRoot(root, app)'
  const code = `${HEAD}
    import { createRoot, hydrateRoot } from 'react-dom/client'
    const faults = (globalThis.faults = [])
    addEventListener('error', ({ message }) => faults.push(message))
    addEventListener('unhandledrejection', ({ reason }) => faults.push(String(reason)))
    console.error = (...all) => faults.push(all.join(' '))
    ${components}
    const root = document.querySelector('#root')
    const app = h(StrictMode, null, h(App))
    ${render}`
  const outdir = await bundled(t, code, parts)
  const page = `<!doctype html><title>app</title><div id="root">${html ?? ''}</div><script defer src="/app.js"></script>`
  await writeFile(join(outdir, 'index.html'), page)
  return outdir
}

/** What a server renders of the same components, in Node.js. */
export async function renderedApp(t: Test, components: string): Promise<string> {
  const code = `${HEAD}
    import { renderToString } from 'react-dom/server'
    ${components}
    export const html = renderToString(h(StrictMode, null, h(App)))`
  const outdir = await bundled(t, code, {}, 'node')
  return ((await import(join(outdir, 'app.cjs'))) as { default: { html: string } }).default.html
}

/** @returns the directory of the bundle, app.js or app.cjs */
async function bundled(
  t: Test,
  contents: string,
  { options = '{}', files }: AppParts,
  platform: 'browser' | 'node' = 'browser',
): Promise<string> {
  const trading = `import { createClient } from 'trading-bff-client'
    export const client = (globalThis.client = createClient(${options}))`
  const dir = t.testdir({ node_modules: {}, 'trading.ts': trading, ...files })
  await symlink(join(ROOT, 'client'), join(dir, 'node_modules/trading-bff-client'))
  const outdir = join(dir, 'dist')
  await mkdir(outdir)
  await build({
    stdin: { contents, resolveDir: dir },
    outfile: join(outdir, platform === 'node' ? 'app.cjs' : 'app.js'),
    bundle: true,
    platform,
    format: platform === 'node' ? 'cjs' : 'iife',
    alias: { react: join(REACT, 'react'), 'react-dom': join(REACT, 'react-dom') },
    define: { 'process.env.NODE_ENV': '"development"' },
  })
  return outdir
}
