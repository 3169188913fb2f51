import { test } from 'tap'
import { codeOf, keyedWorld } from '../support/idempotency/keyed-world.ts'

/** Less than the timeouts of this test, each of which a byte starts anew. */
const PIECE_MS = 400

await test('A call with an Idempotency-Key to an upstream that is slower and slower', async (t) => {
  const { upstream, order } = await keyedWorld(t, { UPSTREAM_HEADERS_SECONDS: '1', UPSTREAM_BODY_SECONDS: '1' })
  const trickle = (first: string, piece: string): void => {
    upstream.answer = (_request, socket) => {
      socket.write(first)
      const timer = setInterval(() => socket.write(piece), PIECE_MS)
      socket.on('close', () => clearInterval(timer)).on('error', () => undefined)
    }
  }

  await t.test('has an outcome though a byte of the body comes before every timeout', async (t) => {
    upstream.reset()
    trickle('HTTP/1.1 201 Created\r\nContent-Length: 1000\r\n\r\n', 'x')
    const response = await order({ key: 'body' })
    t.equal(codeOf(response), 'upstream_lost')
    t.equal(response.json['outcome'], 'unknown')
    t.equal(codeOf(await order({ key: 'body' })), 'outcome_unknown')
    t.equal(upstream.requests.length, 1)
  })

  await t.test('has an outcome though informational responses come before every timeout', async (t) => {
    upstream.reset()
    trickle('', 'HTTP/1.1 102 Processing\r\n\r\n')
    t.equal(codeOf(await order({ key: 'headers' })), 'upstream_timeout')
    t.equal(codeOf(await order({ key: 'headers' })), 'outcome_unknown')
  })

  await t.test('may take longer when its response is too large to be kept, and is streamed', async (t) => {
    upstream.reset()
    const large = 300_000
    upstream.answer = (_request, socket) => {
      socket.write(`HTTP/1.1 201 Created\r\nContent-Length: ${large}\r\n\r\n${'x'.repeat(large - 8)}`)
      let left = 8
      const timer = setInterval(() => {
        socket.write('x')
        if (--left === 0) clearInterval(timer)
      }, PIECE_MS)
    }
    const response = await order({ key: 'large' })
    t.equal(response.status, 201)
    t.equal(response.bytes.length, large)
    t.equal(codeOf(await order({ key: 'large' })), 'answer_not_kept')
  })
})
