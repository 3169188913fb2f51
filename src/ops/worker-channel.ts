import type { Worker } from 'node:cluster'
import type { MetricObject } from 'prom-client'
import type { OpsSource } from './ops-listener.ts'

/** What a supervisor asks its workers, and what they answer. */
interface Replies {
  readonly reasons: readonly string[]
  readonly warnings: readonly string[]
  readonly metrics: readonly MetricObject[]
}
type Question = keyof Replies
type Order = { readonly drain: true } | { readonly ask: Question; readonly id: number }
interface Reply {
  readonly id: number
  readonly answer: Replies[Question]
}

/** A worker that has not answered by then is too busy, or gone; probes wait for a second. */
const PATIENCE_MS = 500
let asked = 0

/** Questions a worker has not answered yet, by their id. */
type Open = Map<number, (answer: Replies[Question]) => void>
const open = new WeakMap<Worker, Open>()

/** Asks a worker. Undefined when it does not answer in time. */
export async function ask<Asked extends Question>(
  worker: Worker,
  question: Asked,
  patienceMs = PATIENCE_MS,
): Promise<Replies[Asked] | undefined> {
  const id = ++asked
  const questions = openQuestions(worker)
  return new Promise((resolve) => {
    const settle = (answer?: Replies[Question]): void => {
      clearTimeout(timer)
      questions.delete(id)
      resolve(answer as Replies[Asked] | undefined)
    }
    const timer = setTimeout(settle, patienceMs)
    questions.set(id, settle)
    send(worker, { ask: question, id }, () => settle())
  })
}

/** One listener hears all answers of a worker, however many probes ask at once. */
function openQuestions(worker: Worker): Open {
  const known = open.get(worker)
  if (known !== undefined) return known
  const questions: Open = new Map()
  open.set(worker, questions)
  worker.on('message', ({ id, answer }: Reply) => questions.get(id)?.(answer))
  return questions
}

/** Tells a worker to go down in order. */
export function requestDrain(worker: Worker): void {
  // One that cannot hear it is on its way down already.
  send(worker, { drain: true }, () => undefined)
}

function send(worker: Worker, order: Order, failed: () => void): void {
  worker.send(order, (error: Error | null) => {
    if (error !== null) failed()
  })
}

/** In a worker: answers the supervisor, and does what it says. */
export function handleSupervisorMessages(operations: OpsSource, drain: () => void): void {
  const answer = async ({ ask, id }: Extract<Order, { id: number }>): Promise<void> => {
    process.send?.({ id, answer: await answerTo(ask, operations) } satisfies Reply)
  }
  process.on('message', (order: Order) => {
    if ('drain' in order) drain()
    else void answer(order)
  })
}

async function answerTo(question: Question, operations: OpsSource): Promise<Replies[Question]> {
  switch (question) {
    case 'reasons':
      return operations.reasons()
    case 'warnings':
      return operations.warnings()
    case 'metrics':
      return (await operations.registry()).getMetricsAsJSON()
  }
}
