import { test } from 'tap'
import { Reads } from '../../src/sockets/feed/streams/reads.ts'
import { CacheQuota } from '../../src/sockets/feed/streams/shared-answer.ts'
import type { OneShots } from '../../src/sockets/feed/upstream/index.ts'
import { RequestReader, dissect } from '../../src/sockets/feed/wire/index.ts'
import { feedWorld } from '../support/feed/world.ts'
import { until } from '../support/time/until.ts'

const MIB = 1_048_576

function nothing(): void {}

await test('CacheQuota keeps 16 MiB at most, for as long as it was told', async (t) => {
  const kept = new CacheQuota()
  let over = 0
  const onOver = (): void => void over++
  t.equal(kept.keep(1, 0, onOver), false, 'nothing is kept for no time')
  t.equal(kept.keep(10 * MIB, 20, onOver), true)
  t.equal(kept.keep(6 * MIB, 20, onOver), true)
  t.equal(kept.keep(1, 20, onOver), false, 'there is no room for one byte more')
  await until(() => over === 2)
  t.equal(kept.keep(16 * MIB, 20, onOver), true, 'there is room again')
  t.equal(kept.keep(1, 20, onOver), false)
  await until(() => over === 3)
})

await test('answers take 16 MiB at most, twice their size each, and what has no room is asked for again', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_CACHE_SECONDS: '3600' })
  market.auto = () => ({ msg_type: 'contracts_for', contracts_for: 'x'.repeat(950_000) })
  const browser = await join()
  const symbols = 'ABCDEFGHI'.split('')
  for (const symbol of [...symbols, 'A', 'H', 'I']) await browser.ask({ contracts_for: symbol })
  t.same(
    market.asked('contracts_for').map(({ message }) => message['contracts_for']),
    [...symbols, 'I'],
  )
})

await test('16 MiB are full of long requests whose answers are short', async (t) => {
  let asked = 0
  const oneShots: Pick<OneShots, 'ask'> = {
    ask: (_write, sender) => {
      asked++
      const answer = dissect(Buffer.from('{"echo_req":{},"req_id":1,"msg_type":"contracts_for","contracts_for":{}}'))
      if (answer !== undefined) queueMicrotask(() => sender.received(answer))
    },
  }
  const browser = { awaits: () => nothing, expectAnswer: () => nothing, outbox: { answer: nothing } } as never
  const answers = { oneShots, fairShare: { admits: () => true }, kept: new CacheQuota() } as never
  const reads = new Reads(answers, { hit: nothing } as never)
  const requests = new RequestReader()
  const ask = async (contracts_for: string): Promise<number> => {
    const passthrough = { text: 'x'.repeat(4000) }
    const request = requests.read(Buffer.from(JSON.stringify({ contracts_for, passthrough })))
    if (request !== undefined) reads.share(browser, request, 3_600_000)
    await Promise.resolve()
    return asked
  }
  const most = Math.floor((16 * MIB) / 4000)
  for (let count = 1; count <= most; count++) await ask(String(count))
  const before = asked
  t.equal(await ask('1'), before, 'the first answer is kept')
  t.equal(await ask(String(most)), before + 1, 'the last one is not')
})
