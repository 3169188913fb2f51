import { randomInt } from 'node:crypto'
import * as fc from 'fast-check'
import type { Test } from 'tap'
import { samplesOf } from '../../telemetry/metrics.ts'
import { testServer, type TestServer } from '../../server/test-server.ts'
import { until } from '../../time/until.ts'
import { ScriptedUpstream } from '../../upstream/scripted-upstream.ts'
import { Market } from './market.ts'
import type { Deliver } from './model-browser.ts'
import { play, type SearchWorld } from './play.ts'
import { type Behaviour, RandomUpstream } from './random-upstream.ts'
import { scripts, type Size } from './script.ts'

const MORE_RUNS = process.env['RUNS']
/** How many times as many sessions are played as in `npm test`. */
export const RUNS = Number(MORE_RUNS ?? 1)
/** The same sessions each time, unless more are asked for. */
export const SEED = Number(process.env['SEED'] ?? (MORE_RUNS === undefined ? 1 : randomInt(2 ** 31)))
/** The variables that repeat the sessions of a test. */
export const REPEAT = `SEED=${SEED} RUNS=${RUNS}`
/** Until the feed is back, its browsers are told, and upstream has let all streams go. It is asked again every ten seconds. */
const RECOVERY_MS = 30_000
/** More than any message takes on a slow machine while nothing is lost. */
const PATIENCE_MS = 3000
const GAUGES = ['streams', 'taken_places', 'subscribers', 'own_sockets'].map((name) => `bff_feed_${name}`)

/** The settings of every search: nobody reaches a limit. */
export const SEARCHED: Readonly<Record<string, string>> = {
  PUBLIC_FEED: 'shared',
  MAX_PUBLIC_RELAYS_PER_IP: '10000',
  PUBLIC_HANDSHAKES_PER_MINUTE: '0',
  FEED_REQUESTS_PER_MINUTE: '100000',
  FEED_MAX_OWN_SOCKETS: '1000',
  LOG_LEVEL: 'warn',
}

/** A server in this process with a random upstream. */
export async function searchWorld(
  t: Test,
  behaviour: Behaviour,
  settings: Readonly<Record<string, string>>,
  deliver?: Deliver,
): Promise<SearchWorld & { readonly server: TestServer }> {
  const scripted = await ScriptedUpstream.start(t)
  const server = await testServer(t, {
    AUTH_URL: 'http://127.0.0.1:9',
    API_URL: 'http://127.0.0.1:9',
    WS_URL: `ws://${scripted.host}`,
    ...SEARCHED,
    ...settings,
  })
  const { url: origin, port } = server
  return { ...between(scripted, behaviour, { port, origin }, deliver), server }
}

/** The world of a server between an upstream and browsers. */
export function between(
  scripted: ScriptedUpstream,
  behaviour: Behaviour,
  { port, origin }: { readonly port: number; readonly origin: string },
  deliver?: Deliver,
): SearchWorld {
  const market = new Market(SEED)
  const upstream = new RandomUpstream(scripted, market, behaviour)
  const place = { url: `ws://127.0.0.1:${port}/ws/public`, origin, market, behaviour, deliver }
  return { place, upstream, patienceMs: behaviour.losses ? RECOVERY_MS : PATIENCE_MS }
}

/**
 * Plays sessions until one shows a fault, and reduces that one to its smallest unless connections break.
 * @returns the fault; undefined if there is none
 */
export async function search(
  world: SearchWorld,
  size: Size,
  numRuns: number,
  seed = SEED,
): Promise<string | undefined> {
  const { behaviour } = world.place
  const property = fc.asyncProperty(scripts(behaviour, size), async (script) => {
    const faults = await play(script, world)
    if (faults.length > 0) throw new Error(faults.slice(0, 3).join('\n'))
  })
  const options = { seed, numRuns, endOnFailure: behaviour.losses }
  const { failed, errorInstance, counterexample, counterexamplePath } = await fc.check(property, options)
  if (!failed) return undefined
  const script = JSON.stringify(counterexample).slice(0, 2000)
  return `${REPEAT} path ${counterexamplePath}\n${String(errorInstance)}\n${script}`
}

/** Once all browsers have left: what upstream still sends, and what the server still counts. All are 0 if nothing is left. */
export async function left({ upstream, server }: SearchWorld & { readonly server: TestServer }): Promise<unknown[]> {
  const counts = async (): Promise<unknown[]> => [
    upstream.running.length,
    ...(await Promise.all(GAUGES.map(async (name) => (await samplesOf(server.opsUrl, name)).get('')))),
  ]
  const isNone = async (): Promise<boolean> => (await counts()).every((count) => count === 0)
  await until(isNone, 'nothing is left', RECOVERY_MS).catch(() => undefined)
  return counts()
}
