/** Exit codes after a failure, so that an operator or process manager can tell them apart (sysexits.h). */
export const EXIT = {
  /** An uncaught exception. */
  crash: 1,
  /** EX_USAGE: unknown arguments. */
  usage: 64,
  /** EX_UNAVAILABLE: a service that the server depends on failed its check. Only `--check` uses it. */
  unavailable: 69,
  /** EX_OSERR: a port could not be opened. */
  cannotListen: 71,
  /** EX_CONFIG: wrong or missing settings. */
  config: 78,
} as const
