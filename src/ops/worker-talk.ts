import type { Worker } from 'node:cluster'
import type { MetricObject } from 'prom-client'
import type { Operations } from './ops-listener.ts'

/** What a supervisor asks its workers, and what they answer. */
interface Answers {
  readonly reasons: readonly string[]
  readonly metrics: readonly MetricObject[]
}
type Question = keyof Answers
type Order = { readonly drain: true } | { readonly ask: Question; readonly id: number }
type Answer<Asked extends Question = Question> = { readonly id: number; readonly answer: Answers[Asked] }

/** A worker that has not answered by then is too busy, or gone; probes wait for a second. */
const PATIENCE_MS = 500
let asked = 0

/** Asks a worker. Undefined when it does not answer in time. */
export async function ask<Asked extends Question>(
  worker: Worker,
  question: Asked,
): Promise<Answers[Asked] | undefined> {
  const id = ++asked
  return new Promise((resolve) => {
    const settle = (answer?: Answers[Asked]): void => {
      clearTimeout(timer)
      worker.off('message', hear)
      resolve(answer)
    }
    const hear = (message: Answer<Asked>): void => {
      if (message.id === id) settle(message.answer)
    }
    const timer = setTimeout(settle, PATIENCE_MS)
    worker.on('message', hear)
    tell(worker, { ask: question, id }, () => settle())
  })
}

/** Tells a worker to go down in order. */
export function tellToDrain(worker: Worker): void {
  // One that cannot hear it is on its way down already.
  tell(worker, { drain: true }, () => undefined)
}

function tell(worker: Worker, order: Order, failed: () => void): void {
  worker.send(order, (error: Error | null) => {
    if (error !== null) failed()
  })
}

/** In a worker: answers the supervisor, and does what it says. */
export function heedSupervisor(operations: Operations, drain: () => void): void {
  const answer = async ({ ask, id }: Extract<Order, { id: number }>): Promise<void> => {
    const said =
      ask === 'reasons' ? await operations.reasons() : await (await operations.registry()).getMetricsAsJSON()
    process.send?.({ id, answer: said } satisfies Answer)
  }
  process.on('message', (order: Order) => {
    if ('drain' in order) drain()
    else void answer(order)
  })
}
