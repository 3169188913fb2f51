/** How the pauses of a series of tries grow. */
export interface Backoff {
  readonly firstMs: number
  readonly longestMs: number
  /** The part of a pause that is left to chance, from 0 (the default) to 1, so that many clients do not retry in step. */
  readonly jitter?: number
}

/**
 * The pause before the next try (ms). It doubles with each failure, up to the longest; chance only shortens it.
 * @param failures how many failures came before the one that is waited for now
 */
export function backoffMs(failures: number, { firstMs, longestMs, jitter = 0 }: Backoff): number {
  return Math.min(firstMs * 2 ** failures, longestMs) * (1 - jitter * Math.random())
}
