/** How many failures the lines with this message count: one line counts all failures of a second. */
export function failureCount(log: readonly Readonly<Record<string, unknown>>[], msg: string): number {
  return log.filter((line) => line['msg'] === msg).reduce((sum, { count }) => sum + Number(count), 0)
}
