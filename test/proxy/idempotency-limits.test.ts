import { test } from 'tap'
import { sendTo, type Answer, TRANSFER } from '../support/user.ts'
import { codeOf, keyedWorld } from '../support/idempotency/keyed-world.ts'
import { ok } from '../support/upstream/raw-upstream.ts'

const codes = async (answers: readonly Promise<Answer>[]): Promise<unknown[]> =>
  (await Promise.all(answers)).map((answer) => (answer.status === 200 ? 200 : codeOf(answer)))

const keys = (count: number) => Array.from({ length: count }, (_each, index) => `key ${index}`)

await test('What one session can fill with Idempotency-Keys is limited', async (t) => {
  const world = await keyedWorld(t, { IDEMPOTENCY_MAX_RECORDS: '4', IDEMPOTENCY_MAX_KEPT_BYTES: '4000' })
  const { upstream, order, other, server } = world
  const instances = [server, other]

  await t.test('a call that was not executed does not count', async (t) => {
    upstream.answer = (_request, socket) => void socket.write('HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n')
    for (const key of keys(20)) t.equal((await order({ key })).status, 429)
    upstream.reset()
  })

  await t.test(
    'beyond IDEMPOTENCY_MAX_RECORDS responses are not kept, and beyond twice as many calls are refused',
    async (t) => {
      for (const [index, key] of keys(8).entries())
        t.equal((await order({ key, at: instances[index % 2] })).status, 200, key)
      t.same(await codes(keys(8).map((key) => order({ key }))), [
        ...Array.from({ length: 4 }, () => 200),
        ...Array.from({ length: 4 }, () => 'answer_not_kept'),
      ])
      t.equal(upstream.requests.length, 8)
      for (const at of instances) {
        const refused = await order({ key: 'one too many', at })
        t.equal(refused.status, 429)
        t.equal(codeOf(refused), 'rate_limited')
        t.ok(Number(refused.headers['retry-after']) > 0)
      }
      t.equal(upstream.requests.length, 8)
      t.equal((await order({ key: 'key 0' })).status, 200, 'what is known is still said')
    },
  )
})

await test('Beyond IDEMPOTENCY_MAX_KEPT_BYTES the responses of a session are not kept', async (t) => {
  const settings = {
    IDEMPOTENCY_MAX_RECORDS: '100',
    IDEMPOTENCY_MAX_KEPT_BYTES: '10000',
    IDEMPOTENCY_MAX_ANSWER_BYTES: '5000',
  }
  const { upstream, order } = await keyedWorld(t, settings)
  upstream.answer = (_request, socket) => void socket.write(ok('x'.repeat(4000)))
  for (const key of ['a', 'b', 'c']) t.equal((await order({ key })).status, 200)
  t.same(await codes(['a', 'b', 'c'].map((key) => order({ key }))), [200, 200, 'answer_not_kept'])
  upstream.answer = (_request, socket) => void socket.write(ok('small'))
  t.equal((await order({ key: 'd' })).text, 'small')
  t.equal((await order({ key: 'd' })).text, 'small', 'a small response still has room')
})

await test('REQUIRE_IDEMPOTENCY_KEY refuses the calls that it names when they have no key', async (t) => {
  const { upstream, call, order, instance, cookie } = await keyedWorld(t, {
    REQUIRE_IDEMPOTENCY_KEY: '/payment-agents/v1/transfer,/trading/v1/options/contracts/bulk-purchase/{kind}',
  })
  for (const path of [TRANSFER, '/api/trading/v1/options/contracts/bulk-purchase/demo']) {
    const response = await call('POST', path, { body: '{}' })
    t.equal(response.status, 400)
    t.equal(codeOf(response), 'idempotency_key_required')
    t.equal((await order({ key: path, path })).status, 200)
  }
  t.equal(upstream.requests.length, 2)
  t.equal((await call('POST', '/api/payment-agents/v1/withdraw', { body: '{}' })).status, 200)
  const strict = await instance({ REQUIRE_IDEMPOTENCY_KEY: 'all' })
  const headers = { cookie, 'x-csrf': '1' }
  for (const [method, path] of [
    ['POST', '/api/payment-agents/v1/withdraw'],
    ['PATCH', '/api/payment-agents/v1/clients/me'],
  ] as const) {
    t.equal(codeOf(await sendTo(strict.port, method, path, { headers, body: '{}' })), 'idempotency_key_required')
  }
  t.equal((await sendTo(strict.port, 'GET', '/api/wallet/v1/wallets', { headers })).status, 200)
})
