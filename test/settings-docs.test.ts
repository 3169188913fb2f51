import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { settingRules, type SettingRule } from '../src/settings.ts'

const settings = Object.entries<SettingRule>(settingRules)
const read = (name: string): string => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')

await test('the README lists every setting as the schema has it, and no other', async (t) => {
  const rows = [...read('README.md').matchAll(/^\| `([A-Z_]+)` \| (.*?) \| (.*?) \|$/gm)]
  const documented = new Map(
    rows.map(([, name = '', fallback, description]) => [name, { fallback, description }]),
  )
  for (const [name, property] of settings) {
    const fallback = property.isRequired
      ? 'required'
      : property.default === undefined
        ? ''
        : `\`${property.default}\``
    t.same(documented.get(name), { fallback, description: property.description }, name)
  }
  t.same([...documented.keys()].sort(), settings.map(([name]) => name).sort())
})

await test('.env.example names every setting with its default, and sets what a local start needs', async (t) => {
  const lines = read('.env.example').split('\n')
  for (const [name, property] of settings) {
    const line = lines.find((each) => each.startsWith(`${name}=`) || each.startsWith(`# ${name}=`))
    t.ok(line, name)
    if (property.isRequired) t.ok(line?.startsWith(name), `${name} is set`)
    else t.equal(line, `# ${name}=${property.default ?? ''}`)
  }
})
