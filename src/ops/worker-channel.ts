import type { Worker } from 'node:cluster'
import type { MetricObject } from 'prom-client'
import type { SecretTexts } from '../config/secrets.ts'
import { sharedNow } from '../time/shared-now.ts'
import { within } from '../time/within.ts'
import type { OpsSource } from './ops-listener.ts'
import type { OperatorCommand, OperatorOutcome } from './operator-commands.ts'

/** The questions of a supervisor to its workers, and the types of the replies. */
interface Replies {
  readonly reasons: readonly string[]
  readonly warnings: readonly string[]
  readonly metrics: readonly MetricObject[]
  readonly command: OperatorOutcome
  /** Null while the store does not reply. */
  readonly fingerprintKey: string | null
}
type Question = keyof Replies
/** A worker that is to drain shuts down; the secrets are those that it has from now on. */
type Order = { readonly drain: true } | { readonly secrets: SecretTexts }
/** `command` belongs to the question of that name. */
interface Inquiry {
  readonly ask: Question
  readonly id: number
  readonly command?: OperatorCommand | undefined
  /** When it was sent, by {@link sharedNow}. */
  readonly at: number
}
interface Reply {
  readonly id: number
  readonly reply: Replies[Question]
}

/** A worker that has not replied by then is too busy, or dead. Probes usually wait for a second. */
const TIMEOUT_MS = 500
/** A worker that reads later than this that a pause is lifted does not lift it: the operator may have paused again since. */
const READ_MS = 1000
let lastId = 0

/** The questions that a worker has not replied to yet, by their id. Called without a reply if there will be none. */
type Pending = Map<number, (reply: Replies[Question] | undefined) => void>
const pendingByWorker = new WeakMap<Worker, Pending>()

/** Asks a worker. Returns undefined if it does not reply in time, or exits. */
export async function ask<Asked extends Question>(
  worker: Worker,
  question: Asked,
  { timeoutMs = TIMEOUT_MS, command }: { readonly timeoutMs?: number; readonly command?: OperatorCommand } = {},
): Promise<Replies[Asked] | undefined> {
  const id = ++lastId
  const pending = pendingOf(worker)
  const reply = new Promise<Replies[Question] | undefined>((resolve) => {
    pending.set(id, resolve)
    worker.send({ ask: question, id, command, at: sharedNow() } satisfies Inquiry, (error: Error | null) => {
      if (error !== null) resolve(undefined)
    })
  })
  try {
    return (await within(timeoutMs, reply)) as Replies[Asked] | undefined
  } finally {
    pending.delete(id)
  }
}

/** Adds each listener to a worker only once, however many probes ask at the same time. */
function pendingOf(worker: Worker): Pending {
  let pending = pendingByWorker.get(worker)
  if (pending === undefined) {
    const added: Pending = new Map()
    pendingByWorker.set(worker, (pending = added))
    worker.on('message', ({ id, reply }: Reply) => added.get(id)?.(reply))
    worker.once('exit', () => {
      for (const settle of added.values()) settle(undefined)
    })
  }
  return pending
}

/** Gives a worker an order. One that does not listen yet, or is about to exit, does not get it. */
export function tell(worker: Worker, order: Order): void {
  worker.send(order, () => undefined)
}

interface SupervisorOrders {
  /** Shuts down. */
  drain(): void
  takeSecrets(texts: SecretTexts): void
}

/** In a worker: replies to the supervisor's questions, and does what it says. */
export function handleSupervisorMessages(operations: OpsSource, orders: SupervisorOrders): void {
  const respond = async ({ ask, id, command, at }: Inquiry): Promise<void> => {
    const isLift = command?.is === 'change' && command.change.value === null
    const done = isLift && sharedNow() - at > READ_MS ? undefined : command
    const reply = { id, reply: await replyTo(ask, operations, done) } satisfies Reply
    // Without this function, a supervisor that was killed meanwhile would look like a crash of this worker.
    process.send?.(reply, undefined, undefined, () => undefined)
  }
  process.on('message', (order: Order | Inquiry) => {
    if ('drain' in order) orders.drain()
    else if ('secrets' in order) orders.takeSecrets(order.secrets)
    else void respond(order)
  })
}

async function replyTo(
  question: Question,
  operations: OpsSource,
  command?: OperatorCommand,
): Promise<Replies[Question]> {
  switch (question) {
    case 'reasons':
      return operations.reasons()
    case 'warnings':
      return operations.warnings()
    case 'metrics':
      return (await operations.registry()).getMetricsAsJSON()
    case 'fingerprintKey':
      return (await operations.fingerprintKey?.()) ?? null
    case 'command':
      return (command && (await operations.runCommand?.(command))) ?? { is: 'noWorker' }
  }
}
