import { ErrorReply } from '@redis/client'
import type { Test } from 'tap'
import { Changeable } from '../../../src/config/changing.ts'
import { RedisStore } from '../../../src/store/redis-store.ts'
import { until } from '../time/until.ts'
import { master, serversOf, slotsOf, type Server } from './servers-alone.ts'

type Answer = (words: readonly string[]) => unknown

export const soon = (): number => Date.now() + 60_000
export const error = (code: string): Error => new ErrorReply(`${code} that is why`)

/** A store whose servers answer scripts and commands as a test says, and what it tells. */
export function storeOf(t: Test, url = 'redis://127.0.0.1:7000', changes: Readonly<Record<string, unknown>> = {}) {
  const world = { probe: (): unknown => [Date.now(), []], script: (() => 1) as Answer }
  const serve = (more: Readonly<Record<string, unknown>> = {}): Server =>
    master({
      EVAL: (words: readonly string[]) =>
        words.some((word) => word.startsWith('bff:1:probe:')) ? world.probe() : world.script(words),
      ...changes,
      ...more,
    })
  const fleet = serversOf(t, { 7000: serve({ CLUSTER: slotsOf(7000) }) })
  const log: unknown[] = []
  const note =
    (level: string) =>
    (details: object, message: string): void =>
      void log.push([level, details, message])
  const store = RedisStore.connect(new Changeable(url), {
    error: note('error'),
    warn: note('warn'),
    info: note('info'),
  })
  t.teardown(() => store.close())
  const told: (string | undefined)[] = []
  store.onChange((key) => told.push(key))
  const seen: unknown[] = []
  store.observe({
    asked: (seconds) => void seen.push(seconds >= 0 && seconds < 5 ? 'asked' : seconds),
    failed: (failure) => void seen.push(`failed: ${failure}`),
    refusedWrite: (reason) => void seen.push(`refused: ${reason}`),
  })
  /** The first words of what was sent, without the texts of scripts. */
  const sent = () =>
    fleet
      .sent()
      .map((each) => each.replace(/EVAL [^]*$/, 'EVAL'))
      .filter((each) => !/ (closed|PING)/.test(each))
  return { ...fleet, store, world, serve, log, sent, told: () => told.splice(0), seen: () => seen.splice(0) }
}

/** One that is connected, with nothing told so far. */
export async function connectedOf(...args: Parameters<typeof storeOf>) {
  const all = storeOf(...args)
  await all.store.connected(5000)
  await until(() => all.store.unavailableSince() === undefined)
  all.sent()
  all.told()
  return all
}
