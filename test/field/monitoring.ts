import type { Kind } from './row.ts'

const SUITES = {
  'Rules and scrapes': ['test/deployments/{alerts,dashboard,lost-sessions-alert,time-to-page}.test.ts'],
}
const PROGRAMS = { prometheus: '/usr/bin/prometheus', promtool: '/usr/bin/promtool' }

export const MONITORING: Kind = {
  title: 'Prometheus',
  text: `*Rules and scrapes:* it scrapes real instances, evaluates the rules of [deploy](../deploy) and the queries of the dashboard, and tells of
trouble in time.`,
  columns: Object.keys(SUITES),
  rows: [
    { id: 'prometheus-2.42', product: 'Prometheus', from: { installed: 'prometheus' }, suites: SUITES },
    {
      id: 'prometheus-2.53',
      product: 'Prometheus',
      from: { debian: 'trixie', packages: ['prometheus'], programs: PROGRAMS },
      suites: SUITES,
    },
    {
      id: 'prometheus-3',
      product: 'Prometheus',
      from: { debian: 'sid', packages: ['prometheus'], programs: PROGRAMS },
      suites: SUITES,
    },
  ],
}
