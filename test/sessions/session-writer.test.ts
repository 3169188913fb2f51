import cookies from '@fastify/cookie'
import Fastify from 'fastify'
import { test, type Test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import type { SessionRepository } from '../../src/sessions/repository.ts'
import { SessionCookie } from '../../src/sessions/session-cookie.ts'
import { newSessionId, registerSessionWriter, saveNewSession } from '../../src/sessions/session-writer.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'

/** A server whose route creates a session, and one whose route creates none. */
async function writing(t: Test) {
  const created: unknown[][] = []
  const world = { create: async (): Promise<void> => undefined }
  const repository = {
    create: (...args: unknown[]) => (created.push(args), world.create()),
  } as unknown as SessionRepository
  const secrets = new Changeable(['the secret of a test, of thirty-two bytes'])
  const cookie = new SessionCookie({ prefix: '__Host-', secure: true }, secrets)
  const fastify = Fastify({ trustProxy: true })
  t.teardown(() => fastify.close())
  await fastify.register(cookies)
  await fastify.register(async (scope) => {
    await registerSessionWriter(scope, cookie, repository)
    scope.get('/save', async (request) => {
      const id = newSessionId(request)
      const value = await saveNewSession(request, record)
      return { id, value, left: request.session === null, cookies: request.cookies }
    })
    scope.get('/look', async (request) => ({ id: newSessionId(request), cookies: request.cookies }))
    scope.get('/empty', async (request) => request.session.save().then(() => 'saved'))
    scope.get('/destroy', async (request) => request.session.destroy().then(() => 'destroyed'))
  })
  const record = sessionRecord()
  const ask = (url: string, cookieHeader = '') =>
    fastify.inject({ url, headers: { cookie: cookieHeader, 'x-forwarded-proto': 'https' } })
  return { world, created, cookie, ask, record }
}

await test('a session is created once with its record, and its cookie is signed and left to the caller', async (t) => {
  const { created, cookie, ask, record } = await writing(t)
  const { json, headers } = await ask('/save')
  const { id, value, left } = json()
  t.match(id, /^[\w-]{43}$/)
  t.equal(cookie.verify(value), id)
  t.equal(left, true, 'the plugin has nothing to do any more')
  t.strictSame(created, [[id, record]])
  t.notOk('set-cookie' in headers)
  t.not((await ask('/save')).json().id, id)
})

await test('the session of a request plays no part in that of a login, whose cookie it may not even see', async (t) => {
  const { cookie, ask, created } = await writing(t)
  const { id, value } = (await ask('/save')).json()
  const header = `${cookie.name}=${value}; other=1`
  const look = (await ask('/look', header)).json()
  t.not(look.id, id)
  t.strictSame(look.cookies, { other: '1' })
  const { headers } = await ask('/look', header)
  t.notOk('set-cookie' in headers)
  t.equal(created.length, 1, 'what has no record is not saved')
})

await test('where the store is away, nothing is saved later and no cookie is set', async (t) => {
  const { world, created, ask } = await writing(t)
  world.create = () => Promise.reject(new StoreUnavailable('planted'))
  const { statusCode, headers, body } = await ask('/save')
  t.equal(statusCode, 500)
  t.match(body, 'the session store is unavailable')
  t.equal(created.length, 1)
  t.notOk('set-cookie' in headers)
})

await test('the plugin neither saves a session without a record nor ends one', async (t) => {
  const { created, ask } = await writing(t)
  for (const [path, message] of [
    ['/empty', 'a session needs a record'],
    ['/destroy', 'only SessionRepository.end() ends sessions'],
  ] as const) {
    const { statusCode, body } = await ask(path)
    t.equal(statusCode, 500)
    t.match(body, message)
  }
  t.strictSame(created, [])
})
