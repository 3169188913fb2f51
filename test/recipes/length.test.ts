import { readFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { test } from 'tap'

const EXAMPLES = new URL('../../docs/examples/', import.meta.url)

await test('a recipe of docs/examples has at most 60 lines, packages and tsconfig.json apart', (t) => {
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: EXAMPLES,
    encoding: 'utf8',
  })
  const lines = new Map<string, number>()
  for (const path of files.trim().split('\n')) {
    const [recipe = ''] = path.split('/')
    if (recipe === 'page' || /\/(?:package(?:-lock)?|tsconfig)\.json$/.test(path)) continue
    const text = readFileSync(new URL(path, EXAMPLES), 'utf8')
    lines.set(recipe, (lines.get(recipe) ?? 0) + text.split('\n').filter((line) => line.trim() !== '').length)
  }
  t.ok(lines.size > 0)
  for (const [recipe, count] of lines) t.ok(count <= 60, `${recipe}: ${count}`)
  t.end()
})
