import { test } from 'tap'
import { ownWorld } from '../support/feed/own-world.ts'
import { feedWorld, reply } from '../support/feed/world.ts'
import { until } from '../support/time/until.ts'

await test('the messages of an own socket are counted in both directions', async (t) => {
  const { market, join, metric } = await feedWorld(t)
  const browser = await join()
  const count = async (direction: string): Promise<unknown[]> => {
    const names = ['bff_relay_messages_total', 'bff_relay_bytes_total']
    return Promise.all(names.map(async (name) => (await metric(name)).get(`direction="${direction}"`)))
  }
  const texts = ['{"proposal":1}', '{"proposal":22}', '{"proposal":333}']
  for (const text of texts) browser.send(text)
  await until(() => market.requests.length === texts.length, 'upstream has them')
  t.same(await count('to_upstream'), [3, texts.join('').length])
  market.requests[0]?.socket.send('{"proposal":{}}')
  await browser.nextText()
  t.same(await count('to_browser'), [1, '{"proposal":{}}'.length])
})

await test('of an own socket only the answer to a request of this server’s is kept from the browser', async (t) => {
  const { market, join } = await feedWorld(t)
  const browser = await join()
  browser.send('{"proposal":1,"req_id":1}')
  const { socket: own } = await market.next('proposal')
  const request = await market.askedBy(browser, { forget_all: 'proposal', req_id: 2 })
  // Pages count from 1 upwards, some from 0, and may send negative numbers.
  const ofThePage = [-1, 0, 1, 2, 3].map((id) => `{ "proposal": {}, "req_id": ${id} }`)
  for (const text of [...ofThePage, 'no JSON', '{"req_id":9007199254740993}']) {
    own.send(text)
    t.equal(await browser.nextText(), text)
  }
  const answer = JSON.stringify({ forget_all: ['of-own'], req_id: request.message['req_id'] })
  own.send(Buffer.from(answer))
  t.equal(await browser.nextText(), answer, 'upstream answers in text')
  t.equal(browser.client.received.at(-1)?.isBinary, true)
  reply(request, { forget_all: ['of-own'], msg_type: 'forget_all' })
  t.match(await browser.next(), { req_id: 2, forget_all: ['of-own'] })
  own.send(answer)
  t.equal(await browser.nextText(), answer, 'there is one answer')
})

await test('requests of this server’s on one own socket get their own answers', async (t) => {
  const { member, open } = await ownWorld(t)
  const peer = await open()
  const asked: string[] = []
  peer.on('message', (data: Buffer) => asked.push(data.toString()))
  const answers: unknown[] = []
  for (const name of ['first', 'second']) {
    member.own?.ask(
      (reqId) => Buffer.from(`{"req_id":${reqId}}`),
      ({ body }) => answers.push([name, body.toString()]),
    )
  }
  await until(() => asked.length === 2, 'upstream has both')
  for (const [index, text] of [...asked.entries()].toReversed()) peer.send(`{"index":${index},${text.slice(1)}`)
  await until(() => answers.length === 2, 'both are answered')
  t.same(answers, [
    ['second', '"index":1}'],
    ['first', '"index":0}'],
  ])
})
