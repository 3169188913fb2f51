import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { Unsent } from '../../src/store/links/unsent.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { loneControls } from '../support/controls/lone-controls.ts'
import { readBy03, versionIn } from '../support/controls/shared-store.ts'
import { SECRETS } from '../support/server/test-server.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

const NEW = 'new-secret-of-thirty-two-bytes-or-more'

/** What an instance shows that starts with these secrets. */
async function shownWith(
  start: Awaited<ReturnType<typeof loneControls>>['start'],
  secrets: readonly string[],
): Promise<unknown> {
  const { controls, shown } = start(new Changeable(secrets))
  await controls.catchUp()
  return shown()
}

await test('a document under a secret that will go is sealed again at once for each list of secrets, and then once a minute at most', async (t) => {
  const pass = stoppedClocks(t)
  const { start, seen, text } = await loneControls()
  const secrets = new Changeable<readonly string[]>([SECRETS])
  const { controls, set } = start(secrets)
  await set('Hello')
  await controls.catchUp()
  secrets.change([NEW, SECRETS])
  await controls.catchUp()
  t.equal(seen.writes.length, 2)
  const other = start(new Changeable<readonly string[]>([SECRETS, NEW]))
  await other.controls.catchUp()
  t.equal(seen.writes.length, 3, 'an instance that has just started does so at once')
  const before = await text()
  for (const [ms, isSealedAgain] of [
    [0, false],
    [59_999, false],
    [1, true],
  ] as const) {
    pass(ms)
    await controls.catchUp()
    t.equal((await text()) !== before, isSealedAgain)
  }
  await controls.catchUp()
  t.equal(seen.writes.length, 4)
  t.same(await shownWith(start, [NEW]), { message: 'Hello' })
})

await test('whoever takes a step of a rotation last leaves the document under the new first secret, whatever happened just before', async (t) => {
  stoppedClocks(t)
  const [first, second, third] = [[SECRETS, NEW], [NEW, SECRETS], [NEW]] as const
  const { start } = await loneControls()
  const lists = [new Changeable<readonly string[]>(first), new Changeable<readonly string[]>(first)] as const
  const [one, other] = [start(lists[0]), start(lists[1])]
  await one.set('Hello')
  const poll = async (): Promise<void> => {
    for (const { controls } of [one, other]) await controls.catchUp()
  }
  await poll()
  lists[0].change(second)
  await poll()
  t.same(await shownWith(start, third), { message: 'Hello' }, 'the other one leaves it so')
  // It writes with the old one.
  await other.set('Good morning')
  await poll()
  t.same(await shownWith(start, third), undefined)
  // The store fails at that moment.
  other.before = () => Promise.reject(new StoreUnavailable('away'))
  lists[1].change(second)
  await poll()
  t.same(await shownWith(start, third), undefined)
  other.before = async () => undefined
  await poll()
  t.same(await shownWith(start, third), { message: 'Good morning' })
  // One that has never taken the step writes, and is gone.
  const gone = start(new Changeable<readonly string[]>(first))
  await gone.controls.catchUp()
  await poll()
  t.same(await shownWith(start, third), undefined)
  lists[0].change(third)
  await poll()
  t.same(
    await shownWith(start, third),
    { message: 'Good morning' },
    'it knew what was written with a secret that it has no more',
  )
})

await test('a document under a secret that will go is sealed again although no replica confirms that', async (t) => {
  stoppedClocks(t)
  const { start, text } = await loneControls()
  const secrets = new Changeable<readonly string[]>([SECRETS])
  const one = start(secrets)
  await one.set('Hello')
  one.before = () => Promise.reject(new StoreUnavailable(new Unsent('no replica confirms')))
  secrets.change([NEW, SECRETS])
  await one.controls.catchUp()
  t.same(await shownWith(start, [NEW]), { message: 'Hello' })
  const sealed = await text()
  await one.controls.catchUp()
  t.equal(await text(), sealed, 'once')
})

await test('the secrets that change while the document is being sealed seal it once more', async (t) => {
  const { start, text } = await loneControls()
  const secrets = new Changeable<readonly string[]>([SECRETS, NEW])
  const one = start(secrets)
  one.before = async () => secrets.change([NEW, SECRETS])
  await one.set('Hello')
  one.before = async () => undefined
  t.equal(readBy03(await text()).size, 1)
  await one.controls.catchUp()
  t.same(await shownWith(start, [NEW]), { message: 'Hello' })
})

await test('a change that is given at the same moment to an instance that cannot read the controls opens no way for orders', async (t) => {
  stoppedClocks(t)
  const { start } = await loneControls()
  const one = start(new Changeable([SECRETS]))
  await one.set('Hello')
  const other = start(new Changeable([NEW, SECRETS]))
  await other.controls.catchUp()
  await one.controls.catchUp()
  t.same([one.controls.warnings.length, one.controls.isUnread], [1, false])
  const [mine, theirs] = [await one.set('Hello'), await other.set(null, 'orders')]
  await one.controls.catchUp()
  t.equal(versionIn(mine), versionIn(theirs))
  t.equal(one.controls.isUnread, true, 'although it knows a control of the same version')
})
