import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { RULE_FILE, ruleText } from '../../deploy/kubernetes/monitoring/build-rule.ts'
import {
  bytesOf,
  configOf,
  kubernetesFile,
  makeSecrets,
  projectFile,
  settingNames,
} from '../support/deployment/files.ts'
import { resourcesIn } from '../support/deployment/manifests.ts'

interface PolicyRule {
  readonly ports: readonly { readonly port: string | number }[]
}

interface Availability {
  readonly spec: { readonly maxUnavailable: number; readonly minReplicas: number; readonly maxReplicas: number }
}

await test('deploy/kubernetes names only settings that exist, and production accepts those of its overlay', (t) => {
  for (const overlay of ['production', 'laptop'] as const) {
    const { environment, container } = kubernetesFile(overlay)
    for (const [name, value] of Object.entries(environment)) {
      t.ok(settingNames.has(name), `${overlay}: ${name} is a setting`)
      if (!name.endsWith('_FILE')) continue
      t.ok(
        container.volumeMounts.some(({ mountPath }) => value.startsWith(`${mountPath}/`)),
        `${overlay}: ${name} is in a volume that is mounted`,
      )
    }
    // The page is there only in the cluster.
    const { production } = configOf({ ...environment, STATIC_DIR: '' }, makeSecrets(t.testdir({})))
    t.equal(production, overlay === 'production')
  }
  t.end()
})

await test('a pod drains before Kubernetes kills it, and after its readiness probe has failed', (t) => {
  const { environment, container, pod, deployment, byKind } = kubernetesFile()
  const { drainMs, drainWaitMs } = configOf(environment, makeSecrets(t.testdir({})))
  t.ok(pod.terminationGracePeriodSeconds * 1000 > drainMs, 'terminationGracePeriodSeconds exceeds DRAIN_SECONDS')
  t.notOk('lifecycle' in container, 'no preStop hook takes a part of it')
  const { periodSeconds, failureThreshold } = container.readinessProbe
  t.ok(drainWaitMs > periodSeconds * failureThreshold * 1000, 'DRAIN_WAIT_SECONDS exceeds the failed probes')
  const { maxUnavailable, maxSurge } = deployment.strategy.rollingUpdate
  t.ok(maxUnavailable < maxSurge, 'a new pod is ready before an old one goes')
  const budget = byKind.get('PodDisruptionBudget') as unknown as Availability
  const scaler = byKind.get('HorizontalPodAutoscaler') as unknown as Availability
  t.ok(budget.spec.maxUnavailable < scaler.spec.minReplicas, 'a disruption leaves pods that serve')
  t.notOk('replicas' in deployment, 'an apply does not undo what the autoscaler has done')
  t.equal(
    Number(environment['UPSTREAM_BUDGET_INSTANCES']),
    2 * scaler.spec.maxReplicas,
    'the budget counts with as many instances as there may be in a roll, those that drain included',
  )
  t.end()
})

await test('the resources of deploy/kubernetes/base agree on ports and labels', (t) => {
  const { byKind, services, environment, container, deployment } = kubernetesFile()
  const { listen } = configOf(environment, makeSecrets(t.testdir({})))
  const ports = Object.fromEntries(container.ports.map((each) => [each.name, each.containerPort]))
  t.same(ports, { http: listen.port, ops: listen.opsPort })
  const { startupProbe, livenessProbe, readinessProbe } = container
  for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe]) {
    t.equal(ports[httpGet.port], listen.opsPort, `the probe of ${httpGet.path} uses the ops port`)
  }
  t.equal(startupProbe.httpGet.path, '/livez')
  t.equal(livenessProbe.httpGet.path, '/livez', 'an outage of Redis restarts nothing')
  t.equal(readinessProbe.httpGet.path, '/readyz')
  const { selector, template } = deployment
  t.same(template.metadata.labels, selector.matchLabels)
  const spread = template.spec.topologySpreadConstraints
  t.same(
    spread.map(({ labelSelector, topologyKey }) => [labelSelector, topologyKey]),
    ['topology.kubernetes.io/zone', 'kubernetes.io/hostname'].map((key) => [selector, key]),
  )
  t.match(services.get('trading-bff'), { spec: { selector: selector.matchLabels } })
  t.match(byKind.get('PodDisruptionBudget'), { spec: { selector } })
  t.match(byKind.get('NetworkPolicy'), { spec: { podSelector: selector } })
  for (const { targetPort } of services.get('trading-bff')?.spec.ports ?? []) {
    t.equal(ports[targetPort], listen.port, 'the service leads to the public port')
  }
  const policy = byKind.get('NetworkPolicy') as unknown as { spec: { ingress: PolicyRule[]; policyTypes: string[] } }
  const allowed = policy.spec.ingress.flatMap((rule) => rule.ports.map(({ port }) => port))
  t.same(new Set(allowed), new Set(Object.keys(ports)), 'the policy covers every port')
  t.same(policy.spec.policyTypes, ['Ingress', 'Egress'], 'in both directions')
  const { requests, limits } = container.resources
  t.ok(bytesOf(requests.memory) <= bytesOf(limits.memory), 'a pod requests no more memory than it may have')
  t.end()
})

