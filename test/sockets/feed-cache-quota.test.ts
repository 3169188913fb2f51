import { test } from 'tap'
import { CacheQuota } from '../../src/sockets/feed/streams/cache-quota.ts'
import { feedWorld, reply } from '../support/feed/world.ts'
import { until } from '../support/time/until.ts'

const MIB = 1_048_576

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
  market.auto = (request) => {
    reply(request, { msg_type: 'contracts_for', contracts_for: 'x'.repeat(950_000) })
    return true
  }
  const browser = await join()
  const symbols = 'ABCDEFGHI'.split('')
  for (const symbol of [...symbols, 'A', 'H', 'I']) await browser.ask({ contracts_for: symbol })
  t.same(
    market.asked('contracts_for').map(({ message }) => message['contracts_for']),
    [...symbols, 'I'],
  )
})
