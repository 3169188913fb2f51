import type { Changeable } from './changing.ts'
import { serializeClientKeys } from './client-key.ts'
import type { Config } from './config.ts'
import { credentialsOf } from './redis-address.ts'
import { formats } from './setting-formats.ts'
import type { Environment, Format } from './setting-rule.ts'
import { SECRET_SETTINGS } from './settings.ts'

/** The name of a setting that may be in a file. */
export type SecretSetting = (typeof SECRET_SETTINGS)[number]

/** A setting that may be in a file and change there. Every text has passed the check of the settings. */
interface Secret {
  /** The present value as text; empty if there is none. */
  readonly textOf: (config: Config) => string
  /** The form that {@link textOf} gives a text. */
  readonly normalized: (text: string) => string
  /** The server has this value from now on. */
  readonly take: (config: Config, text: string) => void
  /** The single secrets of the present value, in their order. */
  readonly partsOf: (config: Config) => readonly string[]
}

function secret<Value>(
  valueOf: (config: Config) => Changeable<Value> | undefined,
  format: Format<Value>,
  print: (value: Value) => string,
  parts: (value: Value) => readonly string[] = (value) => [print(value)],
): Secret {
  const parse = (text: string): Value => format.parse(text) as Value
  return {
    textOf(config) {
      const value = valueOf(config)
      return value === undefined ? '' : print(value.current)
    },
    normalized: (text) => print(parse(text)),
    take: (config, text) => valueOf(config)?.change(parse(text)),
    partsOf(config) {
      const value = valueOf(config)
      return value === undefined ? [] : parts(value.current)
    },
  }
}

const same = (text: string): string => text

/** All settings that may be in a file. */
export const secretSettings: Readonly<Record<SecretSetting, Secret>> = {
  SESSION_SECRETS: secret(
    ({ secrets }) => secrets,
    formats.secrets,
    (list) => list.join(','),
    (list) => list,
  ),
  CLIENT_SECRET: secret(({ oauth }) => oauth.clientSecret, formats.printable, same),
  CLIENT_KEY: secret(
    ({ oauth }) => oauth.clientKeys,
    formats.clientKeys,
    serializeClientKeys,
    (keys) => keys.map((key) => serializeClientKeys([key])),
  ),
  REDIS_URL: secret(({ redisUrl }) => redisUrl, formats.redisUrl, same, credentialsOf),
  OPS_TOKEN: secret(({ ops }) => ops.token, formats.token, same),
  OTEL_EXPORTER_OTLP_HEADERS: secret(({ traces }) => traces?.headers, formats.headers, same),
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: secret(({ traces }) => traces?.ownHeaders, formats.headers, same),
}

/** The values of secrets as texts; empty where there is none. */
export type SecretTexts = Readonly<Record<SecretSetting, string>>

/** The present values. */
export function secretTexts(config: Config): SecretTexts {
  return Object.fromEntries(SECRET_SETTINGS.map((name) => [name, secretSettings[name].textOf(config)])) as SecretTexts
}

/** The server has these values from now on. What is set stays set, and what is not set stays so. */
export function takeSecrets(config: Config, texts: SecretTexts): void {
  for (const name of SECRET_SETTINGS) {
    const { textOf, take } = secretSettings[name]
    if (texts[name] !== '' && texts[name] !== textOf(config)) take(config, texts[name])
  }
}

/**
 * The files that `NAME_FILE` names, of all secrets that have one and are used: headers for a collector are not where there are no
 * traces. An empty value counts as unset.
 */
export function secretFiles(environment: Environment, config: Config): ReadonlyMap<SecretSetting, string> {
  const named = SECRET_SETTINGS.map((name) => [name, environment[`${name}_FILE`] ?? ''] as const)
  return new Map(named.filter(([name, path]) => path !== '' && secretSettings[name].textOf(config) !== ''))
}
