import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { budget } from './cases/budget.ts'
import { busy } from './cases/busy.ts'
import { connections } from './cases/connections.ts'
import { feed } from './cases/feed.ts'
import { keyed } from './cases/keyed.ts'
import { latency } from './cases/latency.ts'
import { login } from './cases/login.ts'
import { manyRelays } from './cases/many-relays.ts'
import { memory } from './cases/memory.ts'
import { profile } from './cases/profile.ts'
import { relay } from './cases/relay.ts'
import { rest } from './cases/rest.ts'
import { sessionSockets } from './cases/session-sockets.ts'
import { sessions } from './cases/sessions.ts'
import { sizes } from './cases/sizes.ts'
import { start } from './cases/start.ts'
import { streams } from './cases/streams.ts'
import { tls } from './cases/tls.ts'
import { traces } from './cases/traces.ts'
import { trading } from './cases/trading.ts'
import { workers } from './cases/workers.ts'
import { writeDocument } from './document.ts'
import { checkGoals, GOAL_CASES } from './goals.ts'
import { endAll, killAll } from './program.ts'
import { publish, type Report } from './report.ts'
import type { Choice } from './rest-load.ts'

/**
 * `npm run bench` runs every case except `profile` and writes docs/performance.md; `npm run bench -- <case>…` runs these
 * cases only. `npm run bench -- goals` checks in short rounds the goals that a change can break, and exits with 1 if one is
 * missed by more than 10 %; `goals <case>…` does so in these cases only. `--with bare --with nginx` selects contenders in
 * `rest` and `latency`. `--before ../other-checkout` adds another checkout of this server as `before`, also in `sizes`,
 * `keyed`, `relay`, `trading`, `feed`, `streams`, `memory`, `login`, `traces` and `profile`.
 */

type Case = (choice: Choice) => Promise<Report>
const all: Readonly<Record<string, Case>> = {
  rest,
  latency,
  busy,
  sizes,
  keyed,
  budget,
  relay,
  trading,
  feed,
  streams,
  memory,
  'many-relays': manyRelays,
  login,
  sessions,
  'session-sockets': sessionSockets,
  connections,
  workers,
  tls,
  traces,
  start,
}
const cases: typeof all = { ...all, profile }

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { with: { type: 'string', multiple: true }, before: { type: 'string' } },
})
/** The servers are started in folders of their own. */
const choice = { ...values, ...(values.before !== undefined && { before: resolve(values.before) }) }
const names = positionals.filter((name) => name !== 'goals')
const short = names.length < positionals.length
const unknown = names.filter((name) => !Object.hasOwn(cases, name))
if (unknown.length > 0) {
  process.stderr.write(`No such case: ${unknown.join(', ')}. There are: ${Object.keys(cases).join(', ')}\n`)
  process.exit(1)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void killAll().finally(() => process.exit(1)))
}
const isWhole = positionals.length === 0
const wanted = names.length > 0 ? names : short ? GOAL_CASES : Object.keys(all)
const reports: Report[] = []
for (const [name, run] of Object.entries(cases)) {
  if (!wanted.includes(name)) continue
  const startedAt = performance.now()
  try {
    const report = await run({ ...choice, short })
    if (!short) publish(report)
    reports.push(report)
  } catch (error) {
    // The other cases still run.
    const reason = error instanceof Error ? error.stack : String(error)
    process.stderr.write(`${name} failed: ${reason}\n`)
    reports.push({
      name,
      title: name,
      tables: [],
      goals: [],
      notes: ['**Failed in this run.**'],
      raw: reason,
    })
    process.exitCode = 1
  } finally {
    await endAll()
    process.stderr.write(`${name} took ${((performance.now() - startedAt) / 1000).toFixed(0)} s\n`)
  }
}
if (isWhole) writeDocument(reports)
if (short && !checkGoals(reports)) process.exitCode = 1
