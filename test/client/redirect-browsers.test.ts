import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { browsersOr, testWindow } from '../support/browser/browsers.ts'
import { httpServer } from '../support/server/http-server.ts'

const DIST = new URL('../../client/dist/', import.meta.url)
const SESSION = '{"authenticated":true,"now":1,"expires_at":3601,"idle_expires_at":601,"scope":"trade","session":"s"}'
const PAGE = `<!doctype html><script type="module">
  import { createClient, once } from '/client.js'
  const client = createClient()
  globalThis.order = () =>
    once(
      (idempotencyKey) => client.api('/payment-agents/v1/transfer', { method: 'POST', body: '{}', idempotencyKey }),
      { remember: 'transfer' },
    ).then(
      () => 'made',
      ({ name, status, outcome, response }) => ({ name, status, outcome, type: response?.type }),
    )
</script>`

for (const name of browsersOr('chrome')) {
  await test(`${name}: an order that a proxy leads to its login has an unknown outcome, and keeps its key over a reload`, async (t) => {
    const keys: unknown[] = []
    let followed = 0
    let isLoggedIn = false
    const url = await httpServer(t, ({ url = '', headers }, response) => {
      if (url === '/') return void response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE)
      if (url.endsWith('.js')) {
        response.writeHead(200, { 'content-type': 'text/javascript' })
        return void response.end(readFileSync(new URL(`.${url}`, DIST)))
      }
      if (url === '/auth/session') return void response.end(SESSION)
      if (!url.startsWith('/api/')) {
        if (url === '/proxy/login') followed++
        return void response.end('<form>')
      }
      keys.push(headers['idempotency-key'])
      if (isLoggedIn) return void response.writeHead(200, { 'x-request-id': 'id' }).end('{}')
      response.writeHead(302, { location: '/proxy/login' }).end()
    })
    const window = await testWindow(t, name)
    const page = await window.newPage()
    const order = async (): Promise<unknown> => {
      await page.goto(url)
      await page.waitForFunction('globalThis.order')
      return page.evaluate('order()')
    }
    t.same(await order(), { name: 'ApiError', status: 0, outcome: 'unknown', type: 'opaqueredirect' })
    t.equal(followed, 0)
    isLoggedIn = true
    t.equal(await order(), 'made')
    t.equal(new Set(keys).size, 1)
  })
}
