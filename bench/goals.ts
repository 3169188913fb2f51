import { goalTable, rowsOf, type Report } from './report.ts'

/** The cases that `npm run bench -- goals` measures: those with goals that a change of the code can break. */
export const GOAL_CASES: readonly string[] = ['rest', 'keyed', 'relay', 'feed', 'session-sockets', 'start']

/**
 * Prints the goals of several cases in one table.
 * @returns whether each is met, or missed by 10 % at most
 */
export function checkGoals(reports: readonly Report[]): boolean {
  const goals = reports.flatMap((report) => report.goals ?? [])
  process.stdout.write(`${rowsOf(goalTable(goals)).join('\n')}\n`)
  return goals.every(({ outcome }) => outcome !== 'missed by more than 10 %')
}
