import { randomUUID } from 'node:crypto'
import { ACCOUNTS, TRADING, type Answer } from '../support/user.ts'
import { callback, call, end, logIn, logout, postLogout, socket, type Journey } from './acts.ts'
import { JOURNEYS } from './journeys.ts'
import type { Actor, Scene } from './scene.ts'

/** What a call of a user was told, in words. */
function toldOf(answer: Answer | undefined): string {
  if (answer === undefined) return 'broken off'
  const { code, outcome } = answer.headers['content-type']?.includes('problem') ? answer.json : {}
  return [answer.status, code, outcome].filter(Boolean).join(' ')
}

/** A GET, which after the end of its session is repeated with another one. @param begin whose it is */
function read(name: string, begin: (scene: Scene) => Promise<Actor>): Journey {
  return call(name, async (scene) => {
    const actor = await begin(scene)
    const send = async () => {
      const answer = await actor.call('GET', ACCOUNTS).catch(() => undefined)
      if (answer?.status === 401) await logIn(scene, actor)
      return { status: answer?.status ?? 0, text: toldOf(answer) }
    }
    return { send, succeeds: 200, holds: () => scene.isAlive(actor) }
  })
}

/** An order. @param begin whose it is */
function order(name: string, hasKey: boolean, begin: (scene: Scene) => Promise<Actor>): Journey {
  return {
    name,
    async begin(scene) {
      const [actor, key] = [await begin(scene), randomUUID()]
      const send = async (): Promise<string> => {
        const answer = await actor.order(hasKey ? { key } : {}).catch(() => undefined)
        if (answer?.status === 401) await logIn(scene, actor)
        return toldOf(answer)
      }
      const executions = (): number => {
        const names = hasKey ? [key] : actor.granted.flatMap(({ access }) => access)
        return scene.orders.filter((each) => names.includes(each)).length
      }
      return async () => {
        const first = await send()
        return async () => {
          const judged = (told: string): boolean => {
            if (told !== '200') scene.expect(scene.isTrue(told), `it is told ${told}`)
            return told === '200'
          }
          if (isUnknown(first)) {
            judged(first)
            if (hasKey) scene.expect((await send()) === '409 outcome_unknown unknown', 'a repetition is told otherwise')
            scene.expect(executions() <= 1, `${executions()} executions`)
          } else {
            if (!judged(first)) await scene.soon(async () => judged(await send()), 'it can be repeated')
            scene.expect(executions() === 1, `${executions()} executions`)
          }
          await scene.isAlive(actor)
        }
      }
    },
  }
}

/** Whether a call may have been executed for all that its user was told. */
const isUnknown = (told: string): boolean => / unknown$|^broken off$/.test(told)

/** A user whose first token upstream refuses. */
async function refused(scene: Scene): Promise<Actor> {
  const actor = await scene.user()
  for (const token of actor.granted[0]?.access ?? []) scene.refused.add(token)
  return actor
}

/** All logins. */
export const LOGINS = JOURNEYS.filter(({ name }) => name.startsWith('GET /auth/callback'))

/** All in which a peer is called. */
export const CALL_JOURNEYS: readonly Journey[] = [
  ...LOGINS,
  {
    name: 'GET /auth/callback at an instance without the keys',
    async begin(scene) {
      const at = await scene.instance()
      const actor = scene.visitor(undefined, at)
      const act = await callback(scene, actor, '/auth/login', async () => undefined)
      return async () => {
        const judge = await act()
        return async () => {
          await judge()
          const { status } = await actor.call('POST', '/auth/logout', { at: scene.servers[0] })
          scene.expect(status === 204, 'the user can log out')
          scene.actors.pop()
        }
      }
    },
  },
  end('POST /auth/backchannel-logout at an instance without the keys', async (scene, actor) => {
    const [at, token] = await Promise.all([
      scene.instance(),
      scene.world.logoutToken({ sub: actor.sub, sid: actor.granted[0]?.sid }),
    ])
    return { send: () => postLogout(scene, token, at), succeeds: 200, ends: [actor] }
  }),
  read('GET /api', (scene) => scene.user()),
  read('GET /api with a token that has expired', (scene) => scene.user(undefined, 0.001)),
  read('GET /api with a token that upstream refuses', refused),
  order('POST /api with a key', true, (scene) => scene.user()),
  order('POST /api', false, (scene) => scene.user()),
  order('POST /api with a key and a token that has expired', true, (scene) => scene.user(undefined, 0.001)),
  order('POST /api with a key and a token that upstream refuses', true, refused),
  socket(TRADING),
  socket('/ws/public'),
  logout(''),
  logout('?everywhere=true'),
  logout('?provider=true', 200),
]
