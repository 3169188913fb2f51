import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createServer } from 'vite'
import { until } from '../time/until.ts'

const CLIENT = new URL('../../../client', import.meta.url).pathname

/** Changes a file of the page, of which Vite learns once. */
type Edit = (name: string, text: string) => Promise<void>

/**
 * Serves a page with Vite while it is developed: these files, which may import the browser package. The paths of the server are
 * forwarded to it. It ends with the test.
 */
export async function viteServer(
  t: Test,
  files: Readonly<Record<string, string>>,
  { port, target }: { readonly port: number; readonly target: string },
): Promise<Edit> {
  // Vite decides by this what is production.
  process.env['NODE_ENV'] = 'development'
  const root = t.testdir({ node_modules: {}, ...files })
  await symlink(CLIENT, join(root, 'node_modules/trading-bff-client'))
  const vite = await createServer({
    configFile: false,
    root,
    logLevel: 'silent',
    cacheDir: join(root, '.vite'),
    server: {
      host: '127.0.0.1',
      port,
      strictPort: true,
      // It would take two changes in a row for one.
      watch: null,
      fs: { allow: [root, CLIENT] },
      proxy: { '^/(?:auth|api|ws)/': { target, ws: true } },
    },
  })
  t.teardown(() => vite.close())
  await vite.listen()
  return async (name, text) => {
    // A page whose socket has yet to open would never hear of it.
    await until(() => vite.ws.clients.size > 0, 'a page that hears of changes')
    await writeFile(join(root, name), text)
    vite.watcher.emit('change', join(root, name))
  }
}
