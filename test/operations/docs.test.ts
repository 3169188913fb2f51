import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { OTHER_PATHS } from '../../src/openapi/paths.ts'
import { BACKCHANNEL, LOGGED_OUT } from '../../src/openapi/provider-logout-paths.ts'
import { SECRET_SETTINGS, settingRules } from '../../src/config/settings.ts'
import { OPERATING_GUIDE } from '../support/deployment/operating-guide.ts'
import { metricsTable } from '../support/telemetry/metrics-table.ts'

const DOCS = new URL('../../docs/', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, DOCS), 'utf8')
/** Paths relative to docs/. */
const DOCUMENTS = [
  '../README.md',
  '../CONTRIBUTING.md',
  '../bench/README.md',
  ...globSync(['**/*.md', '../client/*.md', '../client/docs/*.md'], { cwd: DOCS }),
]

/** The headings of a document, without those in code blocks. */
function headings(text: string): string[] {
  const prose = text.replaceAll(/^```.*\n[^]*?^```$/gm, '')
  return [...prose.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading)
}

/** The fragment of a link to a heading. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-')
}

await test('Every protection in threats.md names a test that exists', (t) => {
  const chapters =
    'budget|config|deployments|http|journeys|limits|login|oauth|operations|ops|peers|proxy|sessions|sockets|store|upstream'
  const named = [...read('threats.md').matchAll(new RegExp(`\\b(?:${chapters})/[a-z-]+`, 'g'))].map(([name]) => name)
  t.ok(named.length > 30)
  for (const name of new Set(named)) {
    const files = [`../test/${name}.test.ts`, `../test/${name}.long.test.ts`]
    t.ok(
      files.some((file) => existsSync(new URL(file, DOCS))),
      name,
    )
  }
  for (const [, row = ''] of read('threats.md').matchAll(/^\| (?!It tries|They try|RFC |---)(.*) \|$/gm)) {
    t.match(row, /\| (?:[a-z]+\/[a-z-]+|config)(?:, (?:[a-z]+\/[a-z-]+|config))*$/, row)
  }
  t.end()
})

await test('Every setting that the documents name exists', (t) => {
  const settings = new Set([...Object.keys(settingRules), ...SECRET_SETTINGS.map((name) => `${name}_FILE`)])
  const others = new Set([
    'REDIS_MAXMEMORY',
    'REDIS_CONTAINER_MEMORY',
    'HTTPS_PORT',
    'NAME_FILE',
    'NODE_IMAGE',
    'NODE_EXTRA_CA_CERTS',
    'UV_THREADPOOL_SIZE',
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'ALL_PROXY',
    'SIGTERM',
    'SIGINT',
  ])
  const documents = [OPERATING_GUIDE, ...['reference.md', 'settings.md', 'upstream.md'].map(read)].join('\n')
  const named = [...documents.matchAll(/\b[A-Z]+(?:_[A-Z]+)+\b/g)].map(([name]) => name)
  t.ok(named.length > 40)
  for (const name of new Set(named)) {
    t.ok(settings.has(name) || others.has(name), name)
  }
  t.end()
})

await test('Every link between documents leads to an existing file and heading', (t) => {
  let links = 0
  for (const name of DOCUMENTS) {
    const here = new URL(name, DOCS)
    for (const [, path = '', heading] of read(name).matchAll(/\]\(([^)#:]*)(?:#([^)]*))?\)/g)) {
      links++
      const target = path === '' ? here : new URL(path, here)
      t.ok(existsSync(target), `${name}: ${path}`)
      if (heading === undefined) continue
      const anchors = headings(readFileSync(target, 'utf8')).map(anchor)
      t.ok(anchors.includes(heading), `${name}: ${path}#${heading}`)
    }
  }
  t.ok(links > 50)
  t.end()
})

await test('Every document and heading that the code cites exists', (t) => {
  const root = fileURLToPath(new URL('../', DOCS))
  const files = globSync(['{src,sandbox,test,bench}/**/*.ts', 'deploy/**', '*.yml'], { cwd: root })
  let cited = 0
  for (const file of files) {
    if (!statSync(`${root}/${file}`).isFile()) continue
    const text = readFileSync(`${root}/${file}`, 'utf8')
    // A citation is a path in docs/, with a heading after a comma or without, in parentheses.
    for (const [, path = '', heading] of text.matchAll(/\(docs\/([\w/-]+\.md)(?:, ([^()]+))?\)/g)) {
      cited++
      t.ok(existsSync(new URL(path, DOCS)), `${file}: ${path}`)
      if (heading !== undefined) t.ok(headings(read(path)).includes(heading), `${file}: ${path}, ${heading}`)
    }
    // The repository must not cite papers that it does not include.
    t.notMatch(text, /\bCONTRACT:|\binterface \d/, file)
  }
  t.ok(cited > 20)
  t.end()
})

await test('reference.md lists exactly the routes of the server', (t) => {
  const rows = [...read('reference.md').matchAll(/^\| (`[A-Z]+ \/[^|]*) \|/gm)].map(([, routes = '']) => routes)
  const listed = rows.flatMap((row) => [...row.matchAll(/`([A-Z]+ [^`]+)`/g)].map(([, route = '']) => route))
  const described = Object.entries({ ...OTHER_PATHS, ...LOGGED_OUT, ...BACKCHANNEL }).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const aliases = ['GET /auth/signup/', 'HEAD /auth/signup/']
  const onTheOpsPort = ['GET /livez', 'GET /readyz', 'GET /metrics', 'GET /sessions', 'DELETE /sessions']
  const controls = ['GET', 'PUT /orders', 'DELETE /orders', 'PUT /notice', 'DELETE /notice'].map((route) => {
    const [method, path = ''] = route.split(' ')
    return `${method} /controls${path}`
  })
  const api = ['GET /api/…', 'POST /api/…', 'PATCH /api/…']
  t.same(new Set(listed), new Set([...described, ...aliases, ...api, ...onTheOpsPort, ...controls]))
  t.end()
})

/** The sections of the runbook: [heading, text]. */
const sections = [...read('operating/runbook.md').matchAll(/^### (.*)\n([^]*?)(?=^##|$(?![^]))/gm)].map(
  ([, name = '', section = '']) => [name, section] as const,
)

await test('runbook.md says for each alert and symptom what users see, what to look at, what to do, and when it is over', (t) => {
  const alerts = [...read('alerts.yaml').matchAll(/^ +- alert: (\w+)$/gm)].map(([, name = '']) => name)
  const described = sections.map(([name]) => name).filter((name) => name.startsWith('Bff'))
  t.ok(alerts.length > 30)
  t.same(described.toSorted(), alerts.toSorted(), 'each alert has one section')
  const [, symptoms = ''] = /^## Symptoms\n([^]*?)^## /m.exec(read('operating/runbook.md')) ?? []
  const entries = sections.filter(([name]) => alerts.includes(name) || symptoms.includes(`### ${name}\n`))
  t.ok(entries.length > alerts.length + 5)
  const labels = new Map(
    entries.map(([name, section]) => {
      const found = [...section.matchAll(/^- \*\*(.*?):\*\* \S/gm)].map(([, label = '']) => label)
      return [name, found.filter((label) => label !== 'Do not')] as const
    }),
  )
  for (const [name, section] of entries) {
    // An entry that only refers to another one is a single line.
    const [, other = ''] = /^\n.+ go to \[(\w+)\].+\n*$/.exec(section) ?? []
    const says = labels.get(other === '' ? name : other)
    t.same(says, ['Users see', 'Look first', 'Likely causes', 'Do', 'Over when'], name)
  }
  t.end()
})

await test('Every metric that runbook.md names or selects exists', async (t) => {
  const known = [...(await metricsTable()).matchAll(/^\| `(bff_\w+)`/gm)].map(([, name = '']) => name)
  const prometheus = /_(?:sum|count|bucket)$/
  for (const [name, section] of sections) {
    for (const [, metric = ''] of section.matchAll(/\b(bff_\w+)/g)) t.ok(known.includes(metric), `${name}: ${metric}`)
    for (const [, , quoted, word] of section.matchAll(/`(now|recent) (?:'([^']+)'|(\w+))/g)) {
      for (const beginning of (quoted ?? word ?? '').trim().split('|')) {
        const start = `bff_${beginning.trim().replace(prometheus, '')}`
        t.ok(
          known.some((metric) => metric.startsWith(start)),
          `${name}: ${start}`,
        )
      }
    }
  }
  t.end()
})
