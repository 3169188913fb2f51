import { defineConfig } from '@kubb/core'
import { pluginClient } from '@kubb/plugin-client'
import { pluginOas } from '@kubb/plugin-oas'
import { pluginTs } from '@kubb/plugin-ts'
import { pluginZod } from '@kubb/plugin-zod'

export default defineConfig({
  root: '.',
  input: { path: './openapi.json' },
  output: { path: './client' },
  plugins: [
    pluginOas(),
    // Without these, every response that may have no body is typed as any.
    pluginTs({ unknownType: 'unknown', emptySchemaType: 'void' }),
    pluginClient({ client: 'fetch' }),
    pluginZod(),
  ],
})
