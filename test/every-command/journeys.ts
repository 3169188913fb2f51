import { ACCOUNTS, TRADING } from '../support/user.ts'
import {
  call,
  callback,
  end,
  errorOf,
  logIn,
  logout,
  order,
  pause,
  postLogout,
  signups,
  socket,
  type Journey,
} from './acts.ts'

const SIDC = '6a1c4d2e-0000-4000-8000-000000000000'
const LINK = `/auth/signup?return_to=/&sidc=${SIDC}&utm_source=CU1&utm_medium=affiliate&utm_campaign=autumn`

/** All of them. What holds once a call has succeeded is told beside it; what holds after each journey is in the test. */
export const JOURNEYS: readonly Journey[] = [
  {
    name: 'GET /auth/login',
    async begin(scene) {
      const actor = scene.visitor()
      return async () => {
        const { arrival, state } = await actor.startLogin()
        return async () => {
          scene.expect(state !== '' || errorOf(arrival) === 'try_later', `it ends at ${arrival.url.href}`)
          await logIn(scene, actor)
        }
      }
    },
  },
  {
    name: 'GET /auth/callback',
    begin: (scene) => callback(scene, scene.visitor(), '/auth/login', async () => undefined),
  },
  {
    name: 'GET /auth/callback of a sign-up with a partner',
    async begin(scene) {
      const [actor, before] = [scene.visitor(), await signups(scene)]
      return callback(scene, actor, LINK, async () => {
        await scene.soon(
          async () => (await signups(scene)) === before + 1,
          'the sign-up is counted once, with its partner',
        )
      })
    },
  },
  {
    name: 'GET /auth/callback that replaces a session',
    async begin(scene) {
      const actor = await scene.user()
      const { cookie } = actor
      return callback(scene, actor, '/auth/login', async () => {
        await scene.isDead(actor, cookie)
      })
    },
  },
  call('GET /api', async (scene) => {
    const actor = await scene.user()
    return { send: () => actor.call('GET', ACCOUNTS), succeeds: 200, holds: () => scene.isAlive(actor) }
  }),
  call('GET /api with a token that has expired', async (scene) => {
    const actor = await scene.user(undefined, 0.001)
    return { send: () => actor.call('GET', ACCOUNTS), succeeds: 200, holds: () => scene.isAlive(actor) }
  }),
  order('POST /api with a key', () => undefined),
  order('POST /api with a key, repeated', async (_scene, actor, key) => actor.order({ key })),
  order('POST /api with a key and a token that upstream refuses', (scene, { granted }) =>
    granted[0]?.access.forEach((token) => scene.refused.add(token)),
  ),
  socket(TRADING),
  socket('/ws/session'),
  logout(''),
  logout('?everywhere=true'),
  logout('?provider=true', 200),
  end('POST /auth/backchannel-logout by sid', async (scene, actor) => {
    const token = await scene.world.logoutToken({ sub: actor.sub, sid: actor.granted[0]?.sid })
    return { send: () => postLogout(scene, token), succeeds: 200, ends: [actor] }
  }),
  end('POST /auth/backchannel-logout by sub', async (scene, actor) => {
    const other = await scene.user(actor.sub)
    // After it: logins that are younger than the token do not end.
    const token = await scene.world.logoutToken({ sub: actor.sub })
    return {
      send: () => postLogout(scene, token),
      succeeds: 200,
      ends: [actor, other],
    }
  }),
  end('DELETE /auth/sessions/<tag>', async (scene, actor) => {
    const other = await scene.user(actor.sub)
    const { json } = await other.call('GET', '/auth/session')
    return {
      send: () => actor.call('DELETE', `/auth/sessions/${String(json['session'])}`),
      succeeds: 204,
      isDone: 404,
      ends: [other],
    }
  }),
  call('GET /auth/sessions', async (scene) => {
    const actor = await scene.user()
    await scene.user(actor.sub)
    const list = () => actor.call('GET', '/auth/sessions')
    return {
      send: list,
      succeeds: 200,
      holds: () =>
        scene.soon(async () => {
          const { sessions = [] } = (await list()).json as { sessions?: unknown[] }
          return sessions.length === 2
        }, 'both are listed'),
    }
  }),
  end('DELETE /sessions by the operator', async (scene, actor) => {
    const other = await scene.user(actor.sub)
    const { json } = await actor.call('GET', '/auth/session')
    const path = `/sessions?${new URLSearchParams({ subject: String(json['subject']) }).toString()}`
    return { send: async () => ({ status: await scene.operate('DELETE', path) }), succeeds: 200, ends: [actor, other] }
  }),
  pause,
]
