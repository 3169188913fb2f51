/** How the process ends when it does not end well: what a supervisor of processes can tell apart (sysexits.h). */
export const EXIT = {
  /** An exception that nobody caught. */
  crash: 1,
  /** EX_USAGE: unknown arguments. */
  usage: 64,
  /** EX_UNAVAILABLE: what the server depends on does not answer; from the check of the settings only. */
  unavailable: 69,
  /** EX_OSERR: a port could not be had. */
  cannotListen: 71,
  /** EX_CONFIG: wrong or missing settings. */
  config: 78,
} as const
