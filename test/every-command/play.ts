import { samplesOf } from '../support/telemetry/metrics.ts'
import type { Act, Journey } from './acts.ts'
import type { Scene } from './scene.ts'

/**
 * One journey, and what holds after each.
 * @param suffer has it acted while something fails
 */
export async function play(
  scene: Scene,
  journey: Journey,
  suffer: (act: Act) => Promise<() => Promise<void>>,
): Promise<void> {
  const { actors, bystanders, expect, soon, lines } = scene
  await scene.reset()
  const judge = await suffer(await journey.begin(scene))
  await judge()
  await soon(async () => (await scene.stored.locks()).length === 0, 'no lock is left')
  await soon(async () => {
    const counts = await samplesOf(scene.servers[0].opsUrl, 'bff_relays')
    const open = [...counts.values()].reduce((sum, count) => sum + count, 0)
    return open === 2 * bystanders.length && scene.upstream.open === bystanders.length
  }, 'no socket is left')
  for (const actor of actors) {
    const { cookie } = actor
    await soon(async () => (await actor.logOut()).status === 204, 'everybody can log out')
    await scene.isDead(actor, cookie)
  }
  await scene.areStillDead()
  // A second fault may have begun just before.
  for (const { goAbout } of bystanders)
    await soon(async () => (await goAbout()) === undefined, 'somebody else is served on sockets that stay open')
  await soon(async () => (await scene.sessionKeys()).length === 0, 'no session is left that nobody has')
  expect((await scene.stored.immortalKeys()).length === 0, 'a key has no lifetime')
  const told = (kind: string) => lines().filter(({ audit }) => audit === kind)
  const endsOf = (session: unknown) => told('session_ended').filter((line) => line['session'] === session).length
  const isEnded = () => told('login').every(({ session }) => endsOf(session) > 0)
  await soon(isEnded, 'the end of each session is in the log')
  const logins = told('login').map(({ session }) => session)
  expect(new Set(logins).size === logins.length, 'a login is in the log twice')
  expect(
    told('session_ended').every(({ session }) => endsOf(session) === 1),
    'an end is in the log twice',
  )
  for (const { level, msg } of lines()) expect(Number(level) < 50, `a line of level ${Number(level)}: ${msg}`)
}
