import { BUDGET_CLASSES, type BudgetClass } from '../../../src/config/upstream-budget.ts'
import { LEDGER, type LedgerReply, type LedgerReport } from '../../../src/store/ledger/ledger.ts'
import type { Refused, Reservation } from '../../../src/upstream/budget/admission.ts'
import type { SharedDocument } from '../../../src/store/shared-document.ts'
import { budgetTerms, type BudgetTerms } from '../../../src/upstream/budget/terms.ts'
import { LedgerModel } from './ledger-model.ts'
import type { Happening, Run, Schedule, SimulatedUser } from './schedule.ts'
import { SharedText } from './shared-text.ts'
import { SimulatedInstance as Instance } from './simulated-instance.ts'

/** Something that happens at a time (ms). */
interface Event {
  readonly at: number
  readonly instance: Instance | undefined
  readonly run: () => void
}

/** The longest time that a call takes from its token to upstream. */
const WAY_MS = 1000

/** Instances, a network, a Redis with a replica, and an upstream that writes down when calls arrive. */
class World {
  now = 0
  readonly plan: Schedule
  readonly random: () => number
  readonly terms: BudgetTerms
  /** In the order of their times. */
  readonly #events: Event[] = []
  readonly arrivals: Happening[] = []
  readonly refusals: Happening[] = []
  readonly reports: number[] = []
  /** Whether promises go on after the present event. */
  #isResolving = false
  #book = new LedgerModel()
  #replica = new LedgerModel()
  /** What the instances know of upstream's refusals. */
  readonly #text = new SharedText(() => this.#redisTime())
  #run = 0
  #redisStep = 0
  #isRedisAway = false
  /** Those that take calls. */
  #instances: Instance[] = []
  readonly #starting = new Set<Instance>()

  constructor(schedule: Schedule) {
    this.plan = schedule
    this.random = schedule.random
    this.terms = budgetTerms(schedule.config)
    for (let count = 0; count < schedule.instances; count++) this.#start()
  }

  /** Runs events until the end. */
  async run(): Promise<Run> {
    this.#planCalls()
    this.#planFaults()
    for (;;) {
      const event = this.#events.shift()
      if (event === undefined || event.at > this.plan.lengthMs) break
      const { instance } = event
      if (instance?.isDead === true) continue
      if (instance !== undefined && instance.pausedUntil > event.at) {
        this.schedule(instance.pausedUntil, instance, event.run)
        continue
      }
      this.now = event.at
      event.run()
      // Whatever this resolves, goes on now.
      for (let turn = 0; this.#isResolving && turn < 12; turn++) await Promise.resolve()
      this.#isResolving = false
    }
    const arrivals = this.arrivals.toSorted((one, other) => one.at - other.at)
    return { arrivals, refusals: this.refusals, reports: this.reports }
  }

  schedule(at: number, instance: Instance | undefined, run: () => void): void {
    const before = this.#events.findLastIndex((event) => event.at <= at)
    this.#events.splice(before + 1, 0, { at, instance, run })
  }

  /** A report on its way: request and reply take time, and either may get lost, or the request be late by seconds. */
  settle(report: LedgerReport, from: Instance): Promise<LedgerReply> {
    return this.#askRedis(from, () => {
      this.reports.push(this.now)
      const quietMs = this.terms.leaseMs + LEDGER.leaseSkewMs
      const keeper = { timeOfDay: this.#redisTime(), run: String(this.#run), quietMs }
      return this.#book.settle(this.terms, structuredClone(report), keeper)
    })
  }

  /** What is known of upstream's refusals, over the same network. */
  openText(from: Instance, onChange: () => void): SharedDocument {
    const document = this.#text.open(() => this.schedule(this.now + this.random() * 5, from, onChange))
    return {
      read: () => this.#askRedis(from, () => document.read()),
      write: (...change) => this.#askRedis(from, () => document.write(...change)),
      close: () => document.close(),
    }
  }

