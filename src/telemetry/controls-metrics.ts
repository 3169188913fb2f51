import type { Registry } from 'prom-client'
import { Instruments } from './instruments.ts'

interface ControlsSource {
  version(): number
  /** How many pauses are in force. */
  paused(): { readonly all: number; readonly subject: number }
  /** 1 while there is a notice. */
  notice(): number
}

/** Registers the metrics of the controls. Without OPS_TOKEN they do not exist. */
export function createControlsMetrics(registry: Registry, source: ControlsSource) {
  const make = new Instruments(registry)
  make.scrapedGauge(
    'bff_controls_version',
    'The version of the controls that the process obeys. All processes should have the same; with WORKERS, the lowest of the workers',
    () => source.version(),
    'min',
  )
  make.scrapedGauge(
    'bff_orders_paused',
    'Pauses of orders in force, by scope: all (1 while the orders of all users are paused) or subject (of single users)',
    () => Object.entries(source.paused()).map(([scope, count]) => [{ scope }, count] as const),
    'max',
    ['scope'],
  )
  make.scrapedGauge('bff_notice_shown', '1 while users are told a notice', () => source.notice(), 'max')
  return {
    changes: make.counterFrom0(
      'bff_controls_changes_total',
      'Controls that operators have set or lifted by this process',
      ['orders', 'notice'].flatMap((control) => ['set', 'lifted'].map((action) => ({ control, action }))),
    ),
    refusals: make.counterFrom0(
      'bff_orders_paused_refusals_total',
      'Orders that were not sent because orders are paused: calls, and messages on sockets',
      [{ by: 'call' }, { by: 'message' }],
    ),
  }
}

/** The metrics of the controls. */
export type ControlsMetrics = ReturnType<typeof createControlsMetrics>
