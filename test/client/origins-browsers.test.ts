import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { browsersOr, testWindow } from '../support/browser/browsers.ts'
import { viteServer } from '../support/client/vite-server.ts'
import { httpServer } from '../support/server/http-server.ts'
import { ALONE } from '../support/server/settings.ts'
import { testServer } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'

const DIST = new URL('../../client/dist/', import.meta.url)

/** What a page sees of a response; the name of the error if it may not read it. */
const READ = `(path, credentials) => fetch(path, { credentials })
  .then(async (response) => [response.status, (await response.json()).code ?? '', [...response.headers.keys()].join()])
  .catch(({ name }) => name)`

for (const name of browsersOr('chrome')) {
  await test(`${name}: a page on another port learns that its origin is not listed, and nothing else`, async (t) => {
    const port = await freePort()
    const PUBLIC_URL = `http://localhost:${port}`
    const { log } = await testServer(t, { ...ALONE, PUBLIC_URL, PORT: String(port) })
    const page = `<!doctype html><script type="module">
      import { createClient } from '/client.js'
      globalThis.client = createClient({ baseUrl: '${PUBLIC_URL}' })
      globalThis.sockets = [client.publicSocket(), client.tradingSocket('VRTC100')]
    </script>`
    const url = await httpServer(t, ({ url: path = '' }, response) => {
      if (path === '/') return void response.writeHead(200, { 'content-type': 'text/html' }).end(page)
      readFile(new URL(`.${path}`, DIST)).then(
        (text) => response.writeHead(200, { 'content-type': 'text/javascript' }).end(text),
        () => response.writeHead(404).end(),
      )
    })
    const tab = await (await testWindow(t, name)).newPage()
    await tab.goto(url)
    // Both wait at the same moment: in between, each tries again.
    await tab.waitForFunction(`globalThis.sockets?.every((socket) => {
      const { state, code, reason } = socket.status()
      return state === 'waiting' && code === 1006 && reason === 'origin_rejected'
    })`)
    const read = (path: string, credentials: string): Promise<unknown> =>
      tab.evaluate(`(${READ})('${PUBLIC_URL}${path}', '${credentials}')`)
    for (const path of ['/ws/public', '/ws/session', '/ws/trading/VRTC100']) {
      const [status, code, headers] = (await read(path, 'omit')) as [number, string, string]
      t.same([status, code], [403, 'origin_rejected'])
      t.notMatch(headers, /x-request-id|origin/)
      t.equal(await read(path, 'include'), 'TypeError')
    }
    for (const path of ['/auth/session', '/api/v1/health', '/openapi.json', '/ws/nothing', '/problems/not_found']) {
      t.equal(await read(path, 'omit'), 'TypeError', path)
    }
    const lines = log.filter(({ msg }) => msg === 'an origin is not allowed')
    t.match(lines, [{ origin: url, allowed: [PUBLIC_URL], setting: `FRONTEND_ORIGINS=${PUBLIC_URL},${url}` }])
    t.equal(lines.length, 1)
  })

  await test(`${name}: a page behind the proxy of Vite learns that its name is not listed, and one with the right name has no such reason`, async (t) => {
    const port = await freePort()
    const PUBLIC_URL = `http://localhost:${port}`
    const { log, port: serverPort } = await testServer(t, { ...ALONE, PUBLIC_URL })
    const files = {
      'index.html': '<!doctype html><script type="module" src="/main.js"></script>',
      'main.js': `import { createClient } from 'trading-bff-client'
        globalThis.socket = createClient().publicSocket()
        globalThis.reasons = []
        socket.onStatus(() => reasons.push(socket.status().reason))`,
    }
    await viteServer(t, files, { port, target: `http://127.0.0.1:${serverPort}` })
    const window = await testWindow(t, name)
    const other = await window.newPage()
    await other.goto(`http://127.0.0.1:${port}`)
    await other.waitForFunction(`globalThis.socket?.status().reason === 'origin_rejected'`)
    const refused = log.find(({ msg }) => msg === 'an origin is not allowed')
    t.match(refused, { origin: `http://127.0.0.1:${port}`, open: PUBLIC_URL })
    t.notOk(refused && 'setting' in refused)
    const right = await window.newPage()
    await right.goto(PUBLIC_URL)
    await until(async () => ((await right.evaluate('globalThis.reasons?.filter(Boolean).length')) as number) > 4)
    t.notMatch(await right.evaluate('reasons.join()'), /origin/)
  })
}
