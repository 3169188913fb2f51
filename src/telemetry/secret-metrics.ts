import { createHmac, hkdfSync } from 'node:crypto'
import type { Registry } from 'prom-client'
import type { Config } from '../config/config.ts'
import { secretSettings, type SecretSetting } from '../config/secrets.ts'
import { SECRET_SETTINGS } from '../config/settings.ts'
import { Instruments } from './instruments.ts'

/** Hexadecimal digits: 32 bits are enough to tell two secrets apart, and too few to find one. */
const DIGITS = 8

/** Where the metrics of secrets come from. */
interface SecretSources {
  readonly config: Config
  /** The settings that this process uses; all by default. */
  readonly names?: readonly SecretSetting[]
  /** The key of the fingerprints, undefined while the store does not reply. Never rejects. */
  readonly fingerprintKey: () => Promise<string | undefined>
  /** The settings that are read from files, and whether the value of the file is refused. Absent in a worker. */
  readonly files?: (() => readonly (readonly [name: SecretSetting, isRefused: boolean])[]) | undefined
}

/** The fingerprint of a secret. Without the key it tells nothing, and equal values of different settings have different ones. */
export function secretFingerprint(key: string, setting: SecretSetting, secret: string): string {
  return createHmac('sha256', key).update(`${setting}:${secret}`).digest('hex').slice(0, DIGITS)
}

/**
 * Adds the metrics of the secrets that this process uses: which ones, as fingerprints, by their place in a list; and those that
 * keep their value although their files have another one. Processes count together, so that a series says how many of them
 * use a secret.
 */
export function addSecretMetrics(
  registry: Registry,
  { config, names = SECRET_SETTINGS, fingerprintKey, files }: SecretSources,
): void {
  const make = new Instruments(registry)
  make.scrapedGauge(
    'bff_secret_processes',
    'Processes of this server that use the secret with this fingerprint; the first place of a list is 1. Instances with the ' +
      'same Redis have the same fingerprint for the same secret',
    async () => {
      const key = names.length === 0 ? undefined : await fingerprintKey()
      return key === undefined ? [] : [...fingerprints(config, names, key)]
    },
    'sum',
    ['setting', 'place', 'fingerprint'],
  )
  if (files === undefined || files().length === 0) return
  make.scrapedGauge(
    'bff_secret_file_refused',
    '1 while a setting keeps its value because its file has one that cannot be used; only for settings in files',
    () => files().map(([setting, isRefused]) => [{ setting }, Number(isRefused)]),
    'max',
    ['setting'],
  )
}

function* fingerprints(config: Config, names: readonly SecretSetting[], key: string) {
  for (const setting of names) {
    for (const [index, secret] of secretSettings[setting].partsOf(config).entries()) {
      const fingerprint = secretFingerprint(key, setting, secret)
      yield [{ setting, place: String(index + 1), fingerprint }, 1] as const
    }
  }
}

/**
 * Adds a metric that reveals instances with different SESSION_SECRETS, which would log users out. The fingerprint
 * cannot be reversed, and does not depend on the order of the secrets, which differs for a while during a rotation.
 */
export function addSecretsInfo(registry: Registry, { secrets }: Pick<Config, 'secrets'>): void {
  const help = 'Always 1; all instances should have the same fingerprint of SESSION_SECRETS'
  const read = () => [[{ fingerprint: fingerprintOfAll(secrets.current) }, 1]] as const
  new Instruments(registry).scrapedGauge('bff_session_secrets_info', help, read, 'first', ['fingerprint'])
}

function fingerprintOfAll(secrets: readonly string[]): string {
  return Buffer.from(hkdfSync('sha256', secrets.toSorted().join(','), '', 'fingerprint', 6)).toString('hex')
}
