import { test } from 'tap'
import { sessionState } from '../../src/sessions/session.ts'
import { sessionKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import type { JarBrowser } from '../support/browser/jar-browser.ts'
import { logIn } from '../support/parts.ts'
import { SECRETS, testServer } from '../support/server/test-server.ts'
import { instanceOn, newSession, sessionRecord } from '../support/sessions/session-instance.ts'
import { startWorld } from '../support/world.ts'

const NEXT = 'the-next-secret-of-thirty-two-bytes-or-more'

/** The tag that `GET /auth/session` shows, there or on the instance with this address. */
async function tagOf(browser: JarBrowser, url?: string): Promise<string> {
  const there = url === undefined ? browser : browser.clone()
  if (url !== undefined) there.page = new URL(url)
  const response = await there.fetch('/auth/session')
  return ((await response.json()) as { session: string }).session
}

await test('GET /auth/session: the tag of a session stays through a roll of secrets, and another login has another', async (t) => {
  const { browser, server, settings } = await startWorld(t, { redis: true })
  const roll = (secrets: string) => testServer(t, { ...settings, PUBLIC_URL: server.url, SESSION_SECRETS: secrets })
  await logIn(browser, server.url)
  const tag = await tagOf(browser)
  t.match(tag, /^[\w-]{16}$/)
  t.equal(await tagOf(browser, (await roll(`${SECRETS},${NEXT}`)).url), tag)
  t.equal(await tagOf(browser, (await roll(`${NEXT},${SECRETS}`)).url), tag)
  await logIn(browser, server.url)
  t.not(await tagOf(browser), tag)
})

await test('the tag of a session stays through a refresh, and shows nothing of its id, its store key or the name in the log', async (t) => {
  const instance = instanceOn(new MemoryStore())
  t.teardown(() => instance.store.close())
  const id = await newSession(instance)
  const session = await instance.sessions.load(id)
  if (session === undefined) throw new Error('the session is gone')
  const tag = (it: typeof session) => {
    const state = sessionState(it, 1, 1)
    return state.authenticated ? state.session : ''
  }
  const refreshed = await instance.sessions.replace(session, sessionRecord({ accessToken: 'next' }))
  t.equal(tag(refreshed ?? session), tag(session))
  for (const secret of [id, sessionKey(id), session.tag, instance.cookie(id)]) {
    t.notOk(secret.includes(tag(session)) || tag(session).includes(secret), secret)
  }
})
