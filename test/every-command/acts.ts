import { randomUUID } from 'node:crypto'
import type { Arrival } from '../support/browser/jar-browser.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import type { Answer } from '../support/user.ts'
import type { Actor, Scene } from './scene.ts'

/** What a user or an operator does at an instance while a command to Redis, or a call to a peer, fails. */
export interface Journey {
  readonly name: string
  /** Whether its commands are those of the controls. */
  readonly isOfControls?: boolean
  /** Gets everything ready. */
  readonly begin: (scene: Scene) => Promise<Act>
}

/** @returns judges what was told, once all is well again */
export type Act = () => Promise<() => Promise<void>>

type Sent = Pick<Answer, 'status'> & Partial<Pick<Answer, 'text'>>

/** A call that either succeeds or says truly why not, and then succeeds when it is repeated. */
interface Call {
  readonly send: () => Promise<Sent>
  readonly succeeds: number
  /** What repetitions may be told of what is done. */
  readonly isDone?: number
  /** What holds from the first success on. */
  readonly holds: () => Promise<void>
}

/** A call that succeeds, or can be repeated until it does. */
export function call(name: string, begin: (scene: Scene) => Promise<Call>): Journey {
  return {
    name,
    async begin(scene) {
      const { send, succeeds, isDone = succeeds, holds } = await begin(scene)
      return async () => {
        const { status, text = '' } = await send()
        return async () => {
          if (status === succeeds) return holds()
          const told = text.startsWith(`${status}`) ? text : `${status} ${text}`
          scene.expect(scene.isTrue(told), `it is told ${told}`)
          await scene.soon(async () => [succeeds, isDone].includes((await send()).status), 'it can be repeated')
          await holds()
        }
      }
    },
  }
}

/** The error with which a login ends at the frontend. */
export const errorOf = ({ url }: Arrival): string | null => url.searchParams.get('auth_error')
const sessionOf = ({ browser }: Actor): string | undefined => browser.named('__Host-session')[0]?.value

/** A callback, and if that fails another login. @param judge what holds once one of them has succeeded */
export async function callback(scene: Scene, actor: Actor, path: string, judge: () => Promise<void>) {
  const login = await actor.startLogin(path)
  const before = sessionOf(actor)
  return async () => {
    const told = errorOf(await scene.finish(actor, login))
    const granted = actor.granted.slice(-1)
    return async () => {
      scene.expect(told === null || scene.isTrue(told), `the login ends with ${told}`)
      if (told !== null) {
        const again = async (): Promise<string | null> => errorOf(await login.finish({ code: granted[0]?.code ?? '' }))
        await scene.soon(
          async () => (await again()) !== null || sessionOf(actor) !== before,
          'a repetition says that the login has failed, or finishes it',
        )
        if (sessionOf(actor) === before && granted[0]?.access.length === 1 && scene.calls.hit !== 'tokens')
          await scene.areRevoked({ granted })
      }
      // A browser remembers the partner of a link, so that the next sign-up needs none.
      if (sessionOf(actor) === before) await logIn(scene, actor, path.replace(/&.*/, ''))
      await judge()
      await scene.isAlive(actor)
    }
  }
}

/** Logs in, however often that has to be tried. */
export async function logIn(scene: Scene, actor: Actor, path?: string): Promise<void> {
  const tries = async (): Promise<boolean> => {
    const login = await actor.startLogin(path)
    return login.state !== '' && errorOf(await scene.finish(actor, login)) === null
  }
  await scene.soon(tries, 'a login succeeds')
}

/** How many sign-ups with a partner all instances have counted. */
export async function signups({ servers }: Scene): Promise<number> {
  const all = await Promise.all(servers.map(({ opsUrl }) => samplesOf(opsUrl, 'bff_signups_completed_total')))
  return all.reduce((sum, samples) => sum + (samples.get('attributed="true"') ?? 0), 0)
}

/** An order with a key. @param change what upstream does with it */
export function order(name: string, change: (scene: Scene, actor: Actor, key: string) => unknown): Journey {
  return call(name, async (scene) => {
    const [actor, key] = [await scene.user(), randomUUID()]
    await change(scene, actor, key)
    return {
      send: () => actor.order({ key }),
      succeeds: 200,
      async holds() {
        const [, at] = scene.servers
        const repeated = () => actor.order({ key, at })
        await scene.soon(async () => (await repeated()).headers['idempotency-replayed'] === 'true', 'it is replayed')
        scene.expect(scene.orders.filter((each) => each === key).length === 1, 'it was not executed once')
      },
    }
  })
}

/** What ends sessions. @param begin which ones, besides that of the first user */
export function end(
  name: string,
  begin: (scene: Scene, actor: Actor) => Promise<Omit<Call, 'holds'> & { ends: readonly Actor[]; revokes?: Actor }>,
): Journey {
  return call(name, async (scene) => {
    const { ends, revokes, ...rest } = await begin(scene, await scene.user())
    const cookies = ends.map(({ cookie }) => cookie)
    return {
      ...rest,
      async holds() {
        await Promise.all(ends.map((each, at) => scene.isDead(each, cookies[at] ?? '')))
        if (revokes !== undefined) await scene.areRevoked(revokes)
      },
    }
  })
}

/** A logout of this browser's session. @param succeeds the status of one that is done */
export const logout = (query: string, succeeds = 204): Journey =>
  end(`POST /auth/logout${query}`, async (scene, actor) => {
    const other = query.includes('everywhere') ? [await scene.user(actor.sub)] : []
    // A browser that is told 204 forgets its cookie.
    const { cookie } = actor
    const send = () => actor.call('POST', `/auth/logout${query}`, { headers: { cookie } })
    return { send, succeeds, ends: [actor, ...other], revokes: actor }
  })

/** A socket that opens, or can be opened again. */
export const socket = (path: string): Journey => ({
  name: `GET ${path}`,
  async begin(scene) {
    const actor = await scene.user()
    /** Whether it opens, all the way. */
    const opens = async (): Promise<boolean> => {
      const browser = actor.socket(path)
      browser.socket.once('open', () => browser.socket.send('{"ping":1}'))
      const isOpen = (await browser.count(1)).length > 0
      if (!isOpen) {
        const { code, reason } = await browser.closed
        scene.expect(scene.isTrue(`${code} ${reason}`), `it is closed with ${code} ${reason}`)
        if (code === 4401) await logIn(scene, actor)
      }
      browser.socket.close()
      return isOpen
    }
    return async () => {
      await opens()
      return async () => {
        await scene.soon(opens, 'a socket opens')
      }
    }
  },
})

/** The provider logs a user out. */
export async function postLogout({ world, servers }: Scene, token: string, at = servers[0]): Promise<Sent> {
  const response = await world.postLogout(token, at)
  return { status: response.status, text: await response.text() }
}

/** A pause of all orders, and its end. */
export const pause: Journey = {
  name: 'PUT /controls/orders',
  isOfControls: true,
  async begin(scene) {
    const actor = await scene.user()
    const areAt = (status: number): Promise<unknown> =>
      Promise.all(
        scene.servers.map((at) =>
          scene.soon(async () => (await actor.order({ at })).status === status, `orders get ${status}`),
        ),
      )
    return async () => {
      const told = await scene.operate('PUT', '/controls/orders', { paused: true })
      return async () => {
        scene.expect(told === 200 || told === 503, `it is told ${told}`)
        await areAt(503)
        await scene.soon(async () => (await scene.operate('DELETE', '/controls/orders')) === 200, 'it is lifted')
        await areAt(200)
      }
    }
  },
}
