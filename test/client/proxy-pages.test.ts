import { test } from 'tap'
import { once } from '../../client/dist/client.js'
import { endSession, logOutAtProvider } from '../../client/dist/client/sessions.js'
import { clientOf } from '../support/client/client-of.ts'
import { failure } from '../support/client/page-client.ts'

const TRANSFER = '/payment-agents/v1/transfer'
const SESSION = '{"authenticated":true,"now":1,"expires_at":3601,"idle_expires_at":601,"scope":"trade","session":"s"}'

await test('the page of a proxy is no answer to anything but a GET, whatever its status: orders are unknown, and nobody is logged out', async (t) => {
  let isServer = true
  let headers: Record<string, string> = {}
  const client = await clientOf(t, ({ url }, response) => {
    if (isServer && url === '/auth/session') return void response.end(SESSION)
    response.writeHead(200, headers).end('<form>')
  })
  await client.session.check()
  isServer = false
  const unknown = { name: 'ApiError', status: 200, code: undefined, outcome: 'unknown' }
  const transfer = (idempotencyKey?: string): Promise<unknown> =>
    client.api(TRANSFER, { method: 'POST', idempotencyKey })
  for (const type of ['text/html', 'Text/HTML; charset=utf-8', 'application/xhtml+xml']) {
    headers = { 'content-type': type }
    t.match(await failure(transfer()), unknown)
    t.match(await failure(once(transfer)), { name: 'ApiError', outcome: 'unknown' })
    t.match(await failure(client.logout()), unknown)
    t.match(await failure(logOutAtProvider(client)), unknown)
    t.match(await failure(endSession(client, 'tag')), unknown)
    t.match(await failure(client.session.extend()), unknown)
    t.equal(client.session.get().status, 'active')
    const page = await client.api('/v1/health')
    t.equal(await page.text(), '<form>', 'a page that is read is told from what it should be')
  }
  for (const answer of [
    { 'content-type': 'text/html', 'x-request-id': 'id' },
    { 'content-type': 'application/json' },
    {},
  ]) {
    headers = answer
    t.match(await transfer(), { status: 200 }, 'the trading service may have any type, and a page of tests no header')
  }
})
