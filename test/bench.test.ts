import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { BUDGET } from '../bench/cases/budget.ts'
import { programOf } from '../bench/contenders.ts'
import { ratio, rounds, spread } from '../bench/rounds.ts'
import { readConfig } from '../src/config/config.ts'
import { ALONE, COMPILED } from './support/server/settings.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

await test('rounds() starts each round with another contender and groups the results by contender', async (t) => {
  const order: string[] = []
  const contenders = [{ name: 'a' }, { name: 'b' }, { name: 'c' }]
  const results = await rounds(contenders, 3, async ({ name }) => order.push(name))
  t.same(order.join(''), 'abcbcacab')
  t.same(results.get('a'), [1, 6, 8])
})

await test('spread() returns median, minimum and maximum; ratio() divides round by round', (t) => {
  t.same(spread([9, 1, 4]), { median: 4, min: 1, max: 9 })
  t.same(spread([9, 1, 4, 5]), { median: 4.5, min: 1, max: 9 })
  // The ratio stays the same when the machine slows both contenders down in a round.
  t.same(ratio([1, 50, 3], [2, 100, 6]), { median: 0.5, min: 0.5, max: 0.5 })
  t.end()
})

await test('programOf() returns the command of npm start', (t) => {
  const start = programOf()
  t.equal(start.at(-1), `${ROOT}src/main.ts`)
  t.ok(start.slice(0, -1).every((option) => option.startsWith('--')))
  const options = [...start.slice(0, -1), '--eval', 'process.stdout.write("accepted")']
  t.equal(execFileSync(process.execPath, options, { encoding: 'utf8' }), 'accepted', 'Node.js knows the options')
  t.end()
})

await test('npm run bench: exit code 1 and the list of cases for an unknown case', (t) => {
  const args = [`${ROOT}bench/main.ts`, 'rest', 'no-such']
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { env: COMPILED, encoding: 'utf8' })
  t.equal(status, 1)
  t.equal(stdout, '')
  t.match(stderr, /^No such case: no-such\. There are: .*rest, .*profile/)
  t.end()
})

await test('the server accepts the settings of the case budget', (t) => {
  t.equal(readConfig({ ...ALONE, ...BUDGET }).upstream.budget?.windows.length, 2)
  t.end()
})