await test('the autoscaler adds an instance before the sockets of one reach MAX_RELAYS', (t) => {
  const { byKind, environment } = kubernetesFile()
  const { spec } = byKind.get('HorizontalPodAutoscaler') as unknown as {
    spec: { metrics: { pods?: { metric: { name: string }; target: { averageValue: string } } }[] }
  }
  const sockets = spec.metrics.flatMap(({ pods }) => pods ?? [])
  t.same(
    sockets.map(({ metric }) => metric.name),
    ['bff_relays'],
  )
  const { maxRelays } = configOf(environment, makeSecrets(t.testdir({}))).relay
  t.equal(Number(sockets[0]?.target.averageValue), 0.6 * maxRelays)
  t.end()
})

await test('an outage of Redis takes no pod out of the Service, which cannot fall back to unready pods', (t) => {
  const { environment } = kubernetesFile()
  const { readyGraceMs } = configOf(environment, makeSecrets(t.testdir({})))
  const defaultMs = configOf({ ...environment, READY_GRACE_SECONDS: '' }, makeSecrets(t.testdir({}))).readyGraceMs
  t.ok(readyGraceMs >= 360 * defaultMs, 'pods stay ready for an hour without Redis')
  t.throws(
    () => configOf({ ...environment, READY_GRACE_SECONDS: '3601' }, makeSecrets(t.testdir({}))),
    'which is the longest time that the setting takes',
  )
  t.end()
})

await test('the PodMonitor scrapes every pod in a job that BffInstanceDown finds', (t) => {
  const { container, deployment } = kubernetesFile()
  const [monitor] = resourcesIn(projectFile('deploy/kubernetes/monitoring/pod-monitor.yaml'))
  const { spec } = monitor as unknown as {
    spec: { jobLabel: string; selector: object; podMetricsEndpoints: { port: string }[] }
  }
  t.same(spec.selector, deployment.selector)
  t.same(
    spec.podMetricsEndpoints.map(({ port }) => port),
    ['ops'],
  )
  t.ok(container.ports.some(({ name }) => name === 'ops'))
  const labels = deployment.template.metadata.labels as Readonly<Record<string, string>>
  t.match(labels[spec.jobLabel], jobPattern(), 'the value of this label is the name of the job')
  t.end()
})

await test('the job of Prometheus in the README of deploy/kubernetes scrapes the ops Service, and BffInstanceDown finds it', (t) => {
  const { services, container, deployment } = kubernetesFile()
  const { spec } = services.get('trading-bff-ops') ?? {}
  t.match(spec, { clusterIP: 'None', publishNotReadyAddresses: true, selector: deployment.selector.matchLabels })
  const [opsPort, ...others] = spec?.ports ?? []
  t.same(others, [])
  t.ok(container.ports.some(({ name }) => name === opsPort?.targetPort && name === 'ops'))
  const job = documentedJob()
  t.match(job.job_name, jobPattern())
  const kept = job.relabel_configs.find(({ action }) => action === 'keep')
  t.match(`trading-bff-ops;${opsPort?.name}`, new RegExp(`^(?:${kept?.regex})$`), 'it keeps the ops port')
  t.notMatch('trading-bff;http', new RegExp(`^(?:${kept?.regex})$`), 'and nothing else')
  t.end()
})

await test('prometheus-rule.yaml is what build-rule.ts makes of docs/alerts.yaml', (t) => {
  t.equal(
    readFileSync(RULE_FILE, 'utf8'),
    ruleText(),
    'after a change: node deploy/kubernetes/monitoring/build-rule.ts',
  )
  const [rule] = resourcesIn(ruleText())
  const [alerts] = resourcesIn(projectFile('docs/alerts.yaml'))
  t.match(rule, { kind: 'PrometheusRule', spec: alerts })
  t.end()
})

/** The names of jobs whose instances BffInstanceDown watches. */
function jobPattern(): RegExp {
  const [, pattern = ''] = /up\{job="([^"]+)"\} == 0/.exec(projectFile('docs/alerts.yaml')) ?? []
  return new RegExp(`^(?:${pattern})$`)
}

/** The scrape job that deploy/kubernetes/README.md shows. */
function documentedJob() {
  const [, text = ''] = /```yaml\n(- job_name:[^]*?)```/.exec(projectFile('deploy/kubernetes/README.md')) ?? []
  const [jobs] = resourcesIn(text) as unknown as [
    readonly {
      readonly job_name: string
      readonly relabel_configs: readonly { readonly action?: string; readonly regex?: string }[]
    }[],
  ]
  const [job] = jobs
  if (job === undefined) throw new Error('deploy/kubernetes/README.md shows no job of Prometheus')
  return job
}
