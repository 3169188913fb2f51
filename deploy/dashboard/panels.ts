import { type FieldConfig, FieldColorModeId, MappingType, type Panel, ThresholdsMode } from '@grafana/schema'

/** A query of Prometheus. `$of` in it stands for the chosen job and instances. */
interface Query {
  readonly expr: string
  /** The names of its series, with labels as `{{label}}`. */
  readonly legend: string
}

/** What a panel shows. */
export interface PanelText {
  readonly title: string
  /** What is normal, and what to do otherwise. */
  readonly says: string
  /** The page of docs/operating, with an anchor or without, that says more. */
  readonly see: `${string}.md${'' | `#${string}`}`
  /** A unit of Grafana. */
  readonly unit: string
  readonly queries: readonly Query[]
  /** Columns of the grid's 24; 8 by default. */
  readonly width?: number
  /** From which value on a value is orange, or red. Without any, values have no colour. */
  readonly steps?: { readonly orange?: number; readonly red: number }
  /** From which value on a value is green, if small values are bad. Those below are red. */
  readonly green?: number
  /** Names of values. */
  readonly values?: Readonly<Record<string, string>>
  /** Other names of series, by their legend. */
  readonly names?: Readonly<Record<string, string>>
}

type Kind = 'stat' | 'timeseries' | 'state-timeline'

/** A panel without a place. */
export interface Unplaced {
  readonly kind: Kind
  readonly text: PanelText
}

/** Panels that are placed from left to right. */
export interface Row {
  readonly title: string
  readonly panels: readonly Unplaced[]
}

/** One number, or one for each series: the newest. */
export const number = (text: PanelText): Unplaced => ({ kind: 'stat', text })
/** Lines over time. */
export const lines = (text: PanelText): Unplaced => ({ kind: 'timeseries', text })
/** A bar for each series, whose colour is its state over time. */
export const states = (text: PanelText): Unplaced => ({ kind: 'state-timeline', text })

/** The height of a panel in the grid. */
export const heightOf = ({ kind }: Unplaced): number => (kind === 'stat' ? 4 : 8)
/** The columns that a panel takes. */
export const widthOf = ({ text }: Unplaced): number => text.width ?? 8

const SELECTOR = 'job=~"$job",instance=~"$instance"'
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' }
const LEGEND = {
  showLegend: true,
  displayMode: 'table',
  placement: 'bottom',
  calcs: ['lastNotNull', 'max'],
  // Many series are 0 on a good day.
  sortBy: 'Max',
  sortDesc: true,
}
const OPTIONS: Readonly<Record<Kind, Record<string, unknown>>> = {
  stat: {
    reduceOptions: { calcs: ['lastNotNull'] },
    colorMode: 'background_solid',
    graphMode: 'none',
    textMode: 'auto',
  },
  timeseries: { legend: LEGEND, tooltip: { mode: 'multi', sort: 'desc' } },
  'state-timeline': { legend: { ...LEGEND, showLegend: false }, showValue: 'auto', mergeValues: true },
}

/** A panel at its place, as Grafana reads it. */
export function panelAt(panel: Unplaced, { id, x, y }: { id: number; x: number; y: number }): Panel {
  const { kind, text } = panel
  return {
    id,
    type: kind,
    title: text.title,
    description: text.says,
    gridPos: { x, y, w: widthOf(panel), h: heightOf(panel) },
    datasource: DATASOURCE,
    links: [linkTo(text.see)],
    targets: text.queries.map(({ expr, legend }, index) => ({
      refId: String.fromCodePoint(65 + index),
      datasource: DATASOURCE,
      editorMode: 'code',
      expr: expr.replaceAll('$of', SELECTOR),
      legendFormat: legend,
      range: kind !== 'stat',
      instant: kind === 'stat',
    })),
    fieldConfig: {
      defaults: fieldOf(panel),
      overrides: Object.entries(text.names ?? {}).map(([options, value]) => ({
        matcher: { id: 'byName', options },
        properties: [{ id: 'displayName', value }],
      })),
    },
    options: OPTIONS[kind],
  }
}

function fieldOf({ kind, text }: Unplaced): FieldConfig {
  const isLine = kind === 'timeseries'
  const thresholdsStyle = text.steps === undefined && text.green === undefined ? 'off' : 'dashed'
  return {
    unit: text.unit,
    min: 0,
    // Most series begin with the first event.
    noValue: 'none',
    color: { mode: isLine ? FieldColorModeId.PaletteClassic : FieldColorModeId.Thresholds },
    thresholds: { mode: ThresholdsMode.Absolute, steps: stepsOf(text) },
    mappings: mappingsOf(text),
    custom: isLine
      ? { lineWidth: 2, fillOpacity: 8, showPoints: 'auto', thresholdsStyle: { mode: thresholdsStyle } }
      : kind === 'state-timeline'
        ? { fillOpacity: 80, lineWidth: 0 }
        : {},
  }
}

function stepsOf({ steps, green }: PanelText): { color: string; value: number | null }[] {
  if (green !== undefined) {
    return [
      { color: 'red', value: null },
      { color: 'green', value: green },
    ]
  }
  if (steps === undefined) return [{ color: 'text', value: null }]
  const { orange, red } = steps
  return [
    { color: 'green', value: null },
    ...(orange === undefined ? [] : [{ color: 'orange', value: orange }]),
    { color: 'red', value: red },
  ]
}

function mappingsOf({ values }: PanelText): FieldConfig['mappings'] & object {
  if (values === undefined) return []
  const options = Object.fromEntries(Object.entries(values).map(([value, text], index) => [value, { text, index }]))
  return [{ type: MappingType.ValueToText, options }]
}

function linkTo(page: string) {
  return {
    title: page,
    url: `\${guide}/${page}`,
    type: 'link' as const,
    targetBlank: true,
    // Grafana demands these.
    icon: 'doc',
    tooltip: '',
    tags: [],
    asDropdown: false,
    includeVars: false,
    keepTime: false,
  }
}
