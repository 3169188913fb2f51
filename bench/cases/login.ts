import { fileURLToPath } from 'node:url'
import { costOf, costOfCalls, makeCalls } from '../calls.ts'
import type { Entry } from '../contender.ts'
import { publicOrigin, SESSIONS, THIS_SERVER } from '../contenders.ts'
import { BROWSER_HEADERS } from '../load/request-texts.ts'
import { logInMany } from '../login.ts'
import { Program } from '../program.ts'
import { atMost, shown, shownMedian, tableOf, type Report } from '../report.ts'
import { startSelected, type Choice, type Running } from '../rest-load.ts'
import { figuresOf, ratio, rounds, spread } from '../rounds.ts'
import { CLIENT_ID, listening, type World } from '../world.ts'

const ROUNDS = 7
const LOGINS = 25
const WARM_UP_LOGINS = 100
const LIMIT = 1.5
const BARE = 'bare login'
const WHY =
  'The bare one keeps the tokens as they come: it signs and seals nothing, has no limits, tells no other instance, and uses a connection to the provider again, on which a login can be lost.'

const bareLogin: Entry = {
  name: BARE,
  redirectUri: (port) => `http://127.0.0.1:${port}/auth/callback`,
  async start({ provider, redis }, port) {
    const base = `http://127.0.0.1:${port}`
    const file = fileURLToPath(new URL('../bare/login.ts', import.meta.url))
    const env = { NODE_ENV: 'production', PUBLIC_URL: base, AUTH_URL: provider.url, CLIENT_ID, REDIS_URL: redis.url }
    const program = new Program(BARE, process.execPath, [file], { env: { ...env, PORT: String(port) }, on: 'measured' })
    await listening(program, port)
    return { program, cookies: await logInMany({ url: `${base}/auth/login` }, SESSIONS) }
  },
}

/** The figures of a contender in one round. */
interface LoginRound {
  readonly loginMicros: number
  readonly loginCommands: number
  readonly logoutMicros: number
  readonly logoutCommands: number
}

/** Measures a login, from its start to the page after the callback, and a logout. */
export async function login({ before }: Choice): Promise<Report> {
  const choice = { with: ['Fastify', 'Express'], ...(before && { before }) }
  const { world, contenders, missing } = await startSelected(choice, [bareLogin])
  for (const contender of contenders) await measure(world, contender, WARM_UP_LOGINS)
  const results = await rounds(contenders, ROUNDS, (contender) => measure(world, contender, LOGINS))
  const of = figuresOf(results)
  const table = (title: string, micros: 'loginMicros' | 'logoutMicros', commands: 'loginCommands' | 'logoutCommands') =>
    tableOf(title, [...results.keys()], {
      'CPU µs': (name) => shown(spread(of(name, micros)), 0),
      [`${BARE} = 1`]: (name) => shown(ratio(of(name, micros), of(BARE, micros))),
      'Redis commands': (name) => shownMedian(of(name, commands), 2),
    })
  return {
    name: 'login',
    title: 'A login and a logout',
    tables: [
      table('A login: start, callback, and the page after it (404)', 'loginMicros', 'loginCommands'),
      table('A logout', 'logoutMicros', 'logoutCommands'),
    ],
    goals: (['loginMicros', 'logoutMicros'] as const).map((figure) => {
      const what = figure === 'loginMicros' ? 'login' : 'logout'
      const toBare = ratio(of(THIS_SERVER, figure), of(BARE, figure))
      return atMost(LIMIT, `CPU time of a ${what} ≤ ${LIMIT} × a bare one`, toBare, { why: WHY })
    }),
    notes: [
      `${ROUNDS} rounds of ${LOGINS} logins and logouts, one after the other, after ${WARM_UP_LOGINS} as a warm-up. The bench checks that each session works before its logout and not afterwards. The provider runs outside of the contender.`,
      `The ${BARE} is node:http with the code flow and PKCE: it keeps tokens in Redis as they come, and neither signs, seals, limits nor tells other instances anything. Redis counts a script and the commands in it.`,
      ...missing,
    ],
    raw: results,
  }
}

/** Logs users in and out. @throws Error if one of them is not logged in, or not logged out */
async function measure({ redis }: World, { program, url }: Running, count: number): Promise<LoginRound> {
  const { origin, port } = new URL(url)
  const start = { url: `${origin}/auth/login`, publicOrigin: publicOrigin(Number(port)) }
  const login = await costOf(redis, program, count, () => logInMany(start, count))
  const headers = login.result.map((cookie) => ({ ...BROWSER_HEADERS, cookie }))
  const of = (index: number) => ({ headers: headers[index] ?? {} })
  await makeCalls(url, count, 1, of)
  const logout = await costOfCalls(redis, { program, url: `${origin}/auth/logout` }, count, 1, (index) => ({
    ...of(index),
    method: 'POST',
    status: 204,
  }))
  await makeCalls(url, count, 1, (index) => ({ ...of(index), status: 401 }))
  return {
    loginMicros: login.cost.cpuMicros,
    loginCommands: login.cost.redisCommands,
    logoutMicros: logout.cpuMicros,
    logoutCommands: logout.redisCommands,
  }
}
