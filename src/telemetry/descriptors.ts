/** What the log says when the process has used up its file descriptors. */
export const NO_DESCRIPTOR =
  'no file descriptor is left: raise the limit of open files of this process (LimitNOFILE, ulimit -n), or lower MAX_RELAYS'

/** Of the process, and of the whole machine. */
const CODES: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE'])
const MAX_CAUSES = 4

/** Whether something failed because this process, or its machine, has no file descriptor left. */
export function isOutOfDescriptors(error: unknown, depth = MAX_CAUSES): boolean {
  if (!(error instanceof Error) || depth === 0) return false
  if (CODES.has((error as { code?: unknown }).code)) return true
  // Node tries all addresses of a name, and tells of all in one.
  const causes = error instanceof AggregateError ? [error.cause, ...error.errors] : [error.cause]
  return causes.some((cause) => isOutOfDescriptors(cause, depth - 1))
}
