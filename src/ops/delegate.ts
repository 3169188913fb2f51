import type { AdminOrder, AdminOutcome } from './session-admin.ts'

/** Timeout for one worker that carries out an order. Another may then do it again, which does no harm. */
const WORKER_MS = 30_000
/** Timeout for all workers together, however many of them hang, since an operator is waiting. */
export const DELEGATION_MS = 45_000

/** How a supervisor talks to its workers. */
interface Channel<Worker> {
  readonly isResponsive: (worker: Worker) => Promise<boolean>
  /** Undefined if the worker does not reply in time. */
  readonly carryOut: (worker: Worker, order: AdminOrder, timeoutMs: number) => Promise<AdminOutcome | undefined>
}

/** Has a worker carry out an order. The next one tries when a worker does not answer or cannot reach the store. */
export async function delegate<Worker>(
  workers: readonly Worker[],
  order: AdminOrder,
  { isResponsive, carryOut }: Channel<Worker>,
  now: () => number = () => performance.now(),
): Promise<AdminOutcome> {
  const deadline = now() + DELEGATION_MS
  // All at once: each that hangs would otherwise keep the operator waiting.
  const areResponsive = await Promise.all(workers.map(isResponsive))
  let outcome: AdminOutcome = { is: 'noWorker' }
  for (const worker of workers.filter((_worker, index) => areResponsive[index])) {
    const timeoutMs = Math.min(WORKER_MS, deadline - now())
    if (timeoutMs <= 0) break
    outcome = (await carryOut(worker, order, timeoutMs)) ?? outcome
    if (outcome.is !== 'storeDown' && outcome.is !== 'noWorker') break
  }
  return outcome
}
