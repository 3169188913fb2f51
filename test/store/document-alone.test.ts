import { test } from 'tap'
import { openDocument } from '../../src/store/shared-document.ts'
import type { SubscriberEvents } from '../../src/store/links/channel-subscriber.ts'

/** A document, what it asks its store, and what it hears. */
function documentOf() {
  const log: unknown[] = []
  const world = {
    value: undefined as string | undefined,
    isReplaced: true,
    events: undefined as SubscriberEvents | undefined,
    news: 0,
    during: () => undefined as void,
  }
  const document = openDocument(
    { key: 'key', channel: 'news' },
    () => void world.news++,
    (channel, events) => {
      log.push(['listen', channel])
      world.events = events
      return { close: () => log.push('close') }
    },
    {
      readMarked: async (...args) => (log.push(['read', ...args]), { value: world.value, isKnown: false, now: 7 }),
      replaceMarked: async (...args) => (log.push(['replace', ...args]), world.during(), world.isReplaced),
    },
  )
  return { document, world, log }
}

await test('a document is its text behind its version, and what is written gets a new one, of which all are told', async (t) => {
  const { document, world, log } = documentOf()
  t.same(await document.read(), { version: '', text: '', now: 7 })
  world.value = 'v1 a text'
  t.same(await document.read(), { version: 'v1', text: 'a text', now: 7 })
  const next = await document.write('v1', 'another', 1000)
  t.match(next, /^[\w-]{36}$/)
  t.same(log, [
    ['listen', 'news'],
    ['read', 'key', ''],
    ['read', 'key', ''],
    ['replace', 'key', 'v1', `${next} another`, 1000, { channel: 'news', text: `changed ${next}` }],
  ])
  world.isReplaced = false
  t.equal(await document.write('v1', 'another', 1000), undefined)
  document.close()
  t.equal(log.at(-1), 'close')
})

await test('a change made elsewhere is news, and so is a channel that was away; a change of its own is none', async (t) => {
  const { document, world } = documentOf()
  world.events?.up()
  world.events?.message('changed other')
  t.equal(world.news, 2)
  // The news may come before the reply.
  let own = ''
  const write = document.write('', 'text', 1000)
  own = (await write) ?? ''
  world.events?.message(`changed ${own}`)
  world.events?.message('orders other')
  t.equal(world.news, 2)
})
