import { control } from '../../support/controls/controls-world.ts'
import { operate } from '../../support/login/identity.ts'
import { postForm } from '../../support/login/oidc-world.ts'
import { until } from '../../support/time/until.ts'
import { ACCOUNTS, TRADING } from '../../support/user.ts'
import { hasSubjects, logIn, told, type Expect, type Part } from './part.ts'
import type { Person, RowWorld } from './row-world.ts'

/** An operator pauses orders, and ends the sessions of a user. */
export const operator: Part = async (world, expect) => {
  const { settings, servers } = world
  const [one] = servers
  if (!settings['OPS_TOKEN'] || one === undefined) return
  // One key, which may be all that a session has, and no body, which may be all that a key allows.
  const order = (at: typeof one) => person.order({ at, key: 'of-cid', body: '' })
  const person = await logIn(world, 'cid')
  const paused = await control(one, 'PUT', '/orders', { paused: true, message: 'wait' })
  expect(paused.status === 200, `a pause gets ${paused.status} ${JSON.stringify(paused.json)}`)
  for (const at of servers) {
    const session = async () => (await person.call('GET', '/auth/session', { at })).json
    await until(async () => (await session())['orders_paused'] !== undefined, 'pages hear of the pause')
    const refused = await order(at)
    expect(
      refused.status === 503 && refused.json['code'] === 'orders_paused',
      `an order during the pause: ${told(refused)}`,
    )
    const read = await person.call('GET', ACCOUNTS, { at })
    expect(read.status === 200, `a read during the pause: ${told(read)}`)
  }
  const lifted = await control(one, 'DELETE', '/orders')
  expect(lifted.status === 200, `a lift gets ${lifted.status}`)
  for (const at of servers)
    // A second instance may only know that the first one has executed it.
    await until(async () => /^200|answer_not_kept/.test(told(await order(at))), 'the pause is lifted')
  if (!hasSubjects(world)) return
  const { json } = await person.call('GET', '/auth/session')
  const ended = await operate(one, 'DELETE', { subject: String(json['subject']) })
  const body = await ended.text()
  expect(ended.status === 200, `the operator ends sessions: ${ended.status} ${body}`)
  for (const at of servers) await isOver(person, at, expect, 'an operator')
}

async function isOver(person: Person, at: RowWorld['servers'][number], expect: Expect, by: string): Promise<void> {
  const { cookie } = person
  const gone = async () => (await person.call('GET', ACCOUNTS, { at, headers: { cookie } })).status === 401
  await until(gone, `a session that ${by} has ended is over`).catch(({ message }: Error) => expect(false, message))
}

/** Upstream refuses a token. */
export const renewal: Part = async (world, expect) => {
  const { refused, granted } = world
  const person = await logIn(world, 'ben')
  const grant = granted.at(-1)
  const [token = ''] = grant?.access ?? []
  refused.add(token)
  const read = await person.call('GET', ACCOUNTS)
  const canRenew = (grant?.refresh.length ?? 0) > 0
  if (!canRenew) return expect(read.json['code'] === 'session_expired', `a refused token: ${told(read)}`)
  expect(read.status === 200 && grant?.access.length === 2, `a refused token is renewed: ${told(read)}`)
}

/** A user logs out, and the provider logs another one out. */
export const ends: Part = async (world, expect) => {
  const { settings, servers, granted, provider } = world
  const [one, other = one] = servers
  if (one === undefined || other === undefined) return
  const mine = world.ann
  const theirs = await logIn(world, 'ann')
  const alive = await mine.call('GET', ACCOUNTS)
  const isAlone = hasSubjects(world) && settings['MAX_SESSIONS_PER_SUBJECT'] === '1'
  expect(alive.status === (isAlone ? 401 : 200), `the session before: ${told(alive)}`)
  const list = await theirs.call('GET', '/auth/sessions')
  if (!hasSubjects(world)) expect(list.status === 409, `the list of sessions: ${told(list)}`)
  else expect((list.json['sessions'] as unknown[]).length === (isAlone ? 1 : 2), `the sessions: ${told(list)}`)
  const socket = await theirs.socket(TRADING, { at: other }).opened()
  const { cookie } = theirs
  const grant = granted.at(-1)
  const everywhere = hasSubjects(world) ? '&everywhere=true' : ''
  const answer = await theirs.call('POST', `/auth/logout?provider=true${everywhere}`, { headers: { cookie } })
  const hasAddress = settings['END_SESSION_URL'] !== undefined
  expect(answer.status === (hasAddress ? 200 : 204), `a logout: ${told(answer)}`)
  if (hasAddress) {
    const address = new URL(String(answer.json['logout_url']))
    expect(address.searchParams.has('id_token_hint') === Boolean(settings['ID_TOKEN_HINT']), `it names ${address.href}`)
  }
  const { code } = await socket.closed
  expect(code === 4401, `its socket closes with ${code}`)
  for (const at of servers) {
    const gone = await theirs.call('GET', ACCOUNTS, { at, headers: { cookie } })
    expect(gone.status === 401, `a call after the logout: ${told(gone)}`)
    if (hasSubjects(world) && !isAlone) await isOver(mine, at, expect, 'a logout everywhere')
  }
  if (settings['REVOCATION_URL']) {
    const last = grant?.refresh.at(-1) ?? grant?.access.at(-1) ?? ''
    await until(() => provider.revoked.includes(last), 'the token is revoked').catch(({ message }: Error) =>
      expect(false, message),
    )
  }
  if (settings['BACKCHANNEL_LOGOUT']) {
    const person = await logIn(world, 'dan')
    const posted = await postForm(one.url, { logout_token: await world.logoutToken('dan') })
    expect(posted.status === 200, `a logout of the provider gets ${posted.status}`)
    for (const at of servers) await isOver(person, at, expect, 'the provider')
  } else {
    const posted = await postForm(one.url, { logout_token: await world.logoutToken('dan') })
    expect(posted.status === 404, `a logout of the provider gets ${posted.status}, though none is taken`)
  }
}
