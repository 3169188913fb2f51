import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createServer } from 'vite'

const CLIENT = new URL('../../../client', import.meta.url).pathname

/** A page that Vite serves while it is developed. */
interface ServedPage {
  readonly port: number
  readonly root: string
}

/**
 * Serves these files, which may import the browser package, and forwards the paths of the server to it. It ends with the test.
 * @param port on which localhost is this server
 */
export async function viteServer(
  t: Test,
  files: Readonly<Record<string, string>>,
  { port, target }: { readonly port: number; readonly target: string },
): Promise<ServedPage> {
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
      fs: { allow: [root, CLIENT] },
      proxy: { '^/(?:auth|api|ws)/': { target, ws: true } },
    },
  })
  t.teardown(() => vite.close())
  await vite.listen()
  return { port, root }
}
