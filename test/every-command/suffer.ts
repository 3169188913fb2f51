import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { CommandFault, ConnectionFault } from '../support/redis/command-proxy.ts'
import { valueOf } from '../support/telemetry/metrics.ts'
import { until } from '../support/time/until.ts'
import type { Journey } from './acts.ts'
import { isOfBystander } from './bystanders.ts'
import { JOURNEYS } from './journeys.ts'
import { play } from './play.ts'
import type { Scene } from './scene.ts'

/** What a command may suffer anywhere. */
export const FAULTS: readonly CommandFault[] = [
  'gets no reply',
  'is lost',
  'is executed late',
  'gets a late reply',
  "-OOM command not allowed when used memory > 'maxmemory'.",
  "-READONLY You can't write against a read only replica.",
  '-LOADING Redis is loading the dataset in memory',
  "-NOPERM User bff has no permissions to run the 'x' command",
  '-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
]

/** What happens at one command of a journey. */
export interface Trouble {
  /** What the command suffers; undefined if nothing. */
  readonly fault?: CommandFault
  /** Which commands count, unless it is those of the journey. */
  readonly counts?: RegExp
  /** The connections that break when it comes: those on which this was sent. */
  readonly breaks?: string
  /** What the connections suffer that are opened next. */
  readonly opening?: readonly ConnectionFault[]
  /** What the next command suffers, also one that repairs what has failed. */
  readonly next?: Pick<Trouble, 'fault' | 'counts'>
}

/** What the connections of a server say for themselves, and what it does by the clock. */
const BACKGROUND =
  /^(HELLO|CLIENT|CLUSTER|SENTINEL|PING|INFO|ROLE|WAIT|AUTH|TIME|ASKING|S?SUBSCRIBE)\b|bff:1:(probe|refreshes|fingerprint|refusals|budget|returns)|:probe\b/
const CONTROLS = /bff:1:control/
const WRITES = /^(SET|DEL|HSET|PUBLISH) |redis\.p?call\('(SET|DEL|HSET|HDEL|PEXPIRE|PEXPIREAT|INCRBY|GETDEL)'/
/** How long the second fault is waited for once a journey is over. */
const NEXT_MS = 1000
/** How often somebody else acts meanwhile. */
const PAUSE_MS = 200

/** Whether a command may suffer a fault: reads are not refused by a full Redis. */
function mayCommand(text: string, { fault = '' as CommandFault, counts }: Trouble, countsControls: boolean): boolean {
  if (counts !== undefined) return counts.test(text)
  if (BACKGROUND.test(text) || (!countsControls && CONTROLS.test(text))) return false
  if (/^-(NOREPLICAS|MISCONF)/.test(fault)) return WRITES.test(text)
  return !/^-(OOM|READONLY)/.test(fault) || (WRITES.test(text) && !text.includes('allow-oom'))
}

/** A command in a few words. */
function named(text: string): string {
  const words = text.split(' ')
  return `${words[0]} ${words.find((word) => word.includes('bff:1:'))?.replaceAll(/[\w-]{43}/g, '…')}`
}

/**
 * One journey, at one command of which there is trouble.
 * @param at how many commands pass before it
 * @returns what suffered, empty where the journey has fewer commands
 */
async function suffer(scene: Scene, journey: Journey, at: number, trouble: Trouble): Promise<string> {
  const { proxy, isTrue, bystanders, servers } = scene
  const hits: { readonly text: string; readonly port: number }[] = []
  const meant =
    (what: Trouble, left = 0) =>
    (text: string, port: number) => {
      if (isOfBystander(bystanders, text) || !mayCommand(text, what, journey.isOfControls === true)) return false
      if (left-- !== 0) return false
      hits.push({ text, port })
      if (what.breaks !== undefined) proxy.breakThose(what.breaks)
      if (what.opening !== undefined) proxy.open(what.opening)
      return what.fault !== undefined
    }
  // A call that needs a new token waits five seconds for it, and then goes without (docs/reference.md, The session).
  const mayWait = /late/.test(`${trouble.fault} ${trouble.next?.fault}`) && journey.name.includes('a token')
  // A command that is sent on is as good as any, but no claim is made where its slot may never arrive.
  const isSentOn = /^-(MOVED|TRYAGAIN)/.test(trouble.fault ?? '') && trouble.next === undefined
  scene.isTrue = (told) =>
    (isSentOn ? told.includes('credential_renewed') : isTrue(told)) ||
    (mayWait && /^503 .*provider_unavailable/s.test(told))
  await play(scene, journey, async (act) => {
    void proxy.suffer(trouble.fault ?? 'is lost', meant(trouble, at))
    const next = trouble.next && proxy.suffer(trouble.next.fault ?? 'is lost', meant(trouble.next))
    const acting = act()
    // With one master, all are affected.
    const others = bystanders.length === 1 ? [] : bystanders
    const rounds = others.map(async ({ port, goAbout }) => {
      let failed: string | undefined
      do failed ??= await goAbout()
      while ((await Promise.race([acting, delay(PAUSE_MS, undefined)])) === undefined)
      const isAffected = hits.some((hit) => hit.port === port)
      scene.expect(isAffected || failed === undefined, `meanwhile, of somebody else, ${failed}`)
    })
    await Promise.all(rounds)
    const judge = await acting
    if (next !== undefined && hits.length === 1) await Promise.race([next, delay(NEXT_MS)])
    proxy.heal()
    await until(async () => (await valueOf(servers[0].opsUrl, 'bff_session_store_up')) === 1, 'Redis is well again')
    return judge
  })
  scene.isTrue = isTrue
  return hits.map(({ text }) => named(text)).join(', ')
}

/** How much of it all is played. `npm run test:every-command` plays everything, or most of it. */
export interface Sample {
  /** Every so many pairs of a journey and a trouble are played, and in each every so many commands suffer. */
  readonly pairs: number
  readonly step: number
  /** Says where to begin. */
  readonly seed: number
  /** Each has a Redis and two instances, and waits most of the time. */
  readonly scenes: number
}

/** The journeys whose names have JOURNEY in them: all of them by default. */
const WANTED = JOURNEYS.filter(({ name }) => name.includes(process.env['JOURNEY'] ?? ''))

/** Has journeys suffer troubles in scenes of one kind. @returns how many commands have suffered */
export async function sufferAll(
  t: Test,
  start: () => Promise<Scene>,
  troubles: readonly Trouble[],
  { pairs, step, seed, scenes }: Sample,
): Promise<number> {
  const all = troubles.flatMap((trouble, kind) =>
    WANTED.map((journey, number) => ({ journey, trouble, first: (seed + number * 7 + kind * 3) % step })),
  )
  const runs = all.filter((_run, number) => number % pairs === seed % pairs)
  let played = 0
  const player = async (): Promise<void> => {
    const scene = await start()
    for (let run = runs.shift(); run !== undefined; run = runs.shift()) {
      const { journey, trouble, first } = run
      for (let at = first; ; at += step) {
        const hit = await suffer(scene, journey, at, trouble)
        if (hit === '') break
        played++
        t.same(scene.problems, [], `${journey.name}: ${hit} (${at}) ${inWords(trouble)}`)
      }
    }
  }
  await Promise.all(Array.from({ length: scenes }, player))
  return played
}

function inWords({ fault, breaks, opening = [], next }: Trouble): string {
  return [fault, breaks && `breaks ${breaks}`, ...opening, next && `then ${next.counts ?? ''} ${next.fault}`]
    .filter(Boolean)
    .join(', ')
}
