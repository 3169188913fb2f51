import { totalmem } from 'node:os'

const MIB = 1_048_576
/** The part of the memory of a container that may wait for slow peers. */
const WAITING_SHARE = 4
const WITHOUT_LIMIT = 256 * MIB

/** The memory that the container of this process may use (its control group), in bytes. Undefined where that has no limit. */
function containerMemory(): number | undefined {
  const bytes = process.constrainedMemory()
  // Without a limit it is 0, or more than any machine has.
  return bytes > 0 && bytes < totalmem() ? bytes : undefined
}

/** MAX_WAITING_BYTES where it is not set. The processes of a server share their container. */
export function defaultWaitingBytes(workers: number): number {
  const bytes = containerMemory()
  return bytes === undefined ? WITHOUT_LIMIT : Math.max(MIB, Math.floor(bytes / WAITING_SHARE / workers))
}

/** Warns if what may wait in all processes leaves them too little of the memory of their container. */
export function waitingBytesWarnings(maxWaitingBytes: number, workers: number): string[] {
  const bytes = containerMemory()
  if (bytes === undefined || maxWaitingBytes * workers <= bytes / 2) return []
  const of = workers === 1 ? '' : ` in each of ${workers} workers`
  return [
    `MAX_WAITING_BYTES=${maxWaitingBytes}${of} is more than half of the memory of this container, ${bytes} bytes: ` +
      'browsers that read slowly could end it',
  ]
}
