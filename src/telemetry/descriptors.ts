import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'

/** What the log says when this process has used up its file descriptors. */
export const NO_DESCRIPTOR =
  'no file descriptor is left: raise the limit of open files of this process (LimitNOFILE, ulimit -n), or lower MAX_RELAYS'

/** Of the process, and of the whole machine. */
const CODES: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE'])
const MAX_CAUSES = 4
/** More than looking up a name takes at once. */
const SPARE = 4

/** Whether something failed because this process, or its machine, has no file descriptor left. */
export function isOutOfDescriptors(error: unknown, depth = MAX_CAUSES): boolean {
  if (!(error instanceof Error) || depth === 0) return false
  const { code, syscall } = error as { code?: unknown; syscall?: unknown }
  if (CODES.has(code)) return true
  // Who cannot open a socket to ask a name server is told that there is no such name.
  if (syscall === 'getaddrinfo') return !hasDescriptors()
  return isOutOfDescriptors(error.cause, depth - 1)
}

/** The same, for who knows no more than a code, or less. */
export function meansOutOfDescriptors(code: string): boolean {
  return CODES.has(code) || !hasDescriptors()
}

function hasDescriptors(): boolean {
  const opened: number[] = []
  try {
    while (opened.length < SPARE) opened.push(openSync(devNull, 'r'))
    return true
  } catch (error) {
    return !CODES.has((error as { code?: unknown }).code)
  } finally {
    for (const descriptor of opened) closeSync(descriptor)
  }
}
