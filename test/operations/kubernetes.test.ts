import { test } from 'tap'
import { parse } from 'yaml'
import {
  bytesOf,
  configOf,
  kubernetesFile,
  makeSecrets,
  projectFile,
  settingNames,
} from '../support/deployment/files.ts'

interface PolicyRule {
  readonly ports: readonly { readonly port: string }[]
}

await test('kubernetes.yaml names only settings that exist, and production accepts them', (t) => {
  const { environment, container } = kubernetesFile()
  for (const [name, value] of Object.entries(environment)) {
    t.ok(settingNames.has(name), `${name} is a setting`)
    if (!name.endsWith('_FILE')) continue
    t.ok(
      container.volumeMounts.some(({ mountPath }) => value.startsWith(`${mountPath}/`)),
      `${name} is in a volume that is mounted`,
    )
  }
  t.ok(configOf(environment, makeSecrets(t.testdir({}))).production)
  t.end()
})

await test('a pod drains before Kubernetes kills it, and after its readiness probe has failed', (t) => {
  const { environment, container, pod, deployment } = kubernetesFile()
  const { drainMs, drainWaitMs } = configOf(environment, makeSecrets(t.testdir({})))
  t.ok(pod.terminationGracePeriodSeconds * 1000 > drainMs, 'terminationGracePeriodSeconds exceeds DRAIN_SECONDS')
  const { periodSeconds, failureThreshold } = container.readinessProbe
  t.ok(drainWaitMs > periodSeconds * failureThreshold * 1000, 'DRAIN_WAIT_SECONDS exceeds the failed probes')
  const { maxUnavailable, maxSurge } = deployment.strategy.rollingUpdate
  t.ok(maxUnavailable < maxSurge, 'a new pod is ready before an old one goes')
  const budget = kubernetesFile().byKind.get('PodDisruptionBudget') as unknown as {
    spec: { maxUnavailable: number }
  }
  t.ok(budget.spec.maxUnavailable < deployment.replicas, 'a disruption leaves pods that serve')
  t.end()
})

await test('the resources of kubernetes.yaml agree on ports and labels', (t) => {
  const { byKind, services, environment, container, deployment } = kubernetesFile()
  const { listen } = configOf(environment, makeSecrets(t.testdir({})))
  const ports = Object.fromEntries(container.ports.map((each) => [each.name, each.containerPort]))
  t.same(ports, { http: listen.port, ops: listen.opsPort })
  for (const { httpGet } of [container.startupProbe, container.livenessProbe, container.readinessProbe]) {
    t.equal(ports[httpGet.port], listen.opsPort, `the probe of ${httpGet.path} uses the ops port`)
  }
  const { selector, template } = deployment
  t.same(template.metadata.labels, selector.matchLabels)
  t.same(
    template.spec.topologySpreadConstraints.map(({ labelSelector }) => labelSelector),
    [selector],
  )
  t.match(services.get('trading-bff'), { spec: { selector: selector.matchLabels } })
  t.match(byKind.get('PodDisruptionBudget'), { spec: { selector } })
  t.match(byKind.get('NetworkPolicy'), { spec: { podSelector: selector } })
  for (const { targetPort } of services.get('trading-bff')?.spec.ports ?? []) {
    t.equal(ports[targetPort], listen.port, 'the service leads to the public port')
  }
  const policy = byKind.get('NetworkPolicy') as unknown as { spec: { ingress: PolicyRule[] } }
  const allowed = policy.spec.ingress.flatMap((rule) => rule.ports.map(({ port }) => port))
  t.same(new Set(allowed), new Set(Object.keys(ports)), 'the policy covers every port')
  const { requests, limits } = container.resources
  t.ok(bytesOf(requests.memory) <= bytesOf(limits.memory), 'a pod requests no more memory than it may have')
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

await test('the job of Prometheus in kubernetes.yaml scrapes the ops Service, and BffInstanceDown finds it', (t) => {
  const { services, container, deployment } = kubernetesFile()
  const { spec } = services.get('trading-bff-ops') ?? {}
  t.match(spec, { clusterIP: 'None', publishNotReadyAddresses: true, selector: deployment.selector.matchLabels })
  const [opsPort, ...others] = spec?.ports ?? []
  t.same(others, [])
  t.ok(container.ports.some(({ name }) => name === opsPort?.targetPort && name === 'ops'))
  const job = documentedJob()
  const [, pattern = ''] = /up\{job=~"([^"]+)"\} == 0/.exec(projectFile('docs/alerts.yaml')) ?? []
  t.match(job.job_name, new RegExp(`^(?:${pattern})$`), 'the name of the job is one that the alert matches')
  const kept = job.relabel_configs.find(({ action }) => action === 'keep')
  t.match(`trading-bff-ops;${opsPort?.name}`, new RegExp(`^(?:${kept?.regex})$`), 'it keeps the ops port')
  t.notMatch('trading-bff;http', new RegExp(`^(?:${kept?.regex})$`), 'and nothing else')
  t.notMatch(
    projectFile('docs/kubernetes.yaml'),
    /prometheus\.io\//,
    'no annotation makes a second job of another name',
  )
  t.end()
})

/** The scrape job that a comment of docs/kubernetes.yaml shows. */
function documentedJob() {
  const [comment = ''] = /^#   - job_name:[^]*?(?=^apiVersion)/m.exec(projectFile('docs/kubernetes.yaml')) ?? []
  const [job] = parse(comment.replaceAll(/^# ?/gm, '')) as {
    readonly job_name: string
    readonly relabel_configs: readonly { readonly action?: string; readonly regex?: string }[]
  }[]
  if (job === undefined) throw new Error('docs/kubernetes.yaml shows no job of Prometheus')
  return job
}
