import { closeSync, openSync, readFileSync } from 'node:fs'
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

/** How many files this process may have open. Undefined if there is no limit, or no /proc to read it from. */
export function descriptorLimit(): number | undefined {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    return limit === undefined ? undefined : Number(limit)
  } catch {
    return undefined
  }
}

/** Counts the open file descriptors of this process. */
export class OpenDescriptors {
  readonly #sizeOf: (folder: string) => Promise<number>
  #last: number | undefined

  /** @param sizeOf the size of a folder; since Linux 6.2, of this one the number of descriptors, and 0 before that */
  constructor(sizeOf = async (folder: string): Promise<number> => (await stat(folder)).size) {
    this.#sizeOf = sizeOf
  }

  /** Undefined where the system does not tell; the last number when no descriptor is left to count with. Never rejects. */
  async count(): Promise<number | undefined> {
    try {
      const size = await this.#sizeOf(DESCRIPTORS)
      // The one that lists them does not count.
      this.#last = size > 0 ? size : (await readdir(DESCRIPTORS)).length - 1
    } catch (error) {
      if (!isOutOfDescriptors(error)) return undefined
    }
    return this.#last
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
