import { readFileSync } from 'node:fs'
import { test } from 'tap'
import type { SettingRule } from '../../src/config/setting-rule.ts'
import { settingRules } from '../../src/config/settings.ts'

const settings = Object.entries(settingRules)
const read = (name: string): string => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')

/** The columns that the documentation must have for a setting. */
const facts = (name: string, rule: SettingRule) => ({
  fallback: rule.isRequired ? 'required' : rule.default === undefined ? '' : `\`${rule.default}\``,
  values: valuesOf(name, rule),
  description: rule.description,
})

/** The values of a setting as a range with a unit or as a list of choices; empty for other settings. */
function valuesOf(name: string, { format: { words = [], range } }: SettingRule): string {
  if (range !== undefined) {
    const [minimum, maximum] = range
    const units: Record<string, string> = { SECONDS: ' seconds', BYTES: ' bytes', MINUTE: ' a minute' }
    return `${minimum}–${maximum}${units[name.split('_').at(-1) ?? ''] ?? ''}`
  }
  return words.map((each) => `\`${each}\``).join(', ')
}

await test('docs/settings.md lists every setting once with its default, values, description and when to change it', (t) => {
  const rows = [...read('docs/settings.md').matchAll(/^\| `([A-Z_]+)` \| (.*?) \| (.*?) \| (.*?) \| (.*) \|$/gm)]
  const documented = new Map<string, object>()
  for (const [, name = '', fallback, values, description, whenToChange] of rows) {
    documented.set(name, { fallback, values, description })
    t.match(whenToChange, /^[A-Z].*\.$/, `when to change ${name}`)
  }
  for (const [name, rule] of settings) t.same(documented.get(name), facts(name, rule), name)
  t.equal(rows.length, documented.size, 'no setting is listed twice')
  t.equal(rows.length, settings.length, 'nothing else is listed')
  t.end()
})

await test('README.md lists at most a dozen settings, including the required ones, as the server reads them', (t) => {
  const rows = [...read('README.md').matchAll(/^\| `([A-Z_]+)` \| (.*?) \| (.*?) \|$/gm)]
  for (const [, name = '', fallback, description] of rows) {
    const rule = settingRules[name]
    if (rule === undefined) t.fail(`${name} is not a setting`)
    else t.same({ values: valuesOf(name, rule), fallback, description }, facts(name, rule), name)
  }
  const names = rows.map(([, name]) => name)
  const needed = settings.filter(([, { isRequired }]) => isRequired).map(([name]) => name)
  for (const name of [...needed, 'SESSION_SECRETS', 'REDIS_URL', 'TRUST_PROXY']) {
    t.ok(names.includes(name), `${name} is required, at least in production`)
  }
  t.equal(new Set(names).size, names.length, 'no setting is listed twice')
  t.ok(names.length <= 12, 'at most a dozen')
  t.end()
})

await test('.env.example lists every setting with its description and default, and sets the required ones', (t) => {
  const lines = read('.env.example').split('\n')
  for (const [name, { description, isRequired, default: fallback }] of settings) {
    const at = lines.findIndex((each) => each.startsWith(`${name}=`) || each.startsWith(`# ${name}=`))
    t.equal(lines[at - 1], `# ${description}.`, `${name} is explained`)
    if (isRequired) t.ok(lines[at]?.startsWith(name), `${name} is set`)
    else t.equal(lines[at], `# ${name}=${fallback ?? ''}`)
  }
  t.end()
})
