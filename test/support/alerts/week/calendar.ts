/** Prometheus asks, and evaluates, as often as the guide tells operators. */
export const STEP_SECONDS = 15
const HOUR = 60
const DAY = 24 * HOUR

/** The minute of a week that begins on Monday at midnight. */
export const minuteOf = (day: number, hour: number, minute = 0): number => day * DAY + hour * HOUR + minute
/** The days by number. */
const [MONDAY, TUESDAY, THURSDAY, FRIDAY, SATURDAY] = [0, 1, 3, 4, 5]
export const WEDNESDAY = 2
export const SUNDAY = 6
/** The days by name. */
export const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'] as const

/** How much happens at each hour of a working day. Between the hours it changes evenly. */
const WORKING_DAY = [
  0.06, 0.03, 0.01, 0.01, 0.01, 0.03, 0.1, 0.4, 0.8, 1, 1, 0.95, 0.8, 0.9, 1, 1, 0.9, 0.75, 0.6, 0.55, 0.5, 0.35, 0.2,
  0.1,
]
const OF_WEEKEND = 0.15
const PEAK = 3

const isOver = (minute: number, start: number, end: number): boolean => minute >= start && minute < end
/** From 0 at a minute to 1 so many minutes later. */
const after = (minute: number, since: number, minutes: number): number =>
  Math.min(1, Math.max(0, (minute - since) / minutes))

/** From Friday evening to Sunday evening. */
export const isMarketClosed = (minute: number): boolean => isOver(minute, minuteOf(FRIDAY, 22), minuteOf(SUNDAY, 22))

/** How much more happens than on other days: everybody comes when the week begins, and few are left once the market is closed. */
function factorAt(minute: number): number {
  if (isMarketClosed(minute)) return 1 - (1 - OF_WEEKEND) * after(minute, minuteOf(FRIDAY, 22), HOUR)
  const peak = after(minute, minuteOf(MONDAY, 9), 5) - after(minute, minuteOf(MONDAY, 11), HOUR)
  return 1 + (PEAK - 1) * peak
}

/** How much happens at a minute: 1 at noon of a working day. */
export function activityAt(minute: number): number {
  const ofDay = ((minute % DAY) + DAY) % DAY
  const hour = Math.floor(ofDay / HOUR)
  const [now = 0, next = 0] = [WORKING_DAY[hour], WORKING_DAY[(hour + 1) % WORKING_DAY.length]]
  return (now + (next - now) * ((ofDay % HOUR) / HOUR)) * factorAt(minute)
}

/** Short failovers of Redis, one of them at night (minutes). */
const FAILOVERS: readonly (readonly [start: number, minutes: number])[] = [
  [minuteOf(TUESDAY, 14, 30), 0.25],
  [minuteOf(FRIDAY, 3, 10), 0.5],
]
export const isFailover = (minute: number): boolean =>
  FAILOVERS.some(([start, minutes]) => isOver(minute, start, start + minutes))

/** When the secrets were rotated: one instance after the other, a minute apart. */
export const ROTATED_AT = minuteOf(WEDNESDAY, 16)

/** A process from its start to its end. */
export interface Life {
  /** What Prometheus calls its target. */
  readonly instance: string
  /** Its place in the order of a roll. */
  readonly place: number
  readonly startsAt: number
  readonly endsAt: number
}

/** A process that ends drains first, and its successor at the same address begins a little later (minutes). */
export const DRAIN = 0.35
const DOWN = 0.5
const FOREVER = 8 * DAY

/** When each process of production ends: a roll every day, one instance after the other, and one death. */
function endsOf(place: number): number[] {
  const rolls = DAYS.map((_, day) => minuteOf(day, 11, 2 * place))
  const deaths = place === 1 ? [minuteOf(THURSDAY, 15, 20)] : []
  return [...rolls, ...deaths].toSorted((one, other) => one - other)
}

/** The processes of one environment, by instance. On Wednesday the platform gives new names, as it does to pods. */
export function livesOf(instances: readonly string[], ends: (place: number) => readonly number[] = endsOf): Life[] {
  return instances.flatMap((name, place) => {
    const bounds = [-DAY, ...ends(place), FOREVER]
    return bounds.slice(1).map((endsAt, index) => {
      const before = bounds[index] ?? 0
      const instance = before >= minuteOf(WEDNESDAY, 11) && before < FOREVER ? `${name}-2` : name
      return { instance, place, startsAt: index === 0 ? before : before + DOWN, endsAt }
    })
  })
}

/** A deployment to staging every two hours of a working day. */
export const endsOfStaging = (): number[] =>
  DAYS.flatMap((_, day) => (day < SATURDAY ? [8, 10, 12, 14, 16, 18].map((hour) => minuteOf(day, hour)) : []))
/** For an hour, nothing works in staging. */
export const isStagingBroken = (minute: number): boolean => isOver(minute, minuteOf(TUESDAY, 13), minuteOf(TUESDAY, 14))
