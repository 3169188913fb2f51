import {
  activityAt,
  DRAIN,
  endsOfStaging,
  isFailover,
  isMarketClosed,
  isStagingBroken,
  livesOf,
  STEP_SECONDS,
  type Life,
} from './calendar.ts'
import { chanceOf, happened } from './chance.ts'
import { FOREIGN } from './foreign.ts'
import { GAUGES } from './gauges.ts'
import { COUNTERS, EVENTS, FROM_ZERO, type Moment } from './instance.ts'
import { notation, type Samples } from './notation.ts'

/** What goes wrong in production from a minute on, until the end of the series. */
export interface Harm {
  readonly since: number
  /** How often events happen at one process in a minute. */
  readonly events?: Readonly<Record<string, number | ((ordinary: number, now: Moment) => number)>>
  readonly gauges?: Readonly<Record<string, (now: Moment) => number | undefined>>
  readonly isStoreAway?: true
  /** Prometheus can scrape none of the instances. */
  readonly isUnreachable?: true
  /** The place of the only process that it concerns. */
  readonly place?: number
}

/** Which part of the week is wanted, in minutes, and what goes wrong in it. */
export interface Part {
  readonly from: number
  readonly until: number
  readonly harm?: Harm
  /** For another week of the same kind. */
  readonly seed?: number
  /** How often Prometheus asks. */
  readonly stepSeconds?: number
}

/** A series in promtool's format. */
export interface InputSeries {
  readonly series: string
  readonly values: string
}

/** An environment with its processes. */
interface Environment {
  readonly name: string
  readonly lives: readonly Life[]
  readonly share: number
  readonly isBroken: (minute: number) => boolean
  readonly isFailover: (minute: number) => boolean
  readonly harm?: Harm
}

/** One scrape in so many is lost. */
const LOST = 400
const never = (): boolean => false

/** What Prometheus scrapes in a part of the week: production, staging beside it, and exporters of others. */
export function weekSeries({ from, until, harm, seed = 1, stepSeconds = STEP_SECONDS }: Part): InputSeries[] {
  const stepMinutes = stepSeconds / 60
  const production: Environment = {
    name: 'production',
    lives: livesOf(['a', 'b', 'c']),
    share: 1,
    isBroken: never,
    isFailover,
    ...(harm && { harm }),
  }
  const staging: Environment = {
    name: 'staging',
    lives: livesOf(['s'], endsOfStaging),
    share: 0.02,
    isBroken: isStagingBroken,
    isFailover: never,
  }
  const steps = Array.from({ length: (until - from) / stepMinutes }, (_, step) => from + step * stepMinutes)
  return [
    ...[production, staging].flatMap((environment) =>
      [...new Set(environment.lives.map(({ instance }) => instance))].flatMap((instance) =>
        seriesOf({ environment, instance, steps, stepMinutes, seed }),
      ),
    ),
    ...FOREIGN.map(([series, value]) => ({ series, values: notation(steps.map(value)) })),
  ]
}

/** One target of Prometheus over these minutes. */
interface Target {
  readonly environment: Environment
  readonly instance: string
  readonly steps: readonly number[]
  readonly stepMinutes: number
  readonly seed: number
}

function seriesOf(target: Target): InputSeries[] {
  const { environment, instance, steps, seed } = target
  const moments = momentsOf(target)
  if (moments.every((moment) => moment === undefined)) return []
  const chance = chanceOf(`${seed} scrapes of ${instance}`)
  const isScraped = steps.map((minute) => chance() > 1 / LOST && !isHarmed(environment, minute, 'isUnreachable'))
  const only = (values: Samples): Samples => values.map((value, step) => (isScraped[step] ? value : undefined))
  const counts = new Map(Object.keys(EVENTS).map((event) => [event, countsOf(event, moments, target)]))
  const counters = COUNTERS.map(([series, events]): [string, Samples] => {
    const isFromZero = !series.includes('{') || FROM_ZERO.has(series.replace(/\{.*/, ''))
    const sums = moments.map((moment, step) => {
      const sum = events.reduce((total, event) => total + (counts.get(event)?.[step] ?? 0), 0)
      return moment === undefined || (sum === 0 && !isFromZero) ? undefined : sum
    })
    return [series, only(sums)]
  })
  const gauges = GAUGES.map(([series, value]): [string, Samples] => {
    const harmful = environment.harm?.gauges?.[series]
    const valueAt = (moment: Moment) => (harmful && concerns(environment, moment) ? harmful(moment) : value(moment))
    return [series, only(moments.map((moment) => moment && valueAt(moment)))]
  })
  const [first, last] = [moments.findIndex(Boolean), moments.findLastIndex(Boolean)]
  const up = moments.map((moment, step) => {
    if (step < first || step > last) return undefined
    return moment !== undefined && isScraped[step] ? 1 : 0
  })
  const labels = `job="trading-bff",environment="${environment.name}",instance="${instance}"`
  return [['up', up] as const, ...counters, ...gauges].flatMap(([series, values]) => {
    if (values.every((value) => value === undefined)) return []
    const name = series.includes('{') ? series.replace('}', `,${labels}}`) : `${series}{${labels}}`
    return [{ series: name, values: notation(values) }]
  })
}

/** The moments of the processes of a target, one after the other. Undefined while there is none. */
function momentsOf({ environment, instance, steps }: Target): (Moment | undefined)[] {
  const lives = environment.lives.filter((life) => life.instance === instance)
  return steps.map((minute) => {
    const life = lives.find(({ startsAt, endsAt }) => minute >= startsAt && minute < endsAt)
    if (life === undefined) return undefined
    return {
      minute,
      activity: activityAt(minute) * environment.share,
      age: minute - life.startsAt,
      isDraining: minute >= life.endsAt - DRAIN,
      isStoreAway: environment.isFailover(minute) || isHarmed(environment, minute, 'isStoreAway'),
      isMarketClosed: isMarketClosed(minute),
      isBroken: environment.isBroken(minute),
      place: life.place,
    }
  })
}

/** How often an event has happened in each process at each step. A harmful one that has a number is as regular as a clock. */
function countsOf(event: string, moments: readonly (Moment | undefined)[], target: Target): number[] {
  const chance = chanceOf(`${target.seed} ${event} at ${target.instance}`)
  const { harm } = target.environment
  const harmful = harm?.events?.[event]
  let count = 0
  let age = 0
  let due = 0
  return moments.map((moment) => {
    if (moment === undefined) return 0
    if (moment.age < age) count = 0
    age = moment.age
    const ordinary = EVENTS[event]?.(moment) ?? 0
    const changed = concerns(target.environment, moment) ? harmful : undefined
    if (typeof changed === 'number') {
      // The three processes take turns.
      due ||= moment.place / 3
      due += changed * target.stepMinutes
      const now = Math.floor(due)
      due -= now
      count += now
    } else count += happened((changed?.(ordinary, moment) ?? ordinary) * target.stepMinutes, chance)
    return count
  })
}

function concerns({ harm }: Environment, { minute, place }: Moment): boolean {
  return harm !== undefined && minute >= harm.since && (harm.place ?? place) === place
}

function isHarmed({ harm }: Environment, minute: number, how: 'isStoreAway' | 'isUnreachable'): boolean {
  return harm?.[how] === true && minute >= harm.since
}
