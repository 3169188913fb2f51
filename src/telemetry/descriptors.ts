import { closeSync, openSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { devNull } from 'node:os'

/** Log message for a failure that is caused by a lack of file descriptors. */
export const NO_DESCRIPTOR =
  'no file descriptor is left: raise the limit of open files of this process (LimitNOFILE, ulimit -n), or lower MAX_RELAYS'

/** The limit of the process, and that of the whole machine. */
const CODES: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE'])
const MAX_CAUSES = 4
/** Has an entry for each open file descriptor (Linux). */
const DESCRIPTORS = '/proc/self/fd'
/** More descriptors than one name lookup needs. */
const SPARE = 4

/** Whether an error, or one of its causes, means that this process or its machine has no file descriptor left. */
export function isOutOfDescriptors(error: unknown, depth = MAX_CAUSES): boolean {
  if (!(error instanceof Error) || depth === 0) return false
  const { code, syscall } = error as { code?: unknown; syscall?: unknown }
  if (CODES.has(code)) return true
  // Without a descriptor for a socket to the name server, a lookup fails as if the name did not exist.
  if (syscall === 'getaddrinfo') return !hasDescriptors()
  return isOutOfDescriptors(error.cause, depth - 1)
}

/** Like {@link isOutOfDescriptors}, for a caller that has only a code. It also checks whether any are left now. */
export function meansOutOfDescriptors(code: string): boolean {
  return CODES.has(code) || !hasDescriptors()
}

/** The number of open file descriptors of this process; undefined where the system does not tell. Never rejects. */
export async function openDescriptors(): Promise<number | undefined> {
  try {
    // Since Linux 6.2 the size of the folder is their number. Before that it is 0, and they have to be listed.
    const { size } = await stat(DESCRIPTORS)
    return size > 0 ? size : (await readdir(DESCRIPTORS)).length
  } catch {
    return undefined
  }
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
