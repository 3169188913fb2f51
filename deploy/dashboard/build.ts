import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import {
  type Dashboard,
  DashboardCursorSync,
  defaultDashboard,
  type Panel,
  type RowPanel,
  type VariableModel,
  VariableRefresh,
  VariableSort,
} from '@grafana/schema'
import { BUDGET, PROCESS } from './budget-and-process.ts'
import { FIRST_LOOK } from './first-look.ts'
import { heightOf, panelAt, type Row, widthOf } from './panels.ts'
import { LOGINS, SESSIONS } from './sessions.ts'
import { FEED, SOCKETS } from './sockets.ts'
import { CONTROLS, KEYED_CALLS, UPSTREAM } from './upstream.ts'

/** The dashboard that Grafana imports. `node deploy/dashboard/build.ts` makes it from the rows here. */
export const DASHBOARD_FILE = fileURLToPath(new URL('../dashboard.json', import.meta.url))

const ROWS = [FIRST_LOOK, UPSTREAM, SESSIONS, LOGINS, SOCKETS, FEED, BUDGET, KEYED_CALLS, CONTROLS, PROCESS]
const COLUMNS = 24

/** A variable with the values of a label. */
const labelOf = (name: string, label: string, query: string): VariableModel => ({
  name,
  label,
  type: 'query',
  datasource: { type: 'prometheus', uid: '${datasource}' },
  query: { query, refId: name },
  // Instances come and go.
  refresh: VariableRefresh.onTimeRangeChanged,
  sort: VariableSort.naturalAsc,
  multi: true,
  includeAll: true,
  allValue: '.+',
  current: { text: ['All'], value: ['$__all'] },
})

/** To be changed once, by the operator. */
const GUIDE = 'https://git.example/trading-bff/docs/operating'
const VARIABLES: VariableModel[] = [
  { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' },
  labelOf('job', 'Job', 'label_values(bff_ready, job)'),
  labelOf('instance', 'Instance', 'label_values(bff_ready{job=~"$job"}, instance)'),
  {
    name: 'guide',
    label: 'Guide',
    description: 'Where your copy of docs/operating can be read. The links of the panels lead there.',
    type: 'textbox',
    query: GUIDE,
    current: { text: GUIDE, value: GUIDE },
    options: [{ selected: true, text: GUIDE, value: GUIDE }],
  },
]

/** The text of the dashboard. */
export function dashboardText(): string {
  return `${JSON.stringify(dashboard(), null, 2)}\n`
}

function dashboard(): Dashboard {
  return {
    title: 'Trading BFF',
    uid: 'trading-bff',
    description: 'The first row is for the first look at an incident; the others say more when they are opened.',
    tags: ['trading-bff'],
    schemaVersion: defaultDashboard.schemaVersion,
    editable: true,
    graphTooltip: DashboardCursorSync.Crosshair,
    refresh: '30s',
    time: { from: 'now-3h', to: 'now' },
    timezone: 'browser',
    templating: { list: VARIABLES },
    panels: placed(ROWS),
  }
}

/** Each row but the first is closed, so that an open dashboard asks Prometheus little. */
function placed(rows: readonly Row[]): (Panel | RowPanel)[] {
  const all: (Panel | RowPanel)[] = []
  let id = 0
  let y = 0
  for (const { title, panels } of rows) {
    const collapsed = id > 0
    const row = { id: ++id, type: 'row' as const, title, collapsed, gridPos: { x: 0, y: y++, w: COLUMNS, h: 1 } }
    let x = 0
    let height = 0
    // Where a closed row is opened, Grafana moves the rows below it.
    let top = y
    const inside = panels.map((panel) => {
      if (x + widthOf(panel) > COLUMNS) {
        x = 0
        top += height
      }
      height = heightOf(panel)
      const at = panelAt(panel, { id: ++id, x, y: top })
      x += widthOf(panel)
      return at
    })
    all.push({ ...row, panels: collapsed ? inside : [] })
    if (collapsed) continue
    all.push(...inside)
    y = top + height
  }
  return all
}

if (import.meta.main) writeFileSync(DASHBOARD_FILE, dashboardText())
