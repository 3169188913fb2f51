import { startBy } from './audits.ts'
import { faultsDuring } from './explained.ts'
import type { History } from './history.ts'
import type { Violation } from './promise.ts'
import type { Result } from './run.ts'

/** What happened before and after is shown for so long (ms). */
const AROUND_MS = 2000
/** More broken promises of one kind than these say nothing new. */
const MOST_SHOWN = 3
const MOST_LINES = 120
const LONGEST = 220
const DOUBTFUL = 'The run was void, so what follows about time proves nothing.'
/** Members of a line of a log that every line has, or that say nothing here. */
const NOT_SHOWN: ReadonlySet<string> = new Set(['level', 'pid', 'instance', 'version', 'hostname', 'reqId', 'client'])

interface Line {
  readonly at: number
  readonly who: string
  readonly what: string
}

/** Tells what was promised, what was seen, which faults were on and what each part did around it. Empty without a violation. */
export function timelineOf(result: Result): string {
  const { plan, violations, doubtful } = result
  const all = [...violations, ...doubtful]
  if (all.length === 0) return ''
  const kinds = Map.groupBy(all, ({ promise }) => promise)
  const stories = [...kinds].flatMap(([promise, found]) =>
    [
      '',
      `PROMISED (${promise.name}): ${promise.sentence}`,
      `SEEN ${found.length} times; the first ${Math.min(found.length, MOST_SHOWN)}:`,
    ].concat(found.slice(0, MOST_SHOWN).flatMap(({ violation }) => story(result, violation))),
  )
  return [
    `SEED=${plan.seed} ${JSON.stringify(plan)}`,
    ...(doubtful.length === 0 ? [] : [DOUBTFUL]),
    ...stories,
    '',
  ].join('\n')
}

function story(result: Result, { at, seen }: Violation): string[] {
  const { history } = result
  const faults = faultsDuring(history, at - AROUND_MS, at)
  const on = faults.map(({ name, note, from, to }) => `${name} (${note}) from ${seconds(from)} to ${seconds(to)}`)
  const lines = [...eventsOf(history), ...logLines(result)]
    .filter((line) => Math.abs(line.at - at) <= AROUND_MS)
    .sort((one, other) => one.at - other.at)
  // The nearest ones say most.
  const spare = Math.max(0, lines.length - MOST_LINES)
  const first = Math.min(spare, Math.max(0, lines.findIndex((line) => line.at >= at) - MOST_LINES / 2))
  return [
    '',
    `  ${seconds(at)} ${seen}`,
    `  Faults: ${on.length === 0 ? 'none' : on.join('; ')}`,
    ...lines.slice(first, first + MOST_LINES).map((line) => format(line, Math.abs(line.at - at) < 0.5)),
  ]
}

const seconds = (ms: number | undefined): string => (ms === undefined ? 'the end' : `${(ms / 1000).toFixed(3)} s`)

const format = ({ at, who, what }: Line, isNow: boolean): string =>
  `  ${isNow ? '>' : ' '} ${seconds(at)}  ${who.padEnd(11)} ${what}`.slice(0, LONGEST)

/** All that the history has, in words. */
function eventsOf(history: History): Line[] {
  const lines: Line[] = []
  const add = (at: number | undefined, who: string, what: string): void => {
    if (at !== undefined) lines.push({ at, who, what })
  }
  for (const { user, instance, kind, path, key, at, until, result } of history.calls) {
    const what = `${kind} ${key ?? path} by ${instance ?? 'the balancer'}`
    add(at, user, `asks: ${what}`)
    add(until, user, `is told ${result}: ${what}`)
  }
  for (const { user, kind, instance, closedAt, closed } of history.sockets)
    add(closedAt, user, `${kind} socket by ${instance} closes with ${closed?.code} ${closed?.reason}`)
  const userOf = new Map(history.calls.map(({ session, user }) => [session, user]))
  for (const { at, sentAt, instance, session, method, path, key, status } of history.executed) {
    const whose = `of ${userOf.get(session) ?? 'nobody'} by instance ${instance}`
    add(at, 'upstream', `${method} ${key ?? path} ${whose}, sent at ${seconds(sentAt)}: ${status}`)
  }
  for (const { at, instance, text } of history.delivered)
    add(at, 'upstream', `message of instance ${instance}: ${text}`)
  for (const { by, session, askedAt, confirmedAt } of history.endings) {
    add(askedAt, by, by === 'limit' ? `is near for session ${session}` : `asks for the end of session ${session}`)
    add(confirmedAt, by, `is told that session ${session} has ended`)
  }
  for (const { askedAt, confirmedAt, liftAskedAt, liftedAt } of history.pauses) {
    add(askedAt, 'operator', 'asks to pause orders')
    add(confirmedAt, 'operator', 'is told that orders are paused')
    add(liftAskedAt, 'operator', 'asks to lift the pause')
    add(liftedAt, 'operator', 'is told that the pause is lifted')
  }
  for (const { name, note, from, to } of history.faults) {
    add(from, 'FAULT', `${name} begins: ${note}`)
    add(to, 'FAULT', `${name} ends`)
  }
  return lines
}

/** The lines of all logs, at the time that they name, by the observer's clock. */
function logLines({ logs, plan, startedAt }: Result): Line[] {
  return [...logs].flatMap(([who, log], instance) =>
    log.split('\n').flatMap((text): Line[] => {
      try {
        const { time, ...line } = JSON.parse(text) as Record<string, unknown>
        const rest = Object.entries(line).filter(([name]) => !NOT_SHOWN.has(name))
        const at =
          (typeof time === 'number' ? time : Date.parse(String(time))) - startBy(plan.fleet, instance, startedAt)
        return [{ at, who, what: `logs ${JSON.stringify(Object.fromEntries(rest))}` }]
      } catch {
        return []
      }
    }),
  )
}

/** Counts and waits of a run, in a line. */
export function summaryOf({ plan, history, waits, isVoid }: Result): string {
  const shares = [...waits].map(([of, share]) => `${of} ${(share * 100).toFixed(1)} %`)
  const { calls, executed, endings, pauses, faults } = history
  const counts = `${calls.length} calls, ${executed.length} executed, ${endings.length} ends, ${pauses.length} pauses, ${faults.length} faults`
  return `SEED=${plan.seed}: ${counts}; waiting for a processor: ${shares.join(', ')}${isVoid ? ': void' : ''}`
}
