import type { OperatorCommand, OperatorOutcome } from './operator-commands.ts'

/** Timeout for one worker that runs a command. Another may then do it again, which does no harm. */
const WORKER_MS = 30_000
/** Timeout for all workers together, however many of them hang, since an operator is waiting. */
export const DELEGATION_MS = 45_000

/** How a supervisor talks to its workers. */
interface Channel<Worker> {
  readonly isResponsive: (worker: Worker) => Promise<boolean>
  /** Undefined if the worker does not reply in time. */
  readonly runCommand: (
    worker: Worker,
    command: OperatorCommand,
    timeoutMs: number,
  ) => Promise<OperatorOutcome | undefined>
  /** Whether the next worker may do it, too. */
  readonly isWanted?: (() => Promise<boolean>) | undefined
}

/** Has a worker run a command. The next one runs it too when a worker does not answer or cannot reach the store. */
export async function delegate<Worker>(
  workers: readonly Worker[],
  command: OperatorCommand,
  { isResponsive, runCommand, isWanted = async () => true }: Channel<Worker>,
  now: () => number = () => performance.now(),
): Promise<OperatorOutcome> {
  const deadline = now() + DELEGATION_MS
  // All at once: each that hangs would otherwise keep the operator waiting.
  const areResponsive = await Promise.all(workers.map(isResponsive))
  let outcome: OperatorOutcome = { is: 'noWorker' }
  let next = command
  for (const worker of workers.filter((_worker, index) => areResponsive[index])) {
    const timeoutMs = Math.min(WORKER_MS, deadline - now())
    if (timeoutMs <= 0 || !(await isWanted())) break
    outcome = (await runCommand(worker, next, timeoutMs)) ?? outcome
    if (!isForNextWorker(outcome)) break
    if (outcome.is === 'changed' && command.is === 'change') next = { ...command, isNoted: true }
  }
  return outcome
}

/** Whether another worker has to run the command, too. */
function isForNextWorker(outcome: OperatorOutcome): boolean {
  if (outcome.is === 'changed') return !outcome.isShared
  if (outcome.is === 'shown') return outcome.reports === undefined
  return outcome.is === 'storeDown' || outcome.is === 'noWorker'
}
