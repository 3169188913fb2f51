import { loaded, notify, type SocketError } from '../base/errors.ts'
import type { Series, SeriesOptions, SeriesPoints, SeriesSocket, SeriesState } from './series-shape.ts'

/** A series whose code is loaded when the first one is made, so that it costs no page anything that has none. */
export function lazySeries<S extends keyof SeriesPoints>(
  socket: SeriesSocket,
  options: SeriesOptions<S>,
): Series<SeriesPoints[S]> {
  type State = SeriesState<SeriesPoints[S]>
  const listeners = new Set<() => void>()
  const changed = (): void => notify(listeners, (listener) => listener())
  let state: State = { points: [] }
  let series: Series<SeriesPoints[S]> | undefined
  let isStopped = false
  // oxlint-disable-next-line no-restricted-imports -- loaded only when a page uses it
  loaded(import('../../series/series.ts')).then(
    (module) => {
      if (isStopped) return
      series = module.series(socket, options)
      series.subscribe(changed)
    },
    (error: SocketError) => {
      if (isStopped) return
      state = { points: [], error }
      changed()
    },
  )
  return {
    get: () => series?.get() ?? state,
    subscribe(listener) {
      const own = (): void => listener()
      listeners.add(own)
      return () => void listeners.delete(own)
    },
    stop() {
      isStopped = true
      series?.stop()
    },
  }
}
