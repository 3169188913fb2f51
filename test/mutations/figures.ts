import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/** What became of the slips in a source file. */
interface Figures {
  readonly file: string
  readonly mutants: number
  /** One in so many slips was made. */
  readonly every: number
  readonly equivalent: number
  readonly survived: number
  /** Undefined leaves the former figure in the row. */
  readonly seconds: number | undefined
}

const HEAD = `# Slips that tests notice

\`npm run test:mutations -- src/sessions/near-cache.ts\` makes typical slips in a file, one at a time, runs its near tests against
each, and writes its row here. It takes minutes for a file. Run it when you have changed a file that money or sessions depend on:
each slip that survives wants a test, or a line in [equivalents.ts](../test/mutations/equivalents.ts) that says why it
changes nothing. [near.ts](../test/mutations/near.ts) says which tests are near. With \`--again\` before the file, a slip that was
noticed before is only tried again if the file or the test has changed. A forgotten \`await\` and a forgotten assignment, such as
a reset, are among the slips; \`--only=DroppedAwait,DroppedAssignment\` tries no others, and writes no row. With
\`--every=4\`, one in four slips is made, which is enough to see how a large file stands. An \`await\` that is forgotten all the
same [ends no instance](../test/ops/unhandled-rejections.test.ts), even if its promise is rejected.

| File | Slips | Noticed | Equivalent | Unnoticed | Date | Seconds |
| --- | ---: | ---: | ---: | ---: | --- | ---: |
`

/** Replaces the row of a file in the table of all files. */
export function noteFigures(path: string, { file, mutants, every, equivalent, survived, seconds }: Figures): void {
  const old = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []
  const isOwn = (line: string): boolean => line.startsWith(`| \`${file}\` |`)
  const rows = old.filter((line) => line.startsWith('| `') && !isOwn(line))
  const lasted = seconds?.toFixed(0) ?? old.find(isOwn)?.split('|').at(-2)?.trim() ?? ''
  const noticed = mutants - equivalent - survived
  const part = Math.round((100 * noticed) / Math.max(1, mutants - equivalent))
  const date = new Date().toISOString().slice(0, 10)
  const tried = every === 1 ? mutants : `${mutants} (1 in ${every})`
  rows.push(`| \`${file}\` | ${tried} | ${noticed} (${part} %) | ${equivalent} | ${survived} | ${date} | ${lasted} |`)
  writeFileSync(path, `${HEAD}${rows.toSorted().join('\n')}\n`)
}
