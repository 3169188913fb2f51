import { readFileSync } from 'node:fs'
import type { Dashboard, Panel, RowPanel } from '@grafana/schema'
import { DASHBOARD_FILE } from '../../../deploy/dashboard/build.ts'

/** A query of a panel. */
interface PanelQuery {
  readonly panel: string
  readonly expr: string
  readonly legend: string
}

/** deploy/dashboard.json, parsed. */
export const dashboard = JSON.parse(readFileSync(DASHBOARD_FILE, 'utf8')) as Dashboard

const isRow = (panel: Panel | RowPanel): panel is RowPanel => panel.type === 'row'

/** The rows of the dashboard, each with its panels, whether it is open or closed. */
export const rows: readonly { readonly row: RowPanel; readonly panels: readonly Panel[] }[] = (dashboard.panels ?? [])
  .filter(isRow)
  .map((row) => ({ row, panels: row.collapsed ? row.panels : panelsBelow(row) }))

function panelsBelow(row: RowPanel): Panel[] {
  const all = dashboard.panels ?? []
  const rest = all.slice(all.indexOf(row) + 1)
  const end = rest.findIndex(isRow)
  return rest.slice(0, end === -1 ? undefined : end)
}

/** Each panel. */
export const panels: readonly Panel[] = rows.flatMap((each) => each.panels)

/** Each query of each panel. */
export const queries: readonly PanelQuery[] = panels.flatMap(({ title = '', targets = [] }) =>
  (targets as { expr: string; legendFormat: string }[]).map(({ expr, legendFormat }) => ({
    panel: title,
    expr,
    legend: legendFormat,
  })),
)
