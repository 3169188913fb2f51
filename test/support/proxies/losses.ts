import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Send } from './connection.ts'
import { hasServed, type Fleet } from '../deployment/deployed.ts'
import { ACCOUNTS, TRANSFER, VERIFICATION } from './requests.ts'
import { ready, type ServerProcess } from '../server/server-process.ts'
import { untilSlow } from '../time/until.ts'

const CALLERS = 4
const PAUSE_MS = 15

/** Kills an instance during orders while another one runs, and checks that no order is executed twice. */
export async function noOrderIsRepeated(
  t: Test,
  { upstream }: Fleet,
  connect: (allowH2: boolean) => Send,
  victim: ServerProcess,
  launchOther: () => Promise<ServerProcess>,
): Promise<ServerProcess> {
  const usual = upstream.onRest
  const arrived: string[] = []
  upstream.onRest = (request, response) => {
    if (request.method === 'POST') arrived.push(request.url ?? '')
    else usual(request, response)
  }
  const orders = [
    { allowH2: false, path: TRANSFER, body: '{}' },
    { allowH2: false, path: VERIFICATION, body: null },
    { allowH2: true, path: TRANSFER, body: '{}' },
    { allowH2: true, path: VERIFICATION, body: null },
  ]
  const outcomes = await Promise.all(
    orders.map(async ({ allowH2, path, body }) => {
      const send = connect(allowH2)
      // A proxy may treat the first request of a connection differently.
      await (await send(ACCOUNTS)).arrayBuffer()
      const outcome = send(path, { method: 'POST', body }).then(
        ({ status }) => status,
        (error: unknown) => error,
      )
      return { outcome }
    }),
  )
  await untilSlow(() => arrived.length === outcomes.length)
  const other = await launchOther()
  t.ok(await ready(other))
  const asker = connect(false)
  await untilSlow(async () => {
    await (await asker(ACCOUNTS)).arrayBuffer()
    return hasServed(other)
  })
  victim.child.kill('SIGKILL')
  for (const { outcome } of outcomes) {
    const status = await outcome
    t.ok(Number(status) >= 500, `a lost order gets a 5xx: ${String(status)}`)
  }
  await delay(500)
  t.equal(arrived.length, outcomes.length, 'and is not sent again')
  upstream.onRest = usual
  return other
}

/** Replaces one instance by another under load, and checks that no call is lost. */
export async function rollLosesNothing(
  t: Test,
  fleet: Fleet,
  sends: readonly Send[],
  old: ServerProcess,
  launchNew: () => Promise<ServerProcess>,
): Promise<ServerProcess> {
  const stage = { isOver: false }
  const outcomes: { id: string; outcome: unknown }[] = []
  const load = Array.from({ length: CALLERS }, async (_, caller) => {
    for (let count = 0; !stage.isOver; count++) {
      const id = `roll-${caller}-${count}`
      const send = sends[caller % sends.length]
      const call = count % 2 === 0 ? send?.(`${ACCOUNTS}?${id}`) : send?.(TRANSFER, { method: 'POST', body: id })
      const outcome = await call?.then(
        async (answer) => (await answer.text(), answer.status),
        (error: unknown) => (error as Error).cause ?? error,
      )
      outcomes.push({ id, outcome })
      await delay(PAUSE_MS)
    }
  })
  const fresh = await launchNew()
  t.ok(await ready(fresh))
  await untilSlow(() => hasServed(fresh))
  old.child.kill('SIGTERM')
  t.equal(await old.exited, 0, 'the old one has drained')
  stage.isOver = true
  await Promise.all(load)
  t.same(
    outcomes.filter(({ outcome }) => outcome !== 200),
    [],
    `${outcomes.length} calls during a roll, all answered`,
  )
  const executed = fleet.executed.filter((id) => id.startsWith('roll-'))
  t.same(executed.toSorted(), outcomes.map(({ id }) => id).toSorted(), 'each executed once')
  return fresh
}
