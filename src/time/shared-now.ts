/** Milliseconds by a clock that all processes of a machine share, and that is never set. */
export const sharedNow = (): number => Number(process.hrtime.bigint() / 1_000_000n)
