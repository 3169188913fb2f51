import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { auditFaults } from '../support/telemetry/audit-scan.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import { json, tokens, scripted } from '../support/login/token-endpoint.ts'
import { until } from '../support/time/until.ts'
import { TRADING } from '../support/user.ts'
import { startWorld } from '../support/world.ts'

const SAMPLE = new URL('../../docs/audit.sample.jsonl', import.meta.url)
const TOKEN = 'an-ops-token-of-thirty-two-bytes-or-more'
const SUBJECT = 'C1001'
const IDENTITY = { IDENTITY_PATH: '/account/v1/me', IDENTITY_POINTER: '/data/user_id', OPS_TOKEN: TOKEN }
const NICKNAME = '/api/account/v1/nickname'
const SCRIPT = { 'x-csrf': '1' }

type Line = Record<string, unknown>

/** Collects the audit lines of a day step by step, and writes what differs between two runs in the same way. */
class Diary {
  readonly lines: Line[] = []
  readonly #log: readonly Line[]
  readonly #names = new Map<unknown, string>()
  #seen = 0

  constructor(log: readonly Line[]) {
    this.#log = log
  }

  /** Waits for the lines of a step, of these kinds in any order, and takes them. @param at its time of day */
  async step(at: string, kinds: readonly string[]): Promise<void> {
    const fresh = (): Line[] => this.#log.slice(this.#seen).filter((line) => 'audit' in line)
    await until(() => fresh().length >= kinds.length, `${at} ${kinds.join(', ')}`)
    const left = fresh()
    const taken = kinds.flatMap((kind) => {
      const index = left.findIndex(({ audit }) => audit === kind)
      return index === -1 ? [{ audit: `no ${kind}` }] : left.splice(index, 1)
    })
    this.#seen = this.#log.length
    this.lines.push(...[...taken, ...left].map((line) => this.#alike(line, at)))
  }

  #alike(line: Line, at: string): Line {
    const isOperator = /^(ops|sessions)_/.test(String(line['audit'])) || line['reason'] === 'revoked'
    const alike: Line = {
      ...line,
      time: `2026-11-22T${at}:00.000Z`,
      instance: 'bff-1/7/3f9a1c',
      version: '1.0.0',
      ...('client' in line && { client: isOperator ? '10.0.0.5' : '192.0.2.1' }),
      ...('ms' in line && { ms: 12.3 }),
      ...('seconds' in line && { seconds: 1140 }),
    }
    for (const name of ['session', 'account', 'subject']) if (alike[name]) alike[name] = this.#name(name, alike[name])
    if ('reqId' in line) alike['reqId'] = this.#name('request', line['reqId'])
    return alike
  }

  #name(kind: string, value: unknown): string {
    const number = [...this.#names.values()].filter((name) => name.startsWith(kind)).length + 1
    const name = this.#names.get(value) ?? `${kind}-${String(number).padStart(9 - kind.length, '0')}`
    this.#names.set(value, name)
    return kind === 'request' ? `00000000-0000-4000-8000-${name.slice(8).padStart(12, '0')}` : name
  }
}

await test("docs/audit.sample.jsonl shows one user's day as the server logs it", async (t) => {
  const world = await startWorld(t, { provider: scripted, upstream: 'scripted', settings: IDENTITY })
  const { server, provider, upstream, browser } = world
  const phone = world.visitor()
  const diary = new Diary(server.log)
  let accepted = /^Bearer /
  upstream.onIdentity = (_request, response) => answerJson(response, 200, { data: { user_id: SUBJECT } })
  upstream.onRest = ({ headers }, response) =>
    answerJson(response, accepted.test(headers.authorization ?? '') ? 200 : 401, {})
  const operate = (method: string, token: string): Promise<Response> =>
    fetch(`${server.opsUrl}/sessions?subject=${SUBJECT}`, { method, headers: { authorization: `Bearer ${token}` } })

  await (await world.startLogin()).finish({ error: 'access_denied', error_description: 'The user cancelled.' })
  await diary.step('08:00', ['login_failed'])
  provider.behaviour = tokens({ access_token: 'first-access-token', refresh_token: 'first-refresh-token' })
  await world.logIn()
  await diary.step('08:01', ['login'])
  await world.socket(TRADING).opened()
  await diary.step('08:02', ['relay_opened'])
  accepted = /second/
  provider.behaviour = tokens({ access_token: 'second-access-token', refresh_token: 'second-refresh-token' })
  t.equal((await browser.fetch(NICKNAME, { headers: SCRIPT })).status, 200)
  await diary.step('09:00', ['token_refreshed'])
  await fetch(`${server.url}/auth/logout`, {
    method: 'POST',
    headers: {
      ...SCRIPT,
      origin: 'https://evil.example',
      cookie: browser.cookieHeader(new URL(server.url), undefined),
    },
  })
  await diary.step('09:10', ['refused'])
  await phone.logIn()
  await diary.step('09:20', ['login'])
  t.equal((await phone.logOut('?everywhere=true')).status, 204)
  await diary.step('09:21', ['session_ended', 'relay_ended', 'logout_everywhere', 'session_ended'])
  await phone.socket(TRADING).closed
  await diary.step('09:22', ['relay_refused'])
  await world.logIn()
  await diary.step('12:00', ['login'])
  accepted = /third/
  provider.behaviour = json({ error: 'invalid_grant' }, 400)
  t.equal((await browser.fetch(NICKNAME, { headers: SCRIPT })).status, 401)
  await diary.step('13:00', ['refresh_refused', 'session_ended'])
  provider.behaviour = tokens()
  await world.logIn()
  await diary.step('13:01', ['login'])
  t.equal((await operate('GET', 'a wrong token of the right length, almost')).status, 401)
  await diary.step('15:00', ['ops_refused'])
  t.equal((await operate('GET', TOKEN)).status, 200)
  await diary.step('15:01', ['sessions_listed'])
  t.equal((await operate('DELETE', TOKEN)).status, 200)
  await diary.step('15:02', ['session_ended', 'sessions_revoked'])

  for (const line of diary.lines) t.same(auditFaults(line), [], `${String(line['audit'])} fits the schema`)
  const sample = diary.lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  t.equal(readFileSync(SAMPLE, 'utf8'), sample)
  for (const secret of [SUBJECT, 'VRTC100', 'access-token', TOKEN, 'evil.example']) {
    t.notOk(JSON.stringify(server.log.filter((line) => 'audit' in line)).includes(secret), secret)
  }
})
