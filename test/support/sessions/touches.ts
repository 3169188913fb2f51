import { RedisClient } from '@redis/client'
import type { Test } from 'tap'
import { REFRESHES_KEY } from '../../../src/store/keys.ts'
import { JarBrowser } from '../browser/jar-browser.ts'
import { createClient } from '../redis/client.ts'
import { within } from '../time/until.ts'
import { logIn } from '../parts.ts'
import { startWorld } from '../world.ts'
import { ACCOUNTS } from '../user.ts'

/** The commands that Redis received while sessions were used. */
export interface Touches {
  readonly requests: number
  readonly listenedMs: number
  /** How often Redis received each command, without the commands inside scripts. */
  readonly commands: Readonly<Record<string, number>>
  /** The highest number of scripts with which one instance moved one session to the same idle limit. */
  readonly most: number
  /** The highest number of idle limits that a session got from all instances. */
  readonly limits: number
}
const MONITOR_LINE = /^\S+ \[\d+ (\S+)\] "(\w+)"(.*)$/

interface Seen {
  /** The address of the instance; `lua` inside scripts. */
  readonly from: string
  readonly command: string
  readonly rest: string
}

/** Uses sessions on two servers in turn, one request after the other, and watches Redis with MONITOR. */
export async function touchesOf(
  t: Test,
  plan: { sessions: number; requests: number; pauseMs: number; idleSeconds: number },
): Promise<Touches> {
  const world = await startWorld(t, {
    redis: true,
    settings: { SESSION_IDLE_SECONDS: String(plan.idleSeconds), LOG_LEVEL: 'warn' },
  })
  const second = await world.instance()
  const users = await Promise.all(Array.from({ length: plan.sessions }, () => user(world.server.url)))
  const use = async (request: number): Promise<void> => {
    const round = Math.floor(request / users.length)
    const url = round % 2 === 0 ? world.server.url : second.url
    const cookie = users[request % users.length] ?? ''
    const response = await fetch(url + ACCOUNTS, { headers: { cookie, 'x-csrf': '1' } })
    await response.arrayBuffer()
    if (response.status !== 200) throw new Error(`${response.status} instead of an answer`)
  }
  // One use on each server, so that both cache all sessions.
  for (let request = 0; request < 2 * users.length; request++) await use(request)
  const startedAt = performance.now()
  const seen = await monitor(t, world.redis?.url ?? '')
  for (let request = 0; request < plan.requests; request++) {
    await use(request)
    await new Promise((resolve) => void setTimeout(resolve, plan.pauseMs))
  }
  const all = await seen()
  return { requests: plan.requests, listenedMs: performance.now() - startedAt, ...summary(all) }
}

async function user(url: string): Promise<string> {
  const browser = new JarBrowser()
  await logIn(browser, url)
  return browser.cookieHeader(new URL(url), new URL(url))
}

/** Watches Redis from now on. @returns a function that ends the watch and returns the commands */
async function monitor(t: Test, url: string): Promise<() => Promise<Seen[]>> {
  const [watcher, asker] = [RedisClient.factory({ RESP: 2 })({ url }), createClient({ url })]
  const seen: Seen[] = []
  const last = Promise.withResolvers<void>()
  await Promise.all([watcher.connect(), asker.connect()])
  t.teardown(() => watcher.destroy())
  t.teardown(() => asker.destroy())
  await watcher.monitor((line) => {
    const [, from = '', name = '', rest = ''] = MONITOR_LINE.exec(line) ?? []
    const command = name.toUpperCase()
    if (command === 'ECHO') last.resolve()
    else seen.push({ from, command, rest })
  })
  return async () => {
    await asker.echo('that was all')
    await within(last.promise, 'MONITOR shows the last command')
    return seen
  }
}

/**
 * Whether a command is of no session: a probe of a master (master-probe.ts), a look at the replication (replication.ts), or the
 * news of a login (shared-refusals.ts).
 */
function isOfNoSession({ command, rest }: Seen): boolean {
  return command === 'INFO' || (command === 'EVAL' && (rest.startsWith(' "#!lua') || rest.includes(REFRESHES_KEY)))
}

/** The commands of sessions. CLIENT CACHING NO concerns the next command of its connection. */
function ofSessions(seen: readonly Seen[]): Seen[] {
  const sent = seen.filter(({ from }) => from !== 'lua')
  return sent.filter((each, index) => {
    const { from, command } = each
    const meant = command === 'CLIENT' ? sent.slice(index + 1).find((other) => other.from === from) : each
    return meant !== undefined && !isOfNoSession(meant)
  })
}

function summary(seen: readonly Seen[]): Pick<Touches, 'commands' | 'most' | 'limits'> {
  const commands: Record<string, number> = {}
  const scripts = new Map<string, number>()
  const limits = new Map<string, Set<string>>()
  for (const { from, command, rest } of ofSessions(seen)) {
    commands[command] = (commands[command] ?? 0) + 1
    const [, key = '', limit = ''] = /"(bff:[^"]+)" "(\d+)"$/.exec(rest) ?? []
    if (command !== 'EVAL') continue
    const script = `${from} ${key} ${limit}`
    scripts.set(script, (scripts.get(script) ?? 0) + 1)
    limits.set(key, (limits.get(key) ?? new Set()).add(limit))
  }
  return {
    commands,
    most: Math.max(0, ...scripts.values()),
    limits: Math.max(0, ...[...limits.values()].map(({ size }) => size)),
  }
}
