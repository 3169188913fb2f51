import { test } from 'tap'
import { ordersOf, type Control, type ControlDocument } from '../../src/controls/control-document.ts'
import { SharedControls } from '../../src/controls/shared-controls.ts'
import { Changeable } from '../../src/config/changing.ts'
import { Envelope } from '../../src/sessions/index.ts'
import { CONTROLS_KEY } from '../../src/store/keys.ts'
import { instanceName } from '../../src/telemetry/log.ts'
import { PAUSE, readBy03, sharing, writtenBy03 } from '../support/controls/shared-store.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { SECRETS, testRedis } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'

const CUT_OFF = ordersOf('CR-cut-off')

/** So many pauses that were lifted, the oldest first. */
function lifted(count: number, from: number): [string, Control][] {
  return Array.from({ length: count }, (_, at) => [
    ordersOf(`CR${from + at}`),
    { version: from + at, at: Date.now() - 1000, value: null },
  ])
}

const pauseOne = (controls: SharedControls, value: typeof PAUSE | null) =>
  controls.change((version, now) => [CUT_OFF, { version, at: Math.floor(now), value }])

const isPaused = (document: ControlDocument): boolean => Boolean(document.get(CUT_OFF)?.value)
const ended = (document: ControlDocument): number => [...document.values()].filter(({ value }) => value === null).length

/** An instance with a pause that others have lifted, and forgotten behind a thousand others, while it was cut off. */
async function forgottenLift(t: Parameters<typeof sharing>[0]) {
  const shared = await sharing(t)
  const own = { isCutOff: false }
  const cutOff = await shared.start(own)
  await pauseOne(cutOff, PAUSE)
  const pause = cutOff.document.get(CUT_OFF)
  if (pause === undefined) throw new Error('no pause')
  own.isCutOff = true
  const lift = { version: pause.version + 1, at: Date.now(), value: null }
  await shared.write03([[CUT_OFF, lift], ...lifted(1500, pause.version + 2)])
  const other = await shared.start()
  return { ...shared, own, cutOff, other, pause }
}

await test('of the controls that were lifted a thousand are kept, and an instance that comes back with one of the others obeys', async (t) => {
  const { own, cutOff, other, text } = await forgottenLift(t)
  t.notOk(other.document.has(CUT_OFF))
  t.equal(ended(other.document), 1001, 'the last thousand, and what stands for the others')
  t.ok(isPaused(cutOff.document))
  own.isCutOff = false
  await until(() => !isPaused(cutOff.document), 'it has learnt of the lift')
  await cutOff.catchUp()
  await other.catchUp()
  t.notOk(isPaused(other.document))
  t.notOk(isPaused(readBy03(await text())))
})

await test('a pause that was forgotten and that version 0.3 brings back lasts for one poll', async (t) => {
  const { other, text, write03, pause } = await forgottenLift(t)
  await write03([...readBy03(await text()), [CUT_OFF, pause]])
  await other.catchUp()
  t.notOk(isPaused(other.document))
  await until(async () => !isPaused(readBy03(await text())), 'the store has it no more')
})

await test('a pause in force is never forgotten, however many were lifted after it', async (t) => {
  const { start, write03 } = await sharing(t)
  await write03([[CUT_OFF, { version: 1, at: 0, value: PAUSE }], ...lifted(3000, 2)])
  const [one, other] = [await start(), await start()]
  for (const { document } of [one, other, await start()]) {
    t.ok(isPaused(document))
    t.equal(ended(document), 1001)
  }
})

await test('what an instance told nobody is not taken for lifted', async (t) => {
  const { start, write03 } = await sharing(t)
  const own = { isCutOff: true }
  const cutOff = await start(own)
  await pauseOne(cutOff, PAUSE)
  // Version 0.3 counts on from any number.
  await write03(lifted(1500, Number(cutOff.document.get(CUT_OFF)?.version) + 1))
  const other = await start()
  own.isCutOff = false
  await until(() => isPaused(other.document), 'the others obey')
  t.ok(isPaused(cutOff.document))
})

await test('version 0.3 and this one share a document with many lifts, both ways', async (t) => {
  const { start, write03, text } = await sharing(t)
  await write03(lifted(1500, 1))
  const controls = await start()
  const floor = 500
  const by03 = readBy03(await text())
  t.equal(by03.size, 1001)
  t.match(
    [...by03.values()].map(({ version, value }) => [version, value]).filter(([version]) => Number(version) <= floor),
    [[floor, null]],
    'it sees one control more that was lifted',
  )
  const latest = Math.max(...[...by03.values()].map(({ version }) => version))
  await write03([...by03, ['orders', { version: latest + 1, at: Date.now(), value: PAUSE }]])
  await controls.catchUp()
  t.match(controls.document.get('orders'), { value: PAUSE })
  t.equal(ended(controls.document), 1001)
})

await test('with ten thousand lifts behind it a poll does not read them', async (t) => {
  const redis = await testRedis(t)
  const client = await storeClient(t, { redis })
  const store = await connectedStore(t, redis.url)
  const document = writtenBy03(lifted(10_000, 1))
  await client.set(CONTROLS_KEY, document)
  const controls = new SharedControls({
    store,
    confirmed: store,
    index: await store.openIndex(),
    instance: instanceName(),
    envelope: new Envelope(new Changeable([SECRETS])),
    log: { error: (fault: unknown) => t.fail(String(fault)) },
    onChange: () => undefined,
  })
  t.teardown(() => controls.close())
  await controls.open()
  t.ok((await client.strLen(CONTROLS_KEY)) < document.length / 9, 'a thousand of them are left')
  await client.configResetStat()
  for (let polls = 0; polls < 10; polls++) await controls.catchUp()
  const used = await client.info('commandstats')
  t.match(used, /cmdstat_getrange:calls=1\d/)
  t.notMatch(used, /cmdstat_get:/)
})
