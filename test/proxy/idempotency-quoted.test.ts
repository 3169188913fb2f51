import { test } from 'tap'
import { codeOf, keyedWorld } from '../support/idempotency/keyed-world.ts'

await test('A call with an Idempotency-Key', async (t) => {
  const { upstream, order, other } = await keyedWorld(t)

  await t.test(
    'whose key is in double quotes has the same key as without them, and upstream gets it as it came',
    async (t) => {
      for (const [quoted, bare] of [
        ['"one"', 'one'],
        [String.raw`"a\"b\\c"`, String.raw`a"b\c`],
        [`"${'x'.repeat(255)}"`, 'x'.repeat(255)],
      ] as const) {
        upstream.reset()
        t.equal((await order({ key: quoted })).status, 200)
        t.equal(upstream.header('idempotency-key'), quoted)
        for (const key of [bare, quoted]) {
          t.equal((await order({ key, at: other })).headers['idempotency-replayed'], 'true', key)
          t.equal(codeOf(await order({ key, body: 'another' })), 'idempotency_key_reused', key)
        }
        t.equal(upstream.requests.length, 1)
      }
      upstream.reset()
      t.equal((await order({ key: 'two' })).status, 200)
      t.equal((await order({ key: '"two"' })).headers['idempotency-replayed'], 'true')
      t.equal(upstream.requests.length, 1)
    },
  )

  await t.test('whose key is half quoted, or no String of RFC 9651, is refused with 400', async (t) => {
    upstream.reset()
    const half = ['"k', 'k"', '"', '""', '"a"b"', String.raw`"a\b"`, String.raw`"a\"`, '"k";v=1', '"a", "b"']
    for (const key of half) {
      const response = await order({ key })
      t.equal(response.status, 400, key)
      t.equal(codeOf(response), 'bad_request')
    }
    t.equal((await order({ key: `"${'x'.repeat(256)}"` })).status, 400)
    t.equal(upstream.requests.length, 0)
    t.equal((await order({ key: 'a"b' })).status, 200)
  })

  await t.test('whose key is in double quotes is free under both names when it was not executed', async (t) => {
    upstream.reset()
    upstream.answer = (_request, socket) => void socket.write('HTTP/1.1 429 Busy\r\nContent-Length: 0\r\n\r\n')
    t.equal((await order({ key: '"busy"' })).status, 429)
    upstream.reset()
    t.equal((await order({ key: 'busy' })).headers['idempotency-replayed'], undefined)
    t.equal(upstream.requests.length, 1)
  })
})
