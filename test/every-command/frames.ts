import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../support/time/until.ts'
import { postLogout } from './acts.ts'
import { FRAME_FAULTS } from './frame-faults.ts'
import { Talk, type Run, type Seat } from './talk.ts'

/** What happens while a piece waits. */
interface Deed {
  readonly act: (seat: Seat) => Promise<unknown>
  /** How the browser's socket may be closed for it. */
  readonly ends?: RegExp
  /** Whether nothing that the browser sends afterwards may reach upstream: nothing at all, or no orders. */
  readonly stops?: 'all' | 'orders'
}

const ENDED = { ends: /^4401 (session_expired|login_required)$/, stops: 'all' } as const
/** Another instance may hear of it a moment later. */
const ENDED_ELSEWHERE = { ends: ENDED.ends }
const subjectOf = ({ scene, actor }: Seat): string => `${scene.world.issuer}#${actor.sub}`
const pause = (seat: Seat) => seat.scene.operate('PUT', '/controls/orders', { paused: true, subject: subjectOf(seat) })
const lift = (seat: Seat) =>
  seat.scene.operate('DELETE', `/controls/orders?subject=${encodeURIComponent(subjectOf(seat))}`)

export const NOTHING = 'nothing'
export const DEEDS: Readonly<Record<string, Deed>> = {
  [NOTHING]: { act: async () => undefined },
  logout: { ...ENDED, act: ({ actor }) => actor.call('POST', '/auth/logout') },
  'logout elsewhere': {
    ...ENDED_ELSEWHERE,
    act: ({ actor, scene }) => actor.call('POST', '/auth/logout', { at: scene.servers[1] }),
  },
  'logout everywhere': {
    ...ENDED_ELSEWHERE,
    async act({ actor, scene }) {
      const other = await scene.user(actor.sub)
      return other.call('POST', '/auth/logout?everywhere=true', { at: scene.servers[1] })
    },
  },
  'logout by the provider': {
    ...ENDED,
    act: async ({ scene, actor }) => postLogout(scene, await scene.world.logoutToken({ sub: actor.sub })),
  },
  'logout by an operator': {
    ...ENDED,
    act: (seat) => seat.scene.operate('DELETE', `/sessions?subject=${encodeURIComponent(subjectOf(seat))}`),
  },
  login: { ...ENDED_ELSEWHERE, act: async ({ scene, actor }) => scene.finish(actor, await actor.startLogin()) },
  pause: { stops: 'orders', act: pause },
  'pause that is lifted': { act: async (seat) => [await pause(seat), await lift(seat)] },
  restart: { ends: /^1012 shutting_down$/, act: async () => undefined },
}

/** Plays one. @returns the piece that has suffered, and what was wrong */
export async function suffer(seat: Seat, run: Run): Promise<{ hit: string | undefined; wrong: string[] }> {
  const { scene, wires } = seat
  const { act, ends, stops } = DEEDS[run.deed] ?? { act: pause }
  const isRestart = run.deed === 'restart'
  const server = isRestart ? await scene.instance() : scene.servers[0]
  wires.browser.target = server.port
  const [wire, other] = run.wire === 'browser' ? [wires.browser, wires.upstream] : [wires.upstream, wires.browser]
  const talk = new Talk(seat, run)
  other.arm()
  const isOfPeer = run.fault.startsWith('comes with')
  const fault = FRAME_FAULTS[run.fault]
  const doAll: typeof fault = async (...args) => {
    if (isRestart) await Promise.race([server.close(), delay(20)])
    await act(seat)
    talk.stoppedAt = stops && wires.browser.passed.client.length
    await fault?.(...args)
  }
  wire.arm(run.at, run.deed === NOTHING ? fault : doAll, isOfPeer)
  await talk.play()
  await wire.suffered
  if (run.fault === 'is never sent on') wire.cut()
  await until(() => wire.open + other.open === 0, 'no connection is left').catch((error) => talk.wrong.push(`${error}`))
  if (wire.hit !== undefined) talk.judge(ends)
  wire.cut()
  other.cut()
  if (stops === 'orders') await lift(seat)
  if (ends !== undefined) {
    await seat.actor.logOut()
    seat.actor = await scene.user()
  }
  if (isRestart) await server.close()
  return { hit: wire.hit, wrong: talk.wrong }
}
