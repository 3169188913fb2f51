import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { Test } from 'tap'

/** Where React is, with the variable REACT the directory of a package that has another one (`npm run test:react`). */
const REACT = new URL(`../../../${process.env['REACT'] ?? '.'}/node_modules/`, import.meta.url).pathname
const DIST = new URL('../../../client/dist/', import.meta.url).pathname

/** What the components of an app may use: everything of React, `h` in place of JSX, `client` and the hooks. */
const HEAD = `
  import * as React from 'react'
  import { createClient, sessionKey } from './client.js'
  import { useApi, useSeries, useSession, useSocket, useSubscription } from './react.js'
  const { createElement: h, Profiler, StrictMode, useEffect, useState } = React`

/**
 * A page with these React components, of which `App` is rendered in StrictMode. It notes errors in `faults`, those of React among
 * them.
 * @param more `options` of the client, as code, and the `html` of `App` from a server, if it is to be hydrated
 * @returns STATIC_DIR
 */
export async function reactApp(
  t: Test,
  components: string,
  { options = '{}', html }: { options?: string; html?: string } = {},
): Promise<string> {
  const render = html === undefined ? 'createRoot(root).render(app)' : 'hydrateRoot(root, app)'
  const app = await bundled(
    `${HEAD}
    import { createRoot, hydrateRoot } from 'react-dom/client'
    const client = (globalThis.client = createClient(${options}))
    const faults = (globalThis.faults = [])
    addEventListener('error', ({ message }) => faults.push(message))
    addEventListener('unhandledrejection', ({ reason }) => faults.push(String(reason)))
    console.error = (...all) => faults.push(all.join(' '))
    ${components}
    const root = document.querySelector('#root')
    const app = h(StrictMode, null, h(App))
    ${render}`,
    'browser',
  )
  const root = `<div id="root">${html ?? ''}</div>`
  return t.testdir({
    'index.html': `<!doctype html><title>app</title>${root}<script defer src="/app.js"></script>`,
    'app.js': app,
  })
}

/** What a server renders of the same components, in Node.js. */
export async function renderedApp(t: Test, components: string): Promise<string> {
  const code = `${HEAD}
    import { renderToString } from 'react-dom/server'
    const client = createClient()
    ${components}
    export const html = renderToString(h(StrictMode, null, h(App)))`
  const file = join(t.testdir({}), 'server.cjs')
  await writeFile(file, await bundled(code, 'node'))
  return ((await import(file)) as { default: { html: string } }).default.html
}

async function bundled(contents: string, platform: 'browser' | 'node'): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: DIST },
    bundle: true,
    platform,
    format: platform === 'node' ? 'cjs' : 'iife',
    alias: { react: `${REACT}react`, 'react-dom': `${REACT}react-dom` },
    define: { 'process.env.NODE_ENV': '"development"' },
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}
