import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { EQUIVALENTS } from './equivalents.ts'

await test('each slip that is known to change nothing is in a line that exists', (t) => {
  for (const { file, line, why } of EQUIVALENTS) {
    const lines = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8').split('\n')
    t.ok(
      lines.some((each) => each.trim() === line),
      `${file}: ${line}`,
    )
    t.match(why, /^[A-Z].*[.]$/)
  }
  t.end()
})
