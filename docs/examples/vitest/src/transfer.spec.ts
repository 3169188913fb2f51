// @vitest-environment node
import { once } from 'trading-bff-client'
import { createFakeClient } from 'trading-bff-client/testing'
import { afterEach, expect, test } from 'vitest'

const PATH = '/payment-agents/v1/transfer'
// Node.js 26 keeps what `remember` stores until the file ends, as jsdom does. Node.js 24 alone has no such storage.
afterEach(() => globalThis.sessionStorage?.clear())

test('a transfer whose answer is lost is sent again with its key', async () => {
  const client = createFakeClient({ session: {} })
  const json = { data: { to_nickname: 'somebody', amount: '1.00', currency: 'USD' } }
  client.server.respond('POST', PATH, () => (client.server.calls.length === 1 ? Response.error() : { data: {} }))
  await once((idempotencyKey) => client.api(PATH, { method: 'POST', json, idempotencyKey }), { remember: 'transfer' })
  const keys = client.server.calls.map(({ headers }) => headers.get('Idempotency-Key'))
  expect(keys).toEqual([expect.any(String), keys[0]])
  client.close()
})
