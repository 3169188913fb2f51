import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import { WebSocketServer } from 'ws'
import { freePort } from '../../sandbox/listening.ts'
import { browsersOr, testWindow } from '../support/browser/browsers.ts'
import { viteServer } from '../support/client/vite-server.ts'
import { until } from '../support/time/until.ts'

const GUIDE = await readFile(new URL('../../client/docs/guide.md', import.meta.url), 'utf8')
/** Its lines that close the client of a module which Vite replaces. */
const LINES = /^(?:import\.meta\.hot\?\..+\n)+/m.exec(GUIDE)?.[0] ?? ''

/** A module with a client, as it is after so many edits. */
const trading = (lines: string, edits: number): string => `import { createClient } from 'trading-bff-client'
export const client = createClient()
export const edits = ${edits}
${lines}`

/** A module that uses the client, and that Vite replaces on its own, as it does with components. */
const component = (edits: number): string => `import { client, edits } from './trading.js'
client.publicSocket()
globalThis.edits = edits + ${edits}
import.meta.hot?.accept()`

const PAGE = '<!doctype html><script type="module" src="/component.js"></script>'

for (const name of browsersOr('chrome')) {
  for (const [what, lines, open] of [
    ['the lines of the guide', LINES, 1],
    ['none of them', '', 7],
    ['dispose alone', LINES.replace(/.+accept.+\n/, ''), 7],
  ] as const) {
    await test(`${name}: six edits of the module of a client that has ${what}: ${open} open sockets`, async (t) => {
      const sockets = new WebSocketServer({ port: 0, host: '127.0.0.1' })
      await once(sockets, 'listening')
      t.teardown(() => {
        for (const socket of sockets.clients) socket.terminate()
        sockets.close()
      })
      const target = `http://127.0.0.1:${(sockets.address() as AddressInfo).port}`
      const files = { 'index.html': PAGE, 'trading.js': trading(lines, 0), 'component.js': component(0) }
      const port = await freePort()
      const edit = await viteServer(t, files, { port, target })
      const page = await (await testWindow(t, name)).newPage()
      let loads = 0
      page.on('load', () => loads++)
      await page.goto(`http://localhost:${port}`)
      const edited = (edits: number): Promise<void> =>
        until(async () => (await page.evaluate('globalThis.edits')) === edits, `${edits} edits`)
      await edited(0)
      for (let edits = 1; edits <= 6; edits++) {
        await edit('trading.js', trading(lines, edits))
        await edited(edits)
      }
      for (let edits = 1; edits <= 3; edits++) {
        await edit('component.js', component(edits))
        await edited(6 + edits)
      }
      await until(() => sockets.clients.size === open, `${open} sockets`)
      t.equal(loads, 1, 'the page was never loaded again')
    })
  }
}
