import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { DASHBOARD_FILE, dashboardText } from '../../deploy/dashboard/build.ts'
import { dashboard, panels, queries, rows } from '../support/alerts/dashboard.ts'
import { groupedBy, metricsIn, unknownIn } from '../support/alerts/promql.ts'
import { baseOf } from '../support/alerts/rule-tests.ts'
import { METRICS_GUIDE } from '../support/telemetry/metrics-table.ts'

/** Metrics that have no panel, and why. */
const WITHOUT_PANEL = new Set([
  // bff_near_cache_bytes says more.
  'bff_near_cache_sessions',
  // A warning on /readyz says what it says.
  'bff_session_store_clock_difference_seconds',
  // The platform knows how many processes run.
  'bff_workers',
])

await test('deploy/dashboard.json is what deploy/dashboard/build.ts makes', (t) => {
  t.equal(readFileSync(DASHBOARD_FILE, 'utf8'), dashboardText(), 'after a change: node deploy/dashboard/build.ts')
  t.end()
})

await test('The dashboard: every id is unique, and no panel covers another or leaves the grid', (t) => {
  const ids = [...panels, ...rows.map(({ row }) => row)].map(({ id }) => id)
  t.equal(new Set(ids).size, ids.length)
  for (const { row, panels: inRow } of rows) {
    const taken = new Set<string>()
    for (const { title, gridPos } of inRow) {
      const { x, y, w, h } = gridPos ?? { x: 0, y: 0, w: 0, h: 0 }
      t.ok(w > 0 && h > 0 && x + w <= 24, `${title} is inside of the grid`)
      t.ok(y > (row.gridPos?.y ?? 0), `${title} is below its row`)
      const cells = Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)}:${y + Math.floor(cell / w)}`)
      t.notOk(
        cells.some((cell) => taken.has(cell)),
        `${title} covers no other panel`,
      )
      for (const cell of cells) taken.add(cell)
    }
  }
  t.same(
    rows.map(({ row }) => row.collapsed),
    rows.map((_, index) => index > 0),
    'the first row is open, the others are closed',
  )
  t.end()
})

await test('The dashboard: every panel says what is normal, and has a unit and a link into the guide', (t) => {
  const titles = panels.map(({ title }) => title)
  t.equal(new Set(titles).size, titles.length, 'no two panels have the same title')
  for (const { title = '', description = '', fieldConfig, links = [] } of panels) {
    t.match(description, /\.$/, `${title}: a sentence`)
    t.ok(fieldConfig?.defaults.unit, `${title}: a unit`)
    for (const { url = '' } of links) {
      const [, page = '', anchor] = /^\$\{guide\}\/([a-z-]+\.md)(?:#(.*))?$/.exec(url) ?? []
      t.ok(anchor === undefined || anchorsOf(page).has(anchor), `${title}: ${url}`)
    }
    t.equal(links.length, 1, title)
    const steps = (fieldConfig?.defaults.thresholds?.steps ?? []).map(({ value }) => value)
    t.equal(steps[0], null, `${title}: the first colour has no lower end`)
    t.same(
      steps.slice(1),
      steps.slice(1).toSorted((one, other) => Number(one) - Number(other)),
      title,
    )
  }
  t.end()
})

await test('The dashboard selects and groups by metrics and labels that exist, and names its series by these', (t) => {
  for (const { panel, expr, legend } of queries) {
    t.same(unknownIn(expr), [], panel)
    t.notMatch(expr, '$of', panel)
    for (const [selector] of expr.matchAll(/\b(?:bff|nodejs|process)_\w+(\{[^}]*\})?/g)) {
      t.match(selector, 'job=~"$job",instance=~"$instance"', `${panel}: of the chosen instances alone`)
    }
    const grouped = groupedBy(expr)
    for (const [, label = ''] of legend.matchAll(/\{\{(\w+)\}\}/g)) {
      const isKept = grouped.length > 0 ? grouped.includes(label) : !/\b(?:sum|max|min|count)\b/.test(expr)
      t.ok(isKept, `${panel}: ${label} of the legend is left in the result`)
    }
  }
  t.end()
})

await test('The dashboard shows every metric of this server', (t) => {
  const shown = new Set(queries.flatMap(({ expr }) => metricsIn(expr).map(({ name }) => baseOf(name))))
  const all = [...METRICS_GUIDE.matchAll(/^\| `(bff_\w+)` \|/gm)].map(([, name = '']) => name)
  t.ok(all.length > 60)
  for (const name of all) t.equal(shown.has(name), !WITHOUT_PANEL.has(name), name)
  t.end()
})

await test('The dashboard can be imported: it asks for its Prometheus, and has no id of another Grafana', (t) => {
  const names = dashboard.templating?.list?.map(({ name, type }) => `${name} ${type}`)
  t.same(names, ['datasource datasource', 'job query', 'instance query', 'guide textbox'])
  t.notOk('id' in dashboard)
  for (const { title = '', datasource } of panels)
    t.same(datasource, { type: 'prometheus', uid: '${datasource}' }, title)
  t.end()
})

/** The anchors of the headings of a page of docs/operating. @throws Error where there is no such page */
function anchorsOf(page: string): Set<string> {
  const text = readFileSync(new URL(`../../docs/operating/${page}`, import.meta.url), 'utf8')
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading)
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w -]/g, '')
        .replaceAll(' ', '-'),
    ),
  )
}