  #askRedis<Reply>(from: Instance, question: () => Reply | Promise<Reply>): Promise<Reply> {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    const reply = (end: () => void): void => {
      this.#isResolving = true
      end()
    }
    this.#isResolving = true
    const isLate = this.random() < this.#often(0.02)
    const isLost = this.random() < this.#often(0.01)
    const wayMs = isLate ? this.random() * 3000 : this.random() * 5
    this.schedule(this.now + 1500, from, () => reply(() => reject(new Error('no reply in time'))))
    this.schedule(this.now + wayMs, undefined, () => {
      if (this.#isRedisAway) return
      const replied = question()
      if (!isLost) this.schedule(this.now + this.random() * 5, from, () => reply(() => resolve(replied)))
    })
    return promise
  }

  /** How often something goes wrong: never in a world without faults. */
  #often(probability: number): number {
    return this.plan.faults === undefined ? 0 : probability
  }

  #redisTime(): number {
    return Math.floor(1.7e12 + this.now + this.#redisStep)
  }

  #start(): void {
    const instance = new Instance(this)
    this.#starting.add(instance)
    // A server takes no calls before its budget is open.
    void instance.budget.opened().then(() => {
      if (this.#starting.delete(instance)) this.#instances.push(instance)
    })
  }

  #any(instances: readonly Instance[]): Instance | undefined {
    return instances[Math.floor(this.random() * instances.length)]
  }

  /** Those that run, also those that take no calls yet. */
  get #all(): Instance[] {
    return [...this.#instances, ...this.#starting]
  }

  #planCalls(): void {
    const { load, waveMs } = this.plan
    for (const budgetClass of BUDGET_CLASSES) {
      if (load[budgetClass] === 0) continue
      if (waveMs === undefined) this.#planStretch(budgetClass, 0, Infinity, 1)
      else this.#planWave(budgetClass, waveMs, 0, true)
    }
    for (const user of this.plan.users ?? []) this.#planTurn(user, user.fromMs ?? 0)
  }

  /** Turns come at uneven times. */
  #planTurn(user: SimulatedUser, from: number): void {
    const at = from + this.random() * 2 * user.everyMs
    this.schedule(at, undefined, () => {
      this.#planTurn(user, at)
      const instance = this.#any(this.#instances)
      for (let call = 0; call < (user.burst ?? 1); call++) void this.#call(user.budgetClass, user.subject, instance)
    })
  }

  /** Calls come in waves: tokens that wait for a wave are spent late. */
  #planWave(budgetClass: BudgetClass, waveMs: number, from: number, isOn: boolean): void {
    const until = from + 500 + this.random() * waveMs
    this.#planStretch(budgetClass, from, until, isOn ? 2 : 0.1)
    this.schedule(until, undefined, () => this.#planWave(budgetClass, waveMs, until, !isOn))
  }

  #planStretch(budgetClass: BudgetClass, from: number, until: number, factor: number): void {
    const next = from - Math.log(1 - this.random()) * (1000 / (this.plan.load[budgetClass] * factor))
    if (next >= until) return
    this.schedule(next, undefined, () => {
      this.#planStretch(budgetClass, next, until, factor)
      void this.#call(budgetClass, `subject${Math.floor(this.random() * 6)}`, this.#any(this.#instances))
    })
  }

  async #call(budgetClass: BudgetClass, subject: string, instance: Instance | undefined): Promise<void> {
    if (instance === undefined || instance.pausedUntil > this.now) return
    const turn = instance.budget.admit(budgetClass, subject, () => subject)
    if (turn instanceof Promise) this.#isResolving = true
    const admission = turn instanceof Promise ? await turn : turn
    if (instance.isDead) return
    if (admission.is === 'refused') return this.#noteRefusal(budgetClass, subject, admission)
    // Some wait for their connection, and some never get one.
    const connectMs = this.random() < this.#often(0.1) ? this.random() * 3000 : 0
    this.schedule(this.now + connectMs, instance, () =>
      this.#write(instance, budgetClass, subject, admission.reservation),
    )
  }

  #write(instance: Instance, budgetClass: BudgetClass, subject: string, reservation: Reservation): void {
    if (this.random() < this.#often(0.02)) return reservation.end()
    const refused = reservation.start()
    if (refused !== undefined) {
      reservation.end()
      return this.#noteRefusal(budgetClass, subject, refused)
    }
    const wayMs = this.random() < this.#often(0.5) ? WAY_MS : this.random() * 20
    this.arrivals.push({ at: this.now + wayMs, budgetClass, subject })
    if (this.plan.limitedUser === undefined) return
    this.schedule(this.now + 2 * wayMs, instance, () => {
      this.#isResolving = true
      reservation.answered(subject === this.plan.limitedUser ? 429 : 200, '20')
      reservation.end()
    })
  }

  #noteRefusal(budgetClass: BudgetClass, subject: string, { limited }: Refused): void {
    this.refusals.push({ at: this.now, budgetClass, subject, limited })
  }

  #planFaults(): void {
    if (this.plan.faults === undefined) return
    const { crashes, pauses, clockSteps, redisSteps, outages, failovers, lostLedgers } = this.plan.faults
    const { longestPauseMs = 12_000, longestOutageMs = 20_000 } = this.plan.faults
    this.#planFault(crashes, () => this.#crash())
    this.#planFault(pauses, () => {
      const instance = this.#any(this.#all)
      if (instance !== undefined) instance.pausedUntil = this.now + this.random() * longestPauseMs
    })
    this.#planFault(clockSteps, () => {
      const instance = this.#any(this.#all)
      if (instance !== undefined) instance.stepMs += (this.random() - 0.5) * 120_000
    })
    this.#planFault(redisSteps, () => void (this.#redisStep += (this.random() - 0.5) * 120_000))
    this.#planFault(outages, () => this.#outage(this.random() * longestOutageMs))
    this.#planFault(failovers, () => {
      // The replica has missed what happened just before.
      const replica = this.#replica
      this.#outage(1000 + this.random() * 4000, () => {
        this.#book = replica
        this.#redisStep += (this.random() - 0.5) * 2000
      })
    })
    this.#planFault(lostLedgers, () =>
      this.#outage(this.random() * 3000, () => {
        this.#book = new LedgerModel()
        this.#text.forget()
      }),
    )
    const replicate = (): void => {
      if (!this.#isRedisAway) this.#replica = this.#book.clone()
      this.schedule(this.now + 200 + this.random() * 800, undefined, replicate)
    }
    if (failovers > 0) this.schedule(0, undefined, replicate)
  }

  #planFault(average: number, fault: () => void): void {
    const { lengthMs } = this.plan
    const count = Math.floor(average + this.random())
    for (let each = 0; each < count; each++) this.schedule(this.random() * lengthMs, undefined, fault)
  }

  #outage(ms: number, then: () => void = () => undefined): void {
    if (this.#isRedisAway) return
    this.#isRedisAway = true
    this.schedule(this.now + ms, undefined, () => {
      this.#isRedisAway = false
      this.#run++
      then()
    })
  }

  #crash(): void {
    const dead = this.#any(this.#all)
    if (dead === undefined) return
    dead.isDead = true
    this.#starting.delete(dead)
    this.#instances = this.#instances.filter((each) => each !== dead)
    this.schedule(this.now + this.random() * 3000, undefined, () => this.#start())
  }
}

/** Runs a schedule without any real time. */
export function simulate(schedule: Schedule): Promise<Run> {
  return new World(schedule).run()
}
