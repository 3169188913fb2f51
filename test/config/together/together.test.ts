import { test } from 'tap'
import { seededRandom } from '../../support/time/seeded-random.ts'
import { coveringRows, type Row } from './covering.ts'
import { DIMENSIONS, type Options } from './dimensions.ts'
import { LIFE } from './life.ts'
import { rowWorld } from './row-world.ts'

/** How many rows are lived through: a sample in `npm test`. */
const ROWS = Number(process.env['ROWS'] ?? 2)

const dimensions = Object.values(DIMENSIONS)
const optionsOf = (row: Row): Options =>
  Object.assign({}, ...row.map((option, at) => dimensions[at]?.[option] ?? {})) as Options

/** What needs to know whose a session is contradicts a world that does not. */
function isValid(row: Row): boolean {
  const { LOG_SUBJECT, MAX_SESSIONS_PER_SUBJECT } = optionsOf(row)
  const identity = Object.keys(DIMENSIONS).indexOf('identity')
  return row[identity] !== 0 || (LOG_SUBJECT === undefined && MAX_SESSIONS_PER_SUBJECT !== '1')
}

await test('the promises hold with each two settings together', async (t) => {
  const { seed, random } = seededRandom(Number(process.env['SEED'] ?? 1))
  const sizes = dimensions.map(({ length }) => length)
  const rows = coveringRows(sizes, isValid, random)
  t.comment(`seed ${seed}: ${rows.length} rows`)
  const [most = 0, next = 0] = sizes.toSorted((one, other) => other - one)
  t.ok(rows.length >= most * next, 'the two choices with most options alone need so many')
  const from = Number(process.env['FROM'] ?? 0)
  for (const [at, row] of rows.slice(from, from + ROWS).entries()) {
    await t.test(`row ${from + at}`, async (each) => {
      const options = optionsOf(row)
      const world = await rowWorld(each, options)
      for (const [name, part] of LIFE) {
        const problems: string[] = []
        await part(world, (holds, what) => void (holds || problems.push(what))).catch((error: Error) => {
          problems.push(error.stack ?? error.message)
        })
        each.strictSame(problems, [], name)
      }
      if (!each.passing()) each.comment(JSON.stringify(options))
    })
  }
})
